"""Constraints in all the forms that users have: formulas, texts, pairs of a hierarchy, circuits and files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from semprola._sources import CLAUSES, PACKED, TEXTS, find_file
from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.constraints import hierarchy
from semprola.errors import FormatError, ParseError
from semprola.logic import TRUE, And, Formula, from_dimacs
from semprola.logic.rules import parse_rules

_KNOWN = (*CLAUSES, *TEXTS, ".sp")


def read_rules(source: Any) -> list[Formula | Circuit]:
    """The rules of a constraint as a list, as far as they can be separated.

    Args:
        source: a formula or a family; text with one rule per line, or one formula on several lines; (child, parent)
            pairs of a hierarchy; a compiled circuit; the path of a file with such text, of a .cnf or of an .sp file; or
            None for no rules.

    Raises:
        ParseError: if the text is not a formula, or has no rule; the message names the file and the line.
        FormatError: if there is no such file, it is a folder, or its contents do not match its name.
        TypeError: if the source is something else.

    Example:
        >>> [str(rule) for rule in read_rules("cat -> animal  # a comment\\ndog -> animal")]
        ['cat -> animal', 'dog -> animal']
    """
    if source is None:
        return []
    if isinstance(source, Formula | Circuit):
        return [source]
    if isinstance(source, str | os.PathLike):
        path = find_file(os.fspath(source), _KNOWN)
        if path is not None or isinstance(source, os.PathLike):
            return _read_file(Path(source) if path is None else path)
        return _read_text(source)
    if isinstance(source, Sequence) and all(isinstance(pair, tuple | list) and len(pair) == 2 for pair in source):
        return [hierarchy([tuple(pair) for pair in source])]
    raise TypeError(
        f"a constraint is a formula, its text, a family, (child, parent) pairs, a circuit or a file, not {source!r:.60}"
    )


def compile_rules(rules: Sequence[Formula | Circuit], labels: Sequence[str] | None = None, **limits: Any) -> Circuit:
    """One circuit for all rules.

    Args:
        rules: what must hold, from :func:`read_rules`.
        labels: the column order of y; by default the order in which the rules mention them.
        **limits: as for :func:`semprola.compile`.

    Raises:
        LabelError: if the rules mention a label that is not listed.
        FormatError: if a circuit is combined with other rules.
    """
    if len(rules) == 1:
        return compile(rules[0], labels=labels, **limits)
    if any(isinstance(rule, Circuit) for rule in rules):
        raise FormatError("a compiled circuit cannot be combined with other rules: pass formulas instead")
    whole = And([rule for rule in rules if isinstance(rule, Formula)]) if rules else TRUE
    return compile(whole, labels=labels, **limits)


def _read_text(text: str) -> list[Formula | Circuit]:
    rules = parse_rules(text)
    if not rules:
        raise ParseError(f"there is no rule in {text[:40]!r}: write one, such as cat -> animal")
    return list(rules)


def _read_file(path: Path) -> list[Formula | Circuit]:
    suffix = path.suffix.lower()
    if suffix == ".sp":
        return [Circuit.load(path)]
    if suffix in (*CLAUSES, *PACKED):
        return [from_dimacs(path)]
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise FormatError(f"{path}: not UTF-8 text: rules are a text file with one rule per line") from None
    rules = parse_rules(text, f"{path}: ")
    if not rules:
        found = "only comments" if text.strip() else "the file is empty"
        raise ParseError(f"{path}: there is no rule in it, {found}")
    return list(rules)
