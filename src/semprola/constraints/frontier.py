"""The frontier method for paths and cycles (Knuth's Simpath): a state machine that reads edges one by one.

For every node of the frontier, a state keeps its *mate*, which says how the chosen edges use the node:

- the node's own number: no chosen edge meets it;
- 0: it lies inside a path, and no further edge may meet it;
- another node's number: it is one end of a path, and that node is the other end;
- the number `closed` (one above all nodes): it is one end of a path whose other end has left the frontier for good.

In a directed graph, the mate is negative if further edges may enter the node, and positive if they may leave it. A path
between fixed nodes is a cycle through one more edge, from the target back to the source, which is there from the start.
So in these modes a set of edges is complete when a path closes into a cycle and no other path is open.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from semprola.constraints.edge_orders import last_edges
from semprola.constraints.graphs import EdgeGraph
from semprola.constraints.links import Distances, Links

State = tuple[int, ...]  # the number of edges so far (0 where it does not matter), then the mates
Step = Callable[[State, int], State | None]

DONE: State = ()
"""The path or cycle is complete: no further edge may be chosen."""


@dataclass(frozen=True)
class PathRules:
    """Which edge sets are wanted.

    Attributes:
        fixed: source and target of the path, if they are fixed.
        cycle: whether cycles are wanted instead of paths.
        shortest, longest: bounds on the number of edges; None means no bound.
    """

    fixed: tuple[int, int] | None = None
    cycle: bool = False
    shortest: int = 1
    longest: int | None = None

    @property
    def open(self) -> bool:
        """Whether paths may end anywhere."""
        return self.fixed is None and not self.cycle

    @property
    def counts(self) -> bool:
        """Whether the number of edges is part of the state."""
        return self.shortest > 1 or self.longest is not None


class PathMachine:
    """The state machine for a graph, an edge order and rules.

    Args:
        present_variable: the variable "this edge exists", for edges that have one; it is read right after the edge.
        end_variables: for each node, the variable "the path ends here" (undirected), or "starts here" and "ends
            here" (directed); read right after the last edge of the node. Empty if there are none.

    Attributes:
        order: the variables in the order of reading.
        start: the state before the first variable.
    """

    def __init__(
        self,
        graph: EdgeGraph,
        edges: Sequence[int],
        rules: PathRules,
        edge_variable: Sequence[int],
        present_variable: Mapping[int, int],
        end_variables: Sequence[Sequence[int]] = (),
    ) -> None:
        self.order: list[int] = []
        self._steps: list[Step] = []
        frontier = _Frontier(graph, rules)
        self.start: State = (0, *_start_mates(frontier))
        last = last_edges(graph, edges)
        distances = Distances(graph, edges)
        if end_variables:
            for variable in (w for v, position in enumerate(last) if position < 0 for w in end_variables[v]):
                self._add(variable, _never)
        for position, e in enumerate(edges):
            ends = dict.fromkeys(graph.ends[e])
            new = [v for v in ends if v not in frontier.nodes]
            here = frontier.with_nodes([*frontier.nodes, *new])
            leaving = [v for v in ends if last[v] == position]
            frontier = here if end_variables else here.without(leaving)
            step = _EdgeStep(here, frontier, graph.ends[e], new, Links(distances, position))
            present = present_variable.get(e)
            self._add(edge_variable[e], step if present is None else _Marked(step))
            if present is not None:
                self._add(present, _present)
            for v in leaving if end_variables else ():
                after = frontier.without([v])
                for i, variable in enumerate(end_variables[v]):
                    sign = 0 if not graph.directed else (-1, 1)[i]
                    leaves = after if i == len(end_variables[v]) - 1 else None
                    self._add(variable, _EndStep(frontier, leaves, v, sign))
                frontier = after

    def transition(self, state: State, position: int, value: int) -> State | None:
        """See `decision_diagram`."""
        return self._steps[position](state, value)

    @staticmethod
    def accept(state: State) -> bool:
        """Whether the path or cycle is complete."""
        return not state

    def _add(self, variable: int, step: Step) -> None:
        self.order.append(variable)
        self._steps.append(step)


class _Frontier:
    """The nodes of the frontier at one position of the order; the mate of ``nodes[i]`` is entry i + 1 of a state."""

    def __init__(self, graph: EdgeGraph, rules: PathRules, nodes: Sequence[int] | None = None) -> None:
        self.graph, self.rules = graph, rules
        self.nodes = list(rules.fixed or ()) if nodes is None else list(nodes)
        self.closed = len(graph.nodes) + 1
        self.own = [0, *(v + 1 for v in self.nodes)]
        self.place = {number: i for i, number in enumerate(self.own)}

    def with_nodes(self, nodes: Sequence[int]) -> _Frontier:
        return _Frontier(self.graph, self.rules, nodes)

    def without(self, nodes: Sequence[int]) -> _Frontier:
        return self.with_nodes([v for v in self.nodes if v not in nodes])

    def idle(self, mates: list[int]) -> bool:
        """Whether no path is open: every node is unused or inside a path."""
        return all(not mate or mate == own for mate, own in zip(mates, self.own, strict=True))

    def close(self, mates: list[int], place: int) -> bool | None:
        """Let a node leave the frontier: no further edge meets it.

        Args:
            mates: a state with 0 in place of its number of edges; changed in place.

        Returns:
            True if this completes the path, None if it is not allowed, False otherwise.
        """
        mate = mates[place]
        if not mate or mate == self.own[place]:
            return False
        if not self.rules.open:
            return None
        mates[place] = 0
        other = abs(mate)
        if other == self.closed:
            return True if self.idle(mates) else None
        mark = -self.closed if self.graph.directed and mate > 0 else self.closed
        if mates.count(mark) == (1 if self.graph.directed else 2):
            return None  # a path has two ends; in a directed graph, one of each kind
        mates[self.place[other]] = mark
        return False


class _EdgeStep:
    """Reads an edge: joins paths if it is chosen, then removes nodes from the frontier that have no further edges."""

    def __init__(self, here: _Frontier, after: _Frontier, ends: tuple[int, int], new: list[int], links: Links) -> None:
        self.here, self.after, self.rules, self.links = here, after, here.rules, links
        self.loop = ends[0] == ends[1]
        self.tail, self.head = (here.place[v + 1] for v in ends)
        self.head_own = ends[1] + 1
        self.fresh = [v + 1 for v in new]
        self.kept = [here.place[own] for own in after.own[1:]]
        self.leaving = [i for i in range(1, len(here.own)) if i not in self.kept]
        self.join = self._join_directed if here.graph.directed else self._join
        self.known: dict[State, int] = {}
        self.plain = not self.fresh and not self.leaving and self.rules.longest is None

    def __call__(self, state: State, value: int) -> State | None:
        if not value and self.plain:
            return state
        if not state:
            return None if value else state
        used = state[0]
        mates = [*state, *self.fresh]
        mates[0] = 0
        done: bool | None = False
        if value:
            if self.rules.counts:
                used = used + 1 if self.rules.longest is not None else min(used + 1, self.rules.shortest)
            done = self.join(mates)
        for place in self.leaving:
            if not done and done is not None:
                done = self.here.close(mates, place)
        if done is None:
            return None
        longest = self.rules.longest
        if done:
            long_enough = used >= self.rules.shortest or not self.rules.counts
            return DONE if long_enough and (longest is None or used <= longest) else None
        result = (used, *[mates[i] for i in self.kept])
        if longest is not None and used + self._needed(result[1:]) > longest:
            return None
        return result

    def _join(self, mates: list[int]) -> bool | None:
        a, b = mates[self.tail], mates[self.head]
        if not a or not b:
            return None
        if a == self.head_own:
            return self._close_cycle(mates)
        if self.loop:
            return None
        mates[self.tail] = mates[self.head] = 0
        if a != self.here.closed:
            mates[self.here.place[a]] = b
        if b != self.here.closed:
            mates[self.here.place[b]] = a
        elif a == b:
            return True if self.here.idle(mates) else None
        return False

    def _join_directed(self, mates: list[int]) -> bool | None:
        a, b = mates[self.tail], mates[self.head]
        if a <= 0 or not (b < 0 or b == self.head_own):
            return None
        if a == self.head_own:
            return self._close_cycle(mates)
        if self.loop:
            return None
        mates[self.tail] = mates[self.head] = 0
        b = abs(b)
        if a != self.here.closed:
            mates[self.here.place[a]] = -b
        if b != self.here.closed:
            mates[self.here.place[b]] = a
        elif a == b:
            return True if self.here.idle(mates) else None
        return False

    def _close_cycle(self, mates: list[int]) -> bool | None:
        if self.rules.open:
            return None
        mates[self.tail] = mates[self.head] = 0
        return True if self.here.idle(mates) else None

    def _needed(self, mates: State) -> int:
        """A lower bound on the number of edges still needed; it does not depend on the number of edges so far."""
        needed = self.known.get(mates)
        if needed is None:
            ends = [(own, mate) for own, mate in zip(self.after.own[1:], mates, strict=True) if mate and mate != own]
            if self.rules.open:
                # joining the paths takes at least one edge per gap; a path with one end left counts as a whole path
                sides = sum(2 if abs(mate) == self.here.closed else 1 for _, mate in ends)
                needed = max(0, sides // 2 - 1)
            else:
                directed = self.here.graph.directed
                paths = [(own - 1, abs(mate) - 1) for own, mate in ends if (mate < 0 if directed else own < mate)]
                needed = self.links.least(paths)
            self.known[mates] = needed
        return needed


class _EndStep:
    """Reads "the path ends here" for a node, after its last edge."""

    def __init__(self, here: _Frontier, after: _Frontier | None, node: int, sign: int) -> None:
        self.here, self.sign, self.place = here, sign, here.place[node + 1]
        self.leaves = after is not None

    def __call__(self, state: State, value: int) -> State | None:
        if not state:
            return None if value else state
        mate = state[self.place]
        is_end = mate not in (0, self.here.own[self.place]) and mate * self.sign >= 0
        if is_end != bool(value):
            return None
        if not self.leaves:
            return state
        mates = [*state]
        mates[0] = 0
        done = self.here.close(mates, self.place)
        if done is None:
            return None
        if done:
            rules = self.here.rules
            return DONE if state[0] >= rules.shortest or not rules.counts else None
        del mates[self.place]
        mates[0] = state[0]
        return tuple(mates)


class _Marked:
    """An edge whose existence is an input: the state after choosing it is wrapped until the input is read."""

    def __init__(self, step: Step) -> None:
        self.step = step

    def __call__(self, state: State, value: int) -> Any:
        after = self.step(state, value)
        return (after,) if value and after is not None else after


def _present(state: Any, value: int) -> Any:
    """Reads whether an edge exists: a chosen edge must."""
    if len(state) == 1 and isinstance(state[0], tuple):
        return state[0] if value else None
    return state


def _never(state: State, value: int) -> State | None:
    """Reads "the path ends here" for a node without edges: it is never true."""
    return None if value else state


def _start_mates(frontier: _Frontier) -> list[int]:
    if not frontier.nodes:
        return []
    source, target = frontier.nodes
    # the extra edge leads from the target to the source: further edges may leave the source and enter the target
    return [target + 1, -source - 1 if frontier.graph.directed else source + 1]
