"""Simple paths and simple cycles of a graph, with one label per edge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import Expansion, reduce_levels
from semprola.constraints.edge_orders import candidate_orders, race
from semprola.constraints.family import Family, label_names, whole_number
from semprola.constraints.frontier import PathMachine, PathRules
from semprola.constraints.graphs import EdgeGraph, path_ends, read_graph, single_walk
from semprola.errors import LabelError
from semprola.logic.messages import brief

_ENDPOINTS = (None, "any", "given", "labels")


def simple_paths(
    graph: Any,
    source: Hashable | None = None,
    target: Hashable | None = None,
    *,
    endpoints: str | None = None,
    max_length: int | None = None,
    min_length: int | None = None,
    given_edges: bool | Iterable[tuple[Any, Any]] | None = None,
    labels: Iterable[str] | Mapping[Any, str] | None = None,
    order: Iterable[tuple[Any, Any]] | None = None,
) -> SimplePaths:
    """Sets of edges that form one path that visits no node twice.

    The frontier method builds a zero-suppressed decision diagram whose size depends not on the number of paths, but on
    how many nodes lie between the edges already read and those to come. Several orders of the edges are tried at once.

    Args:
        graph: a networkx ``Graph`` or ``DiGraph``; labels are its edges in ``graph.edges`` order, named ``"u-v"`` or,
            if directed, ``"u->v"``.
        source, target: the two ends of the path.
        endpoints: in place of source and target: ``"any"`` for any two distinct nodes; ``"labels"`` for an additional
            label ``"end u"`` per node that says whether the path ends there; ``"given"`` to make these inputs x.
            Directed graphs have ``"start u"`` and ``"end u"``.
        max_length: the most edges that the path may have.
        min_length: the fewest edges that the path may have.
        given_edges: which edges may be missing; an input ``"has u-v"`` says whether each of them exists. True means all
            edges; the default is all with ``endpoints="given"``, and none otherwise.
        labels: other names for the edges, in ``graph.edges`` order or by edge.
        order: the order in which to read the edges, if you know a good one.

    Raises:
        LabelError: this is not a graph, a node or an edge is not in it, or names clash.
        ValueError: the endpoints or bounds are invalid.

    Example:
        >>> import networkx as nx
        >>> paths = simple_paths(nx.grid_2d_graph(4, 4), source=(0, 0), target=(3, 3))
        >>> paths.to_circuit().model_count()
        184
        >>> paths.labels[:2]
        ('(0, 0)-(1, 0)', '(0, 0)-(0, 1)')
    """
    read, number = read_graph(graph, "simple_paths", labels)
    if endpoints not in _ENDPOINTS:
        raise ValueError(f"simple_paths: endpoints must be 'any', 'given' or 'labels', not {brief(endpoints)}")
    fixed = None
    if endpoints is None:
        if source is None or target is None:
            raise ValueError("simple_paths: give source= and target=, or endpoints='any', 'given' or 'labels'")
        fixed = number(source, "source"), number(target, "target")
        if fixed[0] == fixed[1]:
            raise ValueError(f"simple_paths: source and target are both {brief(source)}: for closed paths use cycles")
    elif source is not None or target is not None:
        raise ValueError(f"simple_paths: give source and target or endpoints={endpoints!r}, not both")
    rules = _rules("simple_paths", PathRules(fixed), min_length, max_length)
    if given_edges is None:
        given_edges = endpoints == "given"
    edge_number = _edge_numbers(graph, "simple_paths")
    present = range(len(read.ends)) if given_edges is True else [edge_number(e) for e in given_edges or ()]
    mode = endpoints if endpoints in ("given", "labels") else "none"
    return SimplePaths("simple_paths", read, rules, mode, tuple(sorted(set(present))), _order(order, edge_number, read))


def cycles(
    graph: Any,
    *,
    max_length: int | None = None,
    min_length: int | None = None,
    labels: Iterable[str] | Mapping[Any, str] | None = None,
    order: Iterable[tuple[Any, Any]] | None = None,
) -> SimplePaths:
    """Sets of edges that form one closed path that visits no node twice; arguments as for :func:`simple_paths`.

    Example:
        >>> import networkx as nx
        >>> cycles(nx.grid_2d_graph(3, 3)).to_circuit().model_count()
        13
    """
    read, _ = read_graph(graph, "cycles", labels)
    rules = _rules("cycles", PathRules(cycle=True), min_length, max_length)
    return SimplePaths("cycles", read, rules, "none", (), _order(order, _edge_numbers(graph, "cycles"), read))


class SimplePaths(Family):
    """One simple path or cycle of a graph; see :func:`simple_paths` and :func:`cycles`."""

    advice = "bound the length with max_length=, or pass order="

    def __init__(
        self,
        family: str,
        graph: EdgeGraph,
        rules: PathRules,
        ends: str,
        present: tuple[int, ...],
        order: tuple[int, ...] | None,
    ) -> None:
        self.family, self.graph, self.rules = family, graph, rules
        self.ends, self.present, self.order = ends, present, order
        sides = () if ends == "none" else (("start", "end") if graph.directed else ("end",))
        self.end_names = tuple(f"{side} {node}" for node in graph.nodes for side in sides)
        self.present_names = tuple(f"has {graph.labels[e]}" for e in present)
        label_names([*graph.labels, *self.end_names, *self.present_names], family)

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        return self.graph.labels + self.end_names + self.present_names

    @property
    def given(self) -> tuple[str, ...]:
        """The end points if they are inputs, then the inputs for the existence of edges."""
        return (self.end_names if self.ends == "given" else ()) + self.present_names

    def key(self) -> Hashable:
        return self.family, self.graph, self.rules, self.ends, self.present, self.order

    def describe(self) -> str:
        rules, parts = self.rules, [str(self.graph)]
        if rules.fixed is not None:
            parts.append(" to ".join(self.graph.nodes[v] for v in rules.fixed))
        elif not rules.cycle:
            parts.append("any end points" if self.ends == "none" else f"end points as {self.ends}")
        if rules.shortest > 1:
            parts.append(f"at least {rules.shortest} long")
        if rules.longest is not None:
            parts.append(f"at most {rules.longest} long")
        return f"{self.family}({', '.join(parts)})"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        selected = self.graph.selected(columns, rows)
        length = selected.sum(axis=1)
        holds = length >= self.rules.shortest
        if self.rules.longest is not None:
            holds &= length <= self.rules.longest
        holds &= single_walk(self.graph, selected, self.rules.fixed, self.rules.cycle)
        if self.end_names:
            stated = np.stack([columns[name] for name in self.end_names], axis=1)
            holds &= (stated == path_ends(self.graph, selected)).all(axis=1)
        for e, name in zip(self.present, self.present_names, strict=True):
            holds &= columns[name] | ~selected[:, e]
        return np.asarray(holds, bool)

    def _build(self, budget: Budget) -> Circuit:
        names = self.labels
        labels = tuple(name for name in names if name not in set(self.given))
        source = None if self.rules.fixed is None else self.rules.fixed[0]
        orders = candidate_orders(self.graph, source) if self.order is None else [list(self.order)]
        machines = [self._machine(order) for order in orders]
        runners = [
            Expansion(machine.start, machine.transition, machine.accept, [names[v] for v in machine.order], budget)
            for machine in machines
        ]
        # short paths from a source are usually best read from there: the other orders run only in case they are not
        bounded = source is not None and self.rules.longest is not None
        winner = race(runners, [1.0] + [4.0 if bounded else 1.0] * (len(runners) - 1))
        order = machines[winner].order
        return reduce_levels(runners[winner].levels(), labels, order, given=self.given, budget=budget)

    def _machine(self, order: list[int]) -> PathMachine:
        # labels lists edges, end points, then existence of edges: the same order as labels, then given in the circuit
        edges, sides = len(self.graph.ends), len(self.end_names) // len(self.graph.nodes)
        ends = [range(edges + sides * v, edges + sides * (v + 1)) for v in range(len(self.graph.nodes))]
        first = edges + len(self.end_names)
        present = {e: first + i for i, e in enumerate(self.present)}
        return PathMachine(self.graph, order, self.rules, range(edges), present, ends if sides else ())


def _rules(what: str, rules: PathRules, min_length: int | None, max_length: int | None) -> PathRules:
    shortest = 1 if min_length is None else max(1, whole_number(min_length, "min_length", what))
    longest = None if max_length is None else whole_number(max_length, "max_length", what, 1)
    if longest is not None and shortest > longest:
        raise ValueError(f"{what}: min_length={min_length} is more than max_length={max_length}")
    return PathRules(rules.fixed, rules.cycle, shortest, longest)


def _edge_numbers(graph: Any, what: str) -> Any:
    known: dict[Any, int] = {}
    for i, (u, v) in enumerate(graph.edges()):
        known[u, v] = i
        if not graph.is_directed():
            known[v, u] = i

    def number(edge: Any) -> int:
        try:
            return known[tuple(edge)]
        except (KeyError, TypeError):
            raise LabelError(f"{what}: {brief(edge)} is not an edge of the graph") from None

    return number


def _order(order: Iterable[Any] | None, number: Any, graph: EdgeGraph) -> tuple[int, ...] | None:
    if order is None:
        return None
    edges = tuple(number(edge) for edge in order)
    if sorted(edges) != list(range(len(graph.ends))):
        raise LabelError(f"order must list each of the {len(graph.ends)} edges once")
    return edges
