"""Writes circuits in the format that a path asks for."""

from __future__ import annotations

from pathlib import Path

from semprola.circuit import Circuit
from semprola.errors import FormatError


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
