"""Chooses the order in which a frontier method reads the edges: candidates, and a race between them.

The frontier after some edges is the set of nodes that have both edges already read and edges still to come. States
describe its nodes, so a narrow frontier is good, but only a trial tells which of two equally narrow orders has fewer
states. On a grid, the anti-diagonal order wins by far if the length is bounded, the row-by-row order if it is not.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Any

from semprola.compiler.diagram import Expansion
from semprola.constraints.graphs import EdgeGraph

_CANDIDATES = 3
_GROWTH = 3.0
"""The factor by which a frontier node multiplies the states: it is unused, inside a path, or an end of one."""


def race(expansions: Sequence[Expansion[Any]], handicaps: Sequence[float] | None = None) -> int:
    """Find the expansion that needs the fewest nodes: they take turns, and the smallest so far goes next.

    Returns:
        The index of the first expansion to finish.
    """
    factors = handicaps or [1.0] * len(expansions)
    queue = [(0.0, i) for i in range(len(expansions))]
    while True:
        _, i = heapq.heappop(queue)
        runner = expansions[i]
        runner.advance()
        if runner.finished:
            return i
        heapq.heappush(queue, (runner.num_nodes * factors[i], i))


def candidate_orders(graph: EdgeGraph, source: int | None = None) -> list[list[int]]:
    """Edge orders worth trying.

    Returns:
        The order by distance from the source or from a remote node; then others with a narrow frontier.
    """
    near = _neighbours(graph)
    start = _far_node(near, 0) if source is None else source
    vertex_orders = [
        _breadth_first(near, start),
        list(range(len(graph.nodes))),
        _narrowest(near, start),
        _breadth_first(near, _far_node(near, start)),
    ]
    orders: dict[float, list[int]] = {}
    for vertices in vertex_orders:
        order = _by_last_end(graph, vertices)
        # orders of equal cost are usually mirror images of each other
        orders.setdefault(_cost(graph, order), order)
    by_distance = next(iter(orders.values()))
    ranked = [orders[cost] for cost in sorted(orders)][:_CANDIDATES]
    return [by_distance, *(order for order in ranked if order is not by_distance)]


def last_edges(graph: EdgeGraph, order: Sequence[int]) -> list[int]:
    """The position in the order of the last edge at each node; -1 for nodes without edges."""
    last = [-1] * len(graph.nodes)
    for position, e in enumerate(order):
        for v in graph.ends[e]:
            last[v] = position
    return last


def _cost(graph: EdgeGraph, order: list[int]) -> float:
    """The expected number of states: exponential in the width of the frontier."""
    last = last_edges(graph, order)
    frontier: set[int] = set()
    cost = 0.0
    for position, e in enumerate(order):
        frontier.update(graph.ends[e])
        frontier -= {v for v in graph.ends[e] if last[v] == position}
        cost += _GROWTH ** min(len(frontier), 300)
    return cost


def _by_last_end(graph: EdgeGraph, vertices: list[int]) -> list[int]:
    place = {v: i for i, v in enumerate(vertices)}

    def key(e: int) -> tuple[int, int, int]:
        u, v = graph.ends[e]
        return max(place[u], place[v]), min(place[u], place[v]), e

    return sorted(range(len(graph.ends)), key=key)


def _neighbours(graph: EdgeGraph) -> list[list[int]]:
    near: list[dict[int, None]] = [{} for _ in graph.nodes]
    for u, v in graph.ends:
        if u != v:
            near[u][v] = None
            near[v][u] = None
    return [list(others) for others in near]


def _breadth_first(near: list[list[int]], start: int) -> list[int]:
    """All nodes by distance from `start`, then those of other components."""
    order: list[int] = []
    seen = [False] * len(near)
    for root in (start, *range(len(near))):
        if seen[root]:
            continue
        seen[root] = True
        queue = [root]
        for v in queue:
            for other in near[v]:
                if not seen[other]:
                    seen[other] = True
                    queue.append(other)
        order.extend(queue)
    return order


def _far_node(near: list[list[int]], start: int) -> int:
    """The last node that a breadth-first search from `start` meets."""
    order, seen = [start], {start}
    for v in order:
        for other in near[v]:
            if other not in seen:
                seen.add(other)
                order.append(other)
    return order[-1]


def _narrowest(near: list[list[int]], start: int) -> list[int]:
    """Grow from `start`, always adding the node that leaves the narrowest frontier."""
    outside = [len(others) for others in near]
    order: list[int] = []
    taken = [False] * len(near)
    boundary: dict[int, int] = {start: 0}  # reachable nodes, and the step at which each was first seen
    for step in range(len(near)):
        if not boundary:
            boundary = {next(v for v, done in enumerate(taken) if not done): step}

        rank = {
            v: ((outside[v] > 0) - sum(taken[w] and outside[w] == 1 for w in near[v]), seen)
            for v, seen in boundary.items()
        }
        chosen = min(rank, key=rank.__getitem__)
        del boundary[chosen]
        taken[chosen] = True
        order.append(chosen)
        for other in near[chosen]:
            outside[other] -= 1
            if not taken[other]:
                boundary.setdefault(other, step)
    return order
