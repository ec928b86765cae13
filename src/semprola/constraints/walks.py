"""Checks whether a set of edges is one path or cycle by walking along it, which needs no diagram."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from semprola.constraints.graphs import EdgeGraph

Rows = NDArray[np.bool_]


def single_walk(graph: EdgeGraph, selected: Rows, fixed: tuple[int, int] | None, cycle: bool) -> Rows:
    """Which rows select exactly the edges of one simple path (or cycle) with at least one edge.

    Args:
        graph: the graph.
        selected: which edges each row selects, ``[rows, edges]``.
        fixed: source and target of the path, if they are fixed.
        cycle: whether a cycle is wanted.
    """
    loops = np.array([u == v for u, v in graph.ends])
    total = selected.sum(axis=1)
    has_loop = selected[:, loops].any(axis=1)
    out, into = _degrees(graph, selected)
    if graph.directed:
        fits = ((out <= 1) & (into <= 1)).all(axis=1)
        starts, stops = (out == 1) & (into == 0), (out == 0) & (into == 1)
        fits &= (starts.sum(axis=1) == (not cycle)) & (stops.sum(axis=1) == (not cycle))
        if fixed is not None:
            fits &= starts[:, fixed[0]] & stops[:, fixed[1]]
    else:
        degree = out + into
        starts = degree == 1
        fits = (degree <= 2).all(axis=1) & (starts.sum(axis=1) == (0 if cycle else 2))
        if fixed is not None:
            fits &= starts[:, fixed[0]] & starts[:, fixed[1]]
    fits &= ~has_loop & (total > 0)
    rows = np.flatnonzero(fits)
    if cycle:
        # every selected node has an edge in and an edge out: start anywhere
        first = np.array([u for u, _ in graph.ends])[selected[rows].argmax(axis=1)]
    else:
        first = starts[rows].argmax(axis=1)
    fits[rows] = _walk_length(graph, selected[rows], first) == total[rows]
    return np.asarray(fits | (has_loop & (total == 1)) if cycle else fits, bool)


def path_ends(graph: EdgeGraph, selected: Rows) -> Rows:
    """Whether the path starts, and whether it ends, at each node; in an undirected graph, whether it does either."""
    out, into = _degrees(graph, selected)
    if not graph.directed:
        return np.asarray(out + into == 1)
    both = np.stack([(out == 1) & (into == 0), (out == 0) & (into == 1)], axis=2)
    return both.reshape(len(selected), 2 * len(graph.nodes))


def _degrees(graph: EdgeGraph, selected: Rows) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    out, into = graph.incidence()
    chosen = selected.astype(np.int64)
    return chosen @ out, chosen @ into


def _walk_length(graph: EdgeGraph, selected: Rows, first: NDArray[np.int64]) -> NDArray[np.int64]:
    """The length of a walk from `first` that never turns back, until it is stuck or back at `first`."""
    edges = len(graph.ends)
    incident: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
    for e, (u, v) in enumerate(graph.ends):
        incident[u].append((e, v))
        if not graph.directed:
            incident[v].append((e, u))
    width = max(map(len, incident))
    # nodes with fewer edges are padded with an edge that no row selects
    table = np.array([[*near, *[(edges, 0)] * (width - len(near))] for near in incident], np.int64)
    padded = np.concatenate([selected, np.zeros((len(selected), 1), bool)], axis=1)
    length = np.zeros(len(selected), np.int64)
    active = np.arange(len(selected))
    here, last = first.astype(np.int64), np.full(len(selected), -1)
    while len(active):
        options = table[here, :, 0]
        usable = padded[active[:, None], options] & (options != last[:, None])
        moving = usable.any(axis=1)
        active, here = active[moving], here[moving]
        step = table[here, usable[moving].argmax(axis=1)]
        last, here = step[:, 0], step[:, 1]
        length[active] += 1
        away = here != first[active]
        active, here, last = active[away], here[away], last[away]
    return length
