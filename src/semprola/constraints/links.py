"""Lower bounds on the edges needed to join open paths into one cycle, to discard states early if length is bounded."""

from __future__ import annotations

from collections.abc import Sequence

from semprola.constraints.graphs import EdgeGraph

FAR = 2**30
"""The distance between nodes that are not connected."""


class Distances:
    """Distances over the edges not yet read, updated as reading goes on."""

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
    """Lower bounds on the number of edges needed after one position."""

    def __init__(self, distances: Distances, position: int) -> None:
        self._distances, self._position = distances, position
        self._rows: dict[int, list[int]] = {}

    def least(self, paths: list[tuple[int, int]]) -> int:
        """A lower bound on the edges that join these paths into one cycle.

        Args:
            paths: the two ends of each path: where edges may enter and where they may leave; in an undirected graph,
                in any order.
        """
        # every end must be linked to some end of another path, or to the other end of the only one
        directed = self._distances.directed
        starts = [(leave, enter) for enter, leave in paths]
        targets = [enter for enter, _ in paths]
        if not directed:
            starts += paths
            targets += [leave for _, leave in paths]
        total = 0
        for own, mate in starts:
            row = self._row(own)
            total += min((row[to] for to in targets if to not in (own, mate)), default=row[mate])
        return total if directed else (total + 1) // 2

    def _row(self, node: int) -> list[int]:
        row = self._rows.get(node)
        if row is None:
            row = self._rows[node] = self._distances.after(self._position, node)
        return row
