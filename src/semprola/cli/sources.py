"""Reads the source of a command, a formula or a file in one of several formats; and writes circuits."""

from __future__ import annotations

from pathlib import Path

from semprola._sources import CLAUSES, TEXTS, file_kind, find_file
from semprola.circuit import Circuit
from semprola.circuit.nnf_files import read_nnf
from semprola.circuit.sdd_files import read_sdd
from semprola.cli.guessing import read_text
from semprola.errors import FormatError, ParseError
from semprola.logic import And, Formula, from_dimacs, parse
from semprola.logic.rules import parse_rules

_KNOWN = (*CLAUSES, *TEXTS, ".sp", ".nnf", ".sdd")


def read_constraint(source: str, vtree: Path | None = None) -> Formula | Circuit:
    """A constraint from a formula, or from a file of a known suffix.

    Args:
        source: the text of a formula, or the path of a file: .cnf (also packed: .gz, .xz, .bz2), .sp, .nnf, .sdd (with
            its vtree) or .txt (one rule per line, or one formula on several).
        vtree: the vtree of an .sdd file; by default the file of the same name with suffix .vtree.

    Raises:
        FormatError: the file does not exist, is a folder, or does not have the format of its suffix.
        ParseError: the text is not a formula.
    """
    path = find_file(source, _KNOWN)
    if path is None:
        return parse(source)
    kind = file_kind(path)
    if kind in CLAUSES:
        return from_dimacs(path)
    if kind == ".sp":
        return Circuit.load(path)
    if kind == ".nnf":
        return read_nnf(path)
    if kind == ".sdd":
        return read_sdd(path, vtree or path.with_suffix(".vtree"))
    if kind in TEXTS:
        return _parse_file(path)
    raise FormatError(f"{source}: unknown kind of file; give one of {', '.join(_KNOWN)}")


def _parse_file(path: Path) -> Formula:
    rules = parse_rules(read_text(path), f"{path}: ")
    if not rules:
        raise ParseError(f"{path}: there is no rule in it, only comments")
    return rules[0] if len(rules) == 1 else And(rules)


def write_circuit(circuit: Circuit, path: Path, vtree: Path | None = None) -> None:
    """Write a circuit in the format of the path's suffix: .sp, .nnf (c2d), .d4, .sdd, .dot, .svg or .png."""
    suffix = path.suffix.lower()
    if suffix == ".sp":
        circuit.save(path)
    elif suffix in (".nnf", ".d4"):
        circuit.write_nnf(path, "d4" if suffix == ".d4" else "c2d")
    elif suffix == ".sdd":
        circuit.write_sdd(path, vtree or path.with_suffix(".vtree"))
    elif suffix in (".dot", ".svg", ".png"):
        circuit.draw(path)
    else:
        raise FormatError(f"{path}: unknown format; give a name that ends in .sp, .nnf, .d4, .sdd, .dot, .svg or .png")
