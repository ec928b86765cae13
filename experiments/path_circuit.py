"""The circuit of the simple-path task, which reads end points and missing edges before the edges that need them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from semprola.circuit import Circuit
from semprola.compiler.diagram import decision_diagram
from semprola.constraints.edge_orders import candidate_orders
from semprola.constraints.frontier import PathMachine
from semprola.constraints.paths import SimplePaths
from semprola.errors import SemprolaError

ENDS = ("early", "first")

Memory = tuple[tuple[int, int], ...]
"""Variables that have been read but not used yet, with their values."""

State = tuple[tuple[int, ...], int, Memory]
"""The state of a path machine, how many of its variables are done, and the values read ahead."""


@lru_cache(maxsize=8)
def path_circuit(constraint: SimplePaths, ends: str = "early") -> Circuit:
    """The circuit of simple paths, with the same models as ``constraint.to_circuit()`` but another variable order.

    A single circuit is a chain of choices, each with weights that depend on the network's inputs. If "the path ends
    here" is read after the last edge of a node, it follows from the edges, and the network must get every edge right.
    If it is read before the first edge of the node, the network can copy it from its inputs, and only edges that lead
    there remain to choose from.

    Args:
        constraint: simple paths of an undirected graph, with end points as labels or as inputs.
        ends: "early" to read an end point right before the first edge of its node; "first" to read all end points
            before all edges, as the circuit of the released code does. The choices then differ for every pair of end
            points, which makes the circuit several times larger.

    Returns:
        The smallest circuit among several orders of the edges.

    Raises:
        SemprolaError: if `ends` is neither of these.

    Example:
        >>> import networkx as nx
        >>> from semprola.constraints import simple_paths
        >>> paths = simple_paths(nx.path_graph(3), endpoints="labels")
        >>> path_circuit(paths).model_count() == paths.to_circuit().model_count() == 3
        True
    """
    if ends not in ENDS:
        raise SemprolaError(f"ends must be {' or '.join(map(repr, ENDS))}, not {ends!r}")
    names = constraint.labels
    labels = tuple(name for name in names if name not in constraint.given)
    made = []
    for edges in candidate_orders(constraint.graph, None) if constraint.order is None else [list(constraint.order)]:
        machine = _EarlyMachine(constraint, edges, ends == "first")
        made.append(
            decision_diagram(
                labels, machine.start, machine.transition, machine.accept, given=constraint.given, order=machine.order
            )
        )
    return min(made, key=lambda circuit: circuit.num_edges)


class _EarlyMachine:
    """A path machine that receives some variables before it needs them."""

    def __init__(self, constraint: SimplePaths, edges: Sequence[int], ends_first: bool) -> None:
        graph, count = constraint.graph, len(constraint.graph.ends)
        end = {v: count + v for v in range(len(graph.nodes))}
        self.ends = frozenset(end.values())
        there = {e: count + len(end) + i for i, e in enumerate(constraint.present)}
        self.machine = PathMachine(
            graph, edges, constraint.rules, range(count), there, [(variable,) for variable in end.values()]
        )
        self.order: list[int] = list(end.values()) if ends_first else []
        for e in edges:
            before = [end[v] for v in graph.ends[e]] + ([there[e]] if e in there else [])
            self.order += [variable for variable in dict.fromkeys(before) if variable not in self.order]
            self.order.append(e)
        self.order += [variable for variable in end.values() if variable not in self.order]
        self.start: State = (self.machine.start, 0, ())

    def transition(self, state: State, position: int, value: int) -> State | None:
        """See `decision_diagram`."""
        inner, done, memory = state
        told = dict(memory)
        told[self.order[position]] = value
        if sum(told[variable] for variable in told if variable in self.ends) > 2:
            return None  # a path has two ends; checking this later would need a state for every set of nodes
        while done < len(self.machine.order) and (variable := self.machine.order[done]) in told:
            after = self.machine.transition(inner, done, told.pop(variable))
            if after is None:
                return None
            inner, done = after, done + 1
        return inner, done, tuple(sorted(told.items()))

    def accept(self, state: State) -> bool:
        """Whether the path is complete."""
        return self.machine.accept(state[0])
