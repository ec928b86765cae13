"""Least-cost paths on grids of vertex costs: labels, their tie rule, and what predicted paths cost.

A path goes from the top-left to the bottom-right cell through cells that share a side, or with eight neighbours a side
or a corner; it costs what its cells cost. Costs are compared as whole tenths, so that ties are ties. Of several
least-cost paths the label is the first in lexicographic order of its steps: right, down, left, up, and then, with eight
neighbours, down-right, down-left, up-left, up-right.
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

STEPS = ((0, 1), (1, 0), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, -1), (-1, 1))
"""In the order that breaks ties; only the first four with four neighbours."""
NEIGHBOURS = (4, 8)
_FAR = np.int64(1) << 40


@lru_cache(maxsize=8)
def grid(side: int, neighbours: int = 4) -> Any:
    """The grid graph over (row, column) nodes; ``edges`` fixes the order of the labels.

    Example:
        >>> len(grid(12).edges), len(grid(12, neighbours=8).edges)
        (264, 506)
    """
    graph = nx.grid_2d_graph(side, side)
    if neighbours == 8:
        for row, column in product(range(side - 1), repeat=2):
            graph.add_edge((row, column), (row + 1, column + 1))
            graph.add_edge((row, column + 1), (row + 1, column))
    return graph


@lru_cache(maxsize=8)
def edge_ends(side: int, neighbours: int = 4) -> NDArray[np.int64]:
    """Numbers of the two cells of each edge [edges, 2], cells counted row by row."""
    return np.array([[r * side + c for r, c in edge] for edge in grid(side, neighbours).edges], np.int64)


def distances(costs: Costs, neighbours: int = 4) -> Whole:
    """Least cost from each cell to the bottom-right one, its own included, in tenths [maps, side, side].

    Args:
        costs: positive costs of the cells [maps, side, side].
        neighbours: of a cell, 4 or 8.
    """
    own = tenths(costs)
    best = np.full(own.shape, _FAR)
    best[:, -1, -1] = own[:, -1, -1]
    while True:
        near = np.pad(best, ((0, 0), (1, 1), (1, 1)), constant_values=_FAR)
        side = own.shape[1]
        least = np.minimum.reduce([near[:, 1 + r : 1 + r + side, 1 + c : 1 + c + side] for r, c in STEPS[:neighbours]])
        better = np.minimum(best, own + least)
        if np.array_equal(better, best):
            return best
        best = better


def least_cost_paths(costs: Costs, neighbours: int = 4) -> Edges:
    """The edges of the least-cost path of each map, 0/1 [maps, edges].

    Example:
        >>> least_cost_paths(np.ones((1, 2, 2))).tolist()  # right, then down
        [[0.0, 1.0, 1.0, 0.0]]
    """
    own, best = tenths(costs), distances(costs, neighbours)
    maps, side, _ = own.shape
    column = _columns(side, neighbours)
    labels = np.zeros((maps, len(edge_ends(side, neighbours))), np.float32)
    at = np.zeros(maps, np.int64)
    walking = np.arange(maps)
    flat_own, flat_best = own.reshape(maps, -1), best.reshape(maps, -1)
    while len(walking):
        here = at[walking]
        wanted = flat_best[walking, here] - flat_own[walking, here]
        goes = np.full(len(walking), -1)
        for step in reversed(range(neighbours)):
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
    for end in edge_ends(side, neighbours_of(edges.shape[1], side)).T:
        cells[rows, end[columns]] = 1
    return cells.reshape(len(edges), side, side)


def neighbours_of(edges: int, side: int) -> int:
    """Neighbours of a cell, told by the number of edges."""
    return 4 if edges == 2 * side * (side - 1) else 8


def tenths(costs: Costs) -> Whole:
    """Costs as whole numbers of tenths; the published costs are such."""
    return np.rint(np.asarray(costs, np.float64) * 10).astype(np.int64)


@lru_cache(maxsize=8)
def _columns(side: int, neighbours: int) -> NDArray[np.int64]:
    """For each cell and step the cell that it leads to and the edge that it uses, -1 off the grid [cells, steps, 2]."""
    number = {frozenset(ends): edge for edge, ends in enumerate(edge_ends(side, neighbours).tolist())}
    table = np.full((side * side, neighbours, 2), -1, np.int64)
    for row, column in product(range(side), repeat=2):
        for step, (down, right) in enumerate(STEPS[:neighbours]):
            if 0 <= row + down < side and 0 <= column + right < side:
                here, there = row * side + column, (row + down) * side + column + right
                table[here, step] = there, number[frozenset((here, there))]
    return table
