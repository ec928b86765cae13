"""The circuits that `python -m benchmarks.engine` measures, from a few hundred edges to many thousands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import semprola as sp
from benchmarks import circuits
from semprola.engine.skeleton import Skeleton


@dataclass(frozen=True)
class Case:
    """A named circuit, made here: none needs a data set, so that a fresh clone measures all of them."""

    name: str
    make: Callable[[], sp.Circuit]


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


_CASES = [
    Case("tree-499", lambda: circuits.hierarchy(499)),
    Case("tree-499-sdd", lambda: circuits.hierarchy_sdd(499)),
    Case("tree-399", lambda: circuits.hierarchy(399)),
    Case("clauses-30-sdd", lambda: circuits.clauses_sdd(30, 45)),
    Case("permutation-12", lambda: sp.compile(sp.constraints.permutation(12))),
    Case(
        "exactly-50-of-500",
        lambda: sp.compile(sp.constraints.cardinality([f"y{i}" for i in range(500)], exactly=50)),
    ),
    Case("paths-8x8", lambda: circuits.grid_paths(8)),
    Case("warcraft-12x12", lambda: circuits.grid_paths(12, 28)),
]
