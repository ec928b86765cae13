"""How good predicted paths are: exact, optimal, cost, Hamming, consistent; and how good predicted costs are."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.warcraft.paths import distances, edge_ends, neighbours_of, path_costs, tenths, touched_cells

Edges = NDArray[np.float32]


def is_path(edges: Edges, side: int) -> NDArray[np.bool_]:
    """Whether each row of edges is one simple path from the first to the last cell; by the definition [maps].

    Example:
        >>> is_path(np.array([[0, 1, 1, 0], [1, 1, 0, 0], [1, 1, 1, 1]], np.float32), 2).tolist()
        [True, False, False]
    """
    ends = edge_ends(side, neighbours_of(edges.shape[1], side))
    degree = np.zeros((len(edges), side * side), np.int64)
    for end in ends.T:
        np.add.at(degree.T, end, edges.T.astype(np.int64))
    ends_once = (degree[:, 0] == 1) & (degree[:, -1] == 1)
    inner = degree[:, 1:-1]
    proper = ends_once & ((inner == 0) | (inner == 2)).all(1)
    # with these degrees there is one path between the corners, and perhaps cycles apart from it
    whole: NDArray[np.bool_] = proper & (_reached(edges, side) == touched_cells(edges, side).sum((1, 2)))
    return whole


def scores(predicted: Edges, labels: Edges, costs: NDArray[Any], longest: int) -> dict[str, float]:
    """Percentages over maps, and the mean ratio of the cost of consistent predictions to the least cost.

    Args:
        predicted: 0/1 [maps, edges].
        labels: of the least-cost paths.
        costs: of the cells [maps, side, side].
        longest: most edges that the constraint allows.
    """
    side = costs.shape[1]
    valid = is_path(predicted, side)
    consistent = valid & (predicted.sum(1) <= longest)
    least = distances(costs, neighbours_of(labels.shape[1], side))[:, 0, 0] / 10
    spent = path_costs(predicted, costs)
    optimal = valid & (np.rint(spent * 10) == np.rint(least * 10))
    return {
        "exact": _percent((predicted == labels).all(1)),
        "optimal": _percent(optimal),
        "cost_ratio": float((spent[valid] / least[valid]).mean()) if valid.any() else float("nan"),
        "hamming": _percent(predicted == labels),
        "consistent": _percent(consistent),
    }


def rank_correlation(predicted: NDArray[Any], costs: NDArray[Any]) -> float:
    """Spearman's correlation between predicted and true costs of all cells."""
    from scipy.stats import spearmanr

    return float(spearmanr(np.asarray(predicted).ravel(), tenths(costs).ravel()).statistic)


def _reached(edges: Edges, side: int) -> NDArray[np.int64]:
    """How many cells are connected to the first one [maps]."""
    first, second = edge_ends(side, neighbours_of(edges.shape[1], side)).T
    used = edges.astype(bool)
    seen = np.zeros((len(edges), side * side), bool)
    seen[:, 0] = True
    while True:
        both = used & (seen[:, first] | seen[:, second])
        new = seen.copy()
        rows, columns = np.nonzero(both)
        new[rows, first[columns]] = new[rows, second[columns]] = True
        if np.array_equal(new, seen):
            cells: NDArray[np.int64] = seen.sum(1)
            return cells
        seen = new


def _percent(hits: NDArray[np.bool_]) -> float:
    return 100 * float(hits.mean())
