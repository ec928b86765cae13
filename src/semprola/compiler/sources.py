"""The one reader of constraints: formulas, their text, and files of rules, clauses or circuits."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

from semprola._file_kinds import read_text
from semprola.circuit import Circuit
from semprola.circuit.nnf_files import read_nnf
from semprola.circuit.sdd_files import read_sdd
from semprola.errors import FormatError, ParseError
from semprola.logic import Formula, from_dimacs
from semprola.logic.parser import Rule, parse_lines
from semprola.logic.rules import has_variables, joined, placed
from semprola.logic.syntax import (
    CIRCUIT_FILES,
    CLAUSE_FILES,
    ONTOLOGY_FILES,
    TEXT_FILES,
    file_kind,
    is_file_name,
    quote,
)

Source: TypeAlias = Formula | Circuit | str | os.PathLike[str]
"""What a constraint may be: a formula, its text, a family, a circuit, or the path of a file."""


def as_constraint(source: Any, vtree: Path | None = None, variables: Iterable[Any] = ()) -> Formula | Circuit:
    """A constraint in any form, as a formula or a circuit.

    Args:
        source: a formula, a family or a circuit, which are returned as they are; a text with a formula or one rule per
            line; or the path of a file, see :func:`semprola.rules.read`. A text that names an existing file is its
            path.
        variables: integers and categoricals that a text speaks of and does not declare.
    """
    rules = rules_of(source, vtree, variables)
    formulas = [rule for rule in rules if isinstance(rule, Formula)]
    return joined(formulas) if len(formulas) == len(rules) and len(rules) > 1 else rules[0]


def formula_of(source: Any, taker: str) -> Formula:
    """A constraint as a formula; `taker` is what errors call the one that needs it."""
    constraint = as_constraint(source)
    if isinstance(constraint, Circuit):
        raise TypeError(f"{taker} needs a formula, not a compiled circuit")
    return constraint


def rules_of(source: Any, vtree: Path | None = None, variables: Iterable[Any] = ()) -> list[Formula | Circuit]:
    """The rules of a constraint as a list, as far as they are on separate lines; see :func:`as_constraint`."""
    if isinstance(source, Formula | Circuit):
        return [source]
    if isinstance(source, os.PathLike):
        return _read_file(Path(source), vtree, variables)
    if not isinstance(source, str):
        raise TypeError(f"a constraint is a formula, its text, a family, a circuit or a file, not {source!r:.60}")
    path = _named_file(source)
    if path is not None:
        return _read_file(path, vtree, variables)
    rules = parse_lines(source, variables)
    if not rules:
        raise ParseError(f"there is no rule in {source[:40]!r}: write one, such as cat -> animal")
    return [_worded(rule, "") if has_variables(rule.formula) else rule.formula for rule in rules]


def _named_file(text: str) -> Path | None:
    """The file that a text names; None if the text is a formula."""
    try:
        path = Path(text)
        if path.is_file():
            return path
        is_folder = bool(text) and path.is_dir()
    except (OSError, ValueError):  # too long for a path, or with characters that no path has
        return None
    name = text.strip()
    if is_folder:
        raise FormatError(f"{name}: this is a folder, not a file with rules; a label of this name is written ({name})")
    if is_file_name(text):
        raise FormatError(f"{name}: no such file; a label of this name is written {quote(name)}")
    return None


def _read_file(path: Path, vtree: Path | None, variables: Iterable[Any]) -> list[Formula | Circuit]:
    if not path.is_file():
        raise FormatError(f"{path}: {'this is a folder, not a file with rules' if path.is_dir() else 'no such file'}")
    kind = file_kind(path.name)
    if kind in CLAUSE_FILES:
        return [from_dimacs(path)]
    if kind == ".sp":
        return [Circuit.load(path)]
    if kind == ".nnf":
        return [read_nnf(path)]
    if kind == ".sdd":
        return [read_sdd(path, vtree or path.with_suffix(".vtree"))]
    if kind in ("", *TEXT_FILES):
        return _read_rules(path, variables)
    if kind in ONTOLOGY_FILES:
        raise FormatError(f"{path}: an ontology: read it with sp.rules.from_obo, from_owl or from_skos")
    known = ", ".join((*CLAUSE_FILES, *TEXT_FILES, *CIRCUIT_FILES))
    raise FormatError(f"{path}: unknown kind of file; give one of {known}")


def _read_rules(path: Path, variables: Iterable[Any]) -> list[Formula | Circuit]:
    text = read_text(path)
    try:
        rules = parse_lines(text, variables)
    except ParseError as error:
        raise ParseError(f"{path}: {error}", line=error.line, column=error.column) from None
    if not rules:
        raise ParseError(f"{path}: contains only comments, no rule")
    return [_worded(rule, f"{path}:{rule.line} {rule.name}".rstrip()) for rule in rules]


def _worded(rule: Rule, place: str) -> Formula:
    return placed(rule.formula, place, rule.text)
