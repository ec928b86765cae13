"""The circuits that `python -m benchmarks.engine` measures, from a few hundred edges to many thousands."""

from __future__ import annotations

import lzma
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import networkx as nx
import numpy as np

import semprola as sp
from semprola.engine.skeleton import Skeleton


@dataclass(frozen=True)
class Case:
    """A named circuit; `make` gets the folder of published data, and raises OSError if a file is missing."""

    name: str
    make: Callable[[Path], sp.Circuit]


def cases(names: list[str] | None = None) -> list[Case]:
    """The cases with these names; all if None.

    Raises:
        ValueError: if a name is not one of them.
    """
    unknown = [name for name in names or [] if name not in {case.name for case in _CASES}]
    if unknown:
        known = ", ".join(case.name for case in _CASES)
        raise ValueError(f"there is no benchmark circuit {unknown[0]!r}; choose from {known}")
    return [case for case in _CASES if names is None or case.name in names]


def band(edges: int) -> Skeleton:
    """A layered circuit with about this many edges: counts of ones, kept modulo the width of the band.

    Sum (i, j) is "not y_i" times sum (i + 1, j) plus "y_i" times sum (i + 1, j + 1): like an exactly-k diagram, but of
    any length. Made as flat arrays, so that making ten million edges takes no longer than evaluating them.
    """
    width = max(2, round((edges / 2) ** 0.5 / 2))
    layers = max(1, round(edges / 2 / width))
    leaves, sums = 2 * layers, layers * width
    layer, place = np.divmod(np.arange(sums, dtype=np.int32), width)
    factors = np.empty((sums, 4), dtype=np.int32)
    factors[:, 0], factors[:, 2] = 2 * layer, 2 * layer + 1
    factors[:, 1] = leaves + (layer + 1) * width + place
    factors[:, 3] = leaves + (layer + 1) * width + (place + 1) % width
    del layer, place
    # the edges of the last layer have no sum below them
    whole = sums - width
    counts = np.full(2 * sums, 2, dtype=np.int32)
    counts[2 * whole :] = 1
    factor_start = np.zeros(2 * sums + 1, dtype=np.int32)
    np.cumsum(counts, out=factor_start[1:])
    return Skeleton(
        num_variables=layers,
        edge_start=np.arange(0, 2 * sums + 1, 2, dtype=np.int32),
        factor_start=factor_start,
        factors=np.concatenate([factors[:whole].ravel(), factors[whole:, ::2].ravel()]),
        root=0,
        mentioned=np.ones(layers, dtype=bool),
        suppressed=np.zeros(layers, dtype=bool),
    )


def _hierarchy(file: str) -> Callable[[Path], sp.Circuit]:
    def make(data: Path) -> sp.Circuit:
        return sp.compile(sp.constraints.hierarchy(_tree(data / "hmc" / file)))

    return make


def _tree(path: Path) -> list[tuple[str, str]]:
    """(child, parent) pairs of the class hierarchy in the header of an ARFF file."""
    with lzma.open(path, "rt", encoding="utf-8", errors="replace") as lines:
        for line in lines:
            found = re.match(r"@attribute\s+class\s+hierarchical\s+(\S+)", line, re.IGNORECASE)
            if found:
                names = found[1].split(",")
                return [(name, name.rpartition("/")[0]) for name in names if "/" in name]
    raise OSError(f"{path}: no hierarchy of classes in its header")


def _published_grid(data: Path) -> sp.Circuit:
    return sp.read_sdd(data / "grid4" / "4-grid-all-pairs-sd.sdd", data / "grid4" / "4-grid-out.vtree.sd")


def _published_sdd(name: str) -> Callable[[Path], sp.Circuit]:
    def make(data: Path) -> sp.Circuit:
        folder = data / "oracles" / "circuits"
        return sp.read_sdd(folder / f"{name}.sdd", folder / f"{name}.vtree")

    return make


def _grid_paths(side: int, longest: int | None = None) -> Callable[[Path], sp.Circuit]:
    def make(_: Path) -> sp.Circuit:
        graph = nx.grid_2d_graph(side, side)
        corner = (side - 1, side - 1)
        return sp.compile(sp.constraints.simple_paths(graph, source=(0, 0), target=corner, max_length=longest))

    return make


_CASES = [
    Case("cellcycle", _hierarchy("cellcycle_FUN.train.arff.xz")),
    Case("cellcycle-sdd", _published_sdd("cellcycle_FUN")),
    Case("diatoms", _hierarchy("Diatoms_train.arff.xz")),
    Case("grid-4x4-sdd", _published_grid),
    Case("permutation-12", lambda _: sp.compile(sp.constraints.permutation(12))),
    Case(
        "exactly-50-of-500",
        lambda _: sp.compile(sp.constraints.cardinality([f"y{i}" for i in range(500)], exactly=50)),
    ),
    Case("paths-8x8", _grid_paths(8)),
    Case("warcraft-12x12", _grid_paths(12, 28)),
]
