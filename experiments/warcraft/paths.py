"""Least-cost paths on grids of vertex costs: labels, their tie rule, and what predicted paths cost.

A path goes from the top-left to the bottom-right cell through cells that share a side; it costs what its cells cost.
Costs are compared as whole tenths, so that ties are ties. Of several least-cost paths the label is the first in
lexicographic order of its steps, where right comes before down, down before left, and left before up.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

Costs = NDArray[np.floating[Any]]
Whole = NDArray[np.int64]
Edges = NDArray[np.float32]

STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0))
"""Right, down, left, up: the order that breaks ties."""
_FAR = np.int64(1) << 40


@lru_cache(maxsize=8)
def grid(side: int) -> Any:
    """The grid graph over (row, column) nodes; ``edges`` fixes the order of the labels.

    Example:
        >>> len(grid(12).edges)
        264
    """
    return nx.grid_2d_graph(side, side)


@lru_cache(maxsize=8)
def edge_ends(side: int) -> NDArray[np.int64]:
    """Numbers of the two cells of each edge [edges, 2], cells counted row by row."""
    return np.array([[r * side + c for r, c in edge] for edge in grid(side).edges], np.int64)


def distances(costs: Costs) -> Whole:
    """Least cost from each cell to the bottom-right one, its own included, in tenths [maps, side, side].

    Args:
        costs: positive costs of the cells [maps, side, side].
    """
    own = tenths(costs)
    best = np.full(own.shape, _FAR)
    best[:, -1, -1] = own[:, -1, -1]
    while True:
        near = np.pad(best, ((0, 0), (1, 1), (1, 1)), constant_values=_FAR)
        least = np.minimum.reduce([near[:, :-2, 1:-1], near[:, 2:, 1:-1], near[:, 1:-1, :-2], near[:, 1:-1, 2:]])
        better = np.minimum(best, own + least)
        if np.array_equal(better, best):
            return best
        best = better


def least_cost_paths(costs: Costs) -> Edges:
    """The edges of the least-cost path of each map, 0/1 [maps, edges].

    Example:
        >>> least_cost_paths(np.ones((1, 2, 2))).tolist()  # right, then down
        [[0.0, 1.0, 1.0, 0.0]]
    """
    own, best = tenths(costs), distances(costs)
    maps, side, _ = own.shape
    column = _columns(side)
    labels = np.zeros((maps, len(edge_ends(side))), np.float32)
    at = np.zeros(maps, np.int64)
    walking = np.arange(maps)
    flat_own, flat_best = own.reshape(maps, -1), best.reshape(maps, -1)
    while len(walking):
        here = at[walking]
        wanted = flat_best[walking, here] - flat_own[walking, here]
        goes = np.full(len(walking), -1)
        for step in reversed(range(4)):
            there = column[here, step, 0]
            fits = there >= 0
            fits[fits] = flat_best[walking[fits], there[fits]] == wanted[fits]
            goes[fits] = step
        labels[walking, column[here, goes, 1]] = 1.0
        at[walking] = column[here, goes, 0]
        walking = walking[at[walking] != side * side - 1]
    return labels


def path_costs(edges: Edges, costs: Costs) -> NDArray[np.float64]:
    """What the cells that the edges touch cost [maps]; the cost of the path where the edges form one."""
    side = costs.shape[1]
    total: NDArray[np.float64] = (touched_cells(edges, side) * tenths(costs)).sum((1, 2)) / 10
    return total


def touched_cells(edges: Edges, side: int) -> NDArray[np.uint8]:
    """Cells at an end of some edge, 0/1 [maps, side, side]."""
    cells = np.zeros((len(edges), side * side), np.uint8)
    rows, columns = np.nonzero(edges)
    for end in edge_ends(side).T:
        cells[rows, end[columns]] = 1
    return cells.reshape(len(edges), side, side)


def tenths(costs: Costs) -> Whole:
    """Costs as whole numbers of tenths; the published costs are such."""
    return np.rint(np.asarray(costs, np.float64) * 10).astype(np.int64)


@lru_cache(maxsize=8)
def _columns(side: int) -> NDArray[np.int64]:
    """For each cell and step the cell that it leads to and the edge that it uses, -1 off the grid [cells, 4, 2]."""
    number = {frozenset(ends): edge for edge, ends in enumerate(edge_ends(side).tolist())}
    table = np.full((side * side, 4, 2), -1, np.int64)
    for row, column in product(range(side), repeat=2):
        for step, (down, right) in enumerate(STEPS):
            if 0 <= row + down < side and 0 <= column + right < side:
                here, there = row * side + column, (row + down) * side + column + right
                table[here, step] = there, number[frozenset((here, there))]
    return table
