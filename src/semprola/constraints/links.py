"""Lower bounds on the edges needed to join open paths into one cycle, to discard states early if length is bounded."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

from semprola.constraints.graphs import EdgeGraph

FAR = 2**30
"""The distance between nodes that are not connected."""

_MOST_PATHS = 4
"""The shortest way to join at most this many open paths is found by trying all."""


class Distances:
    """Distances over the edges not yet read, updated as reading goes on.

    Args:
        graph: the graph.
        edges: its edges in the order of reading.
    """

    def __init__(self, graph: EdgeGraph, edges: Sequence[int]) -> None:
        self.directed = graph.directed
        self._ends = [graph.ends[e] for e in edges]
        self._near: list[list[tuple[int, int]]] = [[] for _ in graph.nodes]
        for position, (u, v) in enumerate(self._ends):
            self._near[u].append((v, position))
            if not graph.directed:
                self._near[v].append((u, position))
        self._known: dict[int, tuple[int, list[int]]] = {}

    def after(self, position: int, start: int) -> list[int]:
        """Distances from a node to all others over the edges after a position."""
        at, row = self._known.get(start, (-1, []))
        # an edge between nodes of equal distance lies on no shortest path
        stale = not row or at > position or any(row[u] != row[v] for u, v in self._ends[at + 1 : position + 1])
        if stale:
            row = [FAR] * len(self._near)
            row[start] = 0
            queue = [start]
            for u in queue:
                for v, place in self._near[u]:
                    if place > position and row[v] == FAR:
                        row[v] = row[u] + 1
                        queue.append(v)
        self._known[start] = position, row
        return row


class Links:
    """Lower bounds on the number of edges needed after one position.

    Args:
        distances: distances for the same order of reading.
        position: the last edge read.
    """

    def __init__(self, distances: Distances, position: int) -> None:
        self._distances, self._position = distances, position
        self._rows: dict[int, list[int]] = {}

    def least(self, paths: list[tuple[int, int]]) -> int:
        """A lower bound on the edges that join these paths into one cycle.

        Args:
            paths: the two ends of each path: where edges may enter and where they may leave; in an undirected graph,
                in any order.
        """
        if not paths:
            return 0
        if len(paths) <= _MOST_PATHS:
            return min(self._round([paths[0], *rest]) for rest in permutations(paths[1:]))
        # every end must be linked to some end of another path
        directed = self._distances.directed
        starts = [(leave, enter) for enter, leave in paths]
        targets = [enter for enter, _ in paths]
        if not directed:
            starts += paths
            targets += [leave for _, leave in paths]
        total = sum(min(self._row(own)[to] for to in targets if to not in (own, mate)) for own, mate in starts)
        return total if directed else (total + 1) // 2

    def _round(self, paths: list[tuple[int, int]]) -> int:
        """The length of the shortest links that join the paths in this order, each in the better direction."""
        (home, here), *others = paths
        ahead, back, there = 0, FAR, home  # the length so far if the last path is left at `here`, and at `there`
        for enter, leave in others:
            from_here, from_there = self._row(here), self._row(there)
            in_at_enter = min(ahead + from_here[enter], back + from_there[enter])
            in_at_leave = min(ahead + from_here[leave], back + from_there[leave])
            ahead, back = in_at_enter, FAR if self._distances.directed else in_at_leave
            here, there = leave, enter
        return min(ahead + self._row(here)[home], back + self._row(there)[home])

    def _row(self, node: int) -> list[int]:
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = self._distances.after(self._position, node)
        return row
