"""Spanning trees and matchings of a graph, with one label per edge."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import Expansion, reduce_levels
from semprola.constraints.edge_orders import candidate_orders, last_edges, race
from semprola.constraints.family import Family
from semprola.constraints.graphs import EdgeGraph, read_graph

Labels = Iterable[str] | Mapping[Any, str] | None
State = tuple[int, ...]
Transition = Callable[[State, int, int], State | None]


def spanning_trees(graph: Any, *, labels: Labels = None) -> SpanningTrees:
    """Sets of edges that connect all nodes without a cycle.

    They are built by the frontier method: a state says which nodes of the frontier are already connected.

    Args:
        graph: an undirected networkx graph; labels are its edges in ``graph.edges`` order, named ``"u-v"``.
        labels: other names for the edges, in that order or by edge.

    Raises:
        LabelError: this is not a graph, or it is directed or has no edges; or names clash.

    Example:
        >>> import networkx as nx
        >>> spanning_trees(nx.complete_graph(4)).to_circuit().model_count()
        16
    """
    return SpanningTrees(read_graph(graph, "spanning_trees", labels, directed=False)[0])


def matchings(graph: Any, *, perfect: bool = False, labels: Labels = None) -> Matchings:
    """Sets of edges of which no two share a node.

    They are built by the frontier method: a state says which nodes of the frontier are already matched.

    Args:
        graph: an undirected networkx graph; labels are its edges in ``graph.edges`` order, named ``"u-v"``.
        perfect: whether every node must be matched.
        labels: other names for the edges, in that order or by edge.

    Raises:
        LabelError: this is not a graph, or it is directed or has no edges; or names clash.

    Example:
        >>> import networkx as nx
        >>> matchings(nx.grid_2d_graph(4, 4), perfect=True).to_circuit().model_count()
        36
    """
    return Matchings(read_graph(graph, "matchings", labels, directed=False)[0], bool(perfect))


class _EdgeFamily(Family):
    """Families of edge sets whose states are tuples with one number per node of the frontier."""

    advice = "take a sparser graph"

    def __init__(self, graph: EdgeGraph) -> None:
        self.graph = graph

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.graph.labels

    def key(self) -> Hashable:
        return self.graph

    @abstractmethod
    def _machine(self, order: Sequence[int]) -> Transition:
        """A function that says how a state changes at each edge of an order."""

    def _build(self, budget: Budget) -> Circuit:
        orders = candidate_orders(self.graph)
        start: State = ()
        runners = [
            Expansion(start, self._machine(order), lambda _: True, [self.graph.labels[e] for e in order], budget)
            for order in orders
        ]
        winner = race(runners)
        return reduce_levels(runners[winner].levels(), self.graph.labels, orders[winner], budget=budget)


class SpanningTrees(_EdgeFamily):
    """All nodes are connected without a cycle; see :func:`spanning_trees`."""

    def describe(self) -> str:
        return f"spanning_trees({self.graph})"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        selected = self.graph.selected(columns, rows)
        # a tree has one edge less than nodes; every node takes the smallest number that it is connected to
        holds = selected.sum(axis=1) == len(self.graph.nodes) - 1
        kept = selected[holds]
        smallest = np.tile(np.arange(len(self.graph.nodes)), (len(kept), 1))
        before = None
        while before is None or not np.array_equal(before, smallest):
            before = smallest.copy()
            for e, (u, v) in enumerate(self.graph.ends):
                least = np.minimum(smallest[:, u], smallest[:, v])
                smallest[:, u] = np.where(kept[:, e], least, smallest[:, u])
                smallest[:, v] = np.where(kept[:, e], least, smallest[:, v])
        holds[holds] = (smallest == 0).all(axis=1)
        return np.asarray(holds, bool)

    def _machine(self, order: Sequence[int]) -> Transition:
        plan = frontier_plan(self.graph, order)
        nodes = len(self.graph.nodes)
        met = {v for ends in self.graph.ends for v in ends}
        connected = len(met) == nodes

        def step(state: State, position: int, value: int) -> State | None:
            fresh, tail, head, leaving, final = plan[position]
            part = [*state, *fresh]  # the number of the connected part of each node
            if value:
                a, b = part[tail], part[head]
                if a == b:
                    return None
                part = [a if p == b else p for p in part]
            for place in leaving:
                name = part[place]
                part[place] = -1
                whole = final and connected and all(p == -1 for p in part)
                if name not in part and not whole:
                    return None  # nothing can reach this part any more, and it is not the whole graph
            return _renamed([p for p in part if p != -1])

        return step


class Matchings(_EdgeFamily):
    """No two chosen edges share a node; see :func:`matchings`."""

    def __init__(self, graph: EdgeGraph, perfect: bool) -> None:
        super().__init__(graph)
        self.perfect = perfect

    def key(self) -> Hashable:
        return self.graph, self.perfect

    def describe(self) -> str:
        return f"matchings({self.graph}{', perfect' * self.perfect})"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        selected = self.graph.selected(columns, rows).astype(np.int64)
        out, into = self.graph.incidence()
        degree = selected @ (out + into)
        return np.asarray(np.all((degree == 1) if self.perfect else (degree <= 1), axis=1), bool)

    def _machine(self, order: Sequence[int]) -> Transition:
        plan = frontier_plan(self.graph, order)
        met = {v for ends in self.graph.ends for v in ends}
        hopeless = self.perfect and len(met) < len(self.graph.nodes)

        def step(state: State, position: int, value: int) -> State | None:
            fresh, tail, head, leaving, _ = plan[position]
            if hopeless:
                return None
            matched = [*state, *(0 for _ in fresh)]
            if value:
                if tail == head or matched[tail] or matched[head]:
                    return None
                matched[tail] = matched[head] = 1
            if self.perfect and not all(matched[place] for place in leaving):
                return None
            return (
                tuple([bit for place, bit in enumerate(matched) if place not in leaving]) if leaving else tuple(matched)
            )

        return step


Plan = tuple[tuple[int, ...], int, int, tuple[int, ...], bool]


def frontier_plan(graph: EdgeGraph, order: Sequence[int]) -> list[Plan]:
    """What happens to the frontier at each edge of an order.

    Returns:
        For each edge: unused numbers for the nodes that enter; the indices of its ends in the frontier; the indices
        that leave after it; whether it is the last edge.
    """
    last = last_edges(graph, order)
    frontier: list[int] = []
    plan: list[Plan] = []
    for position, e in enumerate(order):
        ends = dict.fromkeys(graph.ends[e])
        new = [v for v in ends if v not in frontier]
        fresh = tuple(range(len(frontier), len(frontier) + len(new)))
        frontier += new
        tail, head = (frontier.index(v) for v in graph.ends[e])
        leaving = tuple(frontier.index(v) for v in ends if last[v] == position)
        frontier = [v for v in frontier if last[v] != position]
        plan.append((fresh, tail, head, leaving, position == len(order) - 1))
    return plan


def _renamed(parts: list[int]) -> State:
    """The same partition with its parts numbered in order of first appearance, so equal partitions are equal tuples."""
    number: dict[int, int] = {}
    return tuple([number.setdefault(p, len(number)) for p in parts])
