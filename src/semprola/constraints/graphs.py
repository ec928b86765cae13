"""Graphs for families of edge sets: numbered nodes and edges, one label per edge, and walks along chosen edges."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.constraints.family import label_names
from semprola.errors import LabelError
from semprola.logic.messages import brief


@dataclass(frozen=True)
class EdgeGraph:
    """A networkx graph with its nodes and edges numbered in the graph's own order.

    Attributes:
        nodes: names of the nodes, for labels and messages.
        ends: the two nodes of each edge; from the first to the second if directed.
        labels: the label of each edge.
        directed: whether edges have a direction.
    """

    nodes: tuple[str, ...]
    ends: tuple[tuple[int, int], ...]
    labels: tuple[str, ...]
    directed: bool

    def __str__(self) -> str:
        arrows = "directed edges" if self.directed else "edges"
        return f"{len(self.nodes)} nodes, {len(self.ends)} {arrows}"

    def selected(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        """Which edges each row selects, ``[rows, edges]``."""
        return np.stack([columns[name] for name in self.labels], axis=1).reshape(rows, len(self.labels))

    def incidence(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Two 0/1 arrays ``[edges, nodes]``: whether each edge starts, and whether it ends, at each node."""
        out = np.zeros((len(self.ends), len(self.nodes)), np.int64)
        into = np.zeros_like(out)
        for e, (u, v) in enumerate(self.ends):
            out[e, u] = into[e, v] = 1
        return out, into


def read_graph(
    graph: Any, what: str, labels: Iterable[str] | Mapping[Any, str] | None = None, *, directed: bool = True
) -> tuple[EdgeGraph, Callable[[Hashable, str], int]]:
    """Check a networkx graph and number its nodes and edges.

    Args:
        labels: names of the edges, in ``graph.edges`` order or by edge; by default ``"u-v"``, or ``"u->v"`` in a
            directed graph.

    Returns:
        The graph, and a function from a node, and the name of the argument it came from, to the node's number.
    """
    if not (hasattr(graph, "nodes") and hasattr(graph, "edges") and hasattr(graph, "is_multigraph")):
        raise LabelError(f"{what}: expected a networkx graph, not {type(graph).__name__}")
    if graph.is_multigraph():
        raise LabelError(f"{what}: parallel edges would share a label: pass a Graph or DiGraph, not a multigraph")
    if graph.is_directed() and not directed:
        raise LabelError(f"{what}: the graph must be undirected: pass graph.to_undirected()")
    number = {node: i for i, node in enumerate(graph.nodes)}
    edges = list(graph.edges())
    if not edges:
        raise LabelError(f"{what}: the graph has no edges, so there are no labels")
    arrow = "->" if graph.is_directed() else "-"
    if labels is None:
        chosen: list[Any] = [f"{u}{arrow}{v}" for u, v in edges]
    elif isinstance(labels, Mapping):
        chosen = [_edge_label(labels, edge, graph.is_directed(), what) for edge in edges]
    else:
        chosen = [labels] if isinstance(labels, str) else list(labels)
        if len(chosen) != len(edges):
            raise LabelError(f"{what}: {len(chosen)} labels for {len(edges)} edges")
    names = label_names(chosen, what)

    def node_number(node: Hashable, argument: str) -> int:
        try:
            return number[node]
        except (KeyError, TypeError):
            raise LabelError(f"{what}: {argument} {brief(node)} is not a node of the graph") from None

    ends = tuple((number[u], number[v]) for u, v in edges)
    return EdgeGraph(tuple(map(str, number)), ends, names, bool(graph.is_directed())), node_number


def _edge_label(labels: Mapping[Any, str], edge: tuple[Any, Any], directed: bool, what: str) -> str:
    if edge in labels:
        return labels[edge]
    if not directed and edge[::-1] in labels:
        return labels[edge[::-1]]
    raise LabelError(f"{what}: labels= has no name for the edge {brief(edge)}")


Rows = NDArray[np.bool_]


def single_walk(graph: EdgeGraph, selected: Rows, fixed: tuple[int, int] | None, cycle: bool) -> Rows:
    """Which rows select exactly the edges of one simple path (or cycle) with at least one edge.

    Args:
        selected: which edges each row selects, ``[rows, edges]``.
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
