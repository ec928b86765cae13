"""Elimination orders of the graph in which variables of one clause are neighbours, and their trees of bags.

An elimination order gives a tree decomposition: eliminating a variable turns its remaining neighbours into a clique,
its bag. The width is the size of the largest bag; at worst, circuits guided by the order are exponential in it.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from semprola.circuit.builder import watched
from semprola.errors import FormatError

Method = Literal["min-fill", "min-degree"]


def elimination_order(
    num_vars: int, cliques: Iterable[Sequence[int]], method: Method, check: Callable[[], None] | None = None
) -> list[int]:
    """An order in which greedy elimination keeps the bags small: the same on every machine.

    Ties go to the variable with the fewest neighbours left, then to the last one: a path is eliminated from its end.

    Args:
        cliques: sets of variables that are all neighbours of each other, e.g. the variables of each clause.
        method: which variable is next: the one that adds the fewest edges, or the one with the fewest neighbours.
    """
    look = check or (lambda: None)
    graph = primal_graph(num_vars, _checked(num_vars, cliques, look), look)
    found = _greedy(graph, method, range(num_vars, 0, -1), num_vars + 1, look)
    return [] if found is None else found[0]


def narrow_order(
    num_vars: int, cliques: Iterable[Sequence[int]], most: int, check: Callable[[], None] | None = None
) -> list[int] | None:
    """The order of `elimination_order` by "min-fill", or None as soon as a bag has more than `most` neighbours.

    Finding an order takes long where bags are large, and such an order is of no use.
    """
    look = check or (lambda: None)
    graph = primal_graph(num_vars, _checked(num_vars, cliques, look), look)
    found = _greedy(graph, "min-fill", range(num_vars, 0, -1), most + 1, look)
    return None if found is None else found[0]


def narrow_width(
    num_vars: int, cliques: Iterable[Sequence[int]], most: int, check: Callable[[], None] | None = None
) -> int | None:
    """The width of a quickly found order, or None as soon as it exceeds `most`."""
    look = check or (lambda: None)
    sets = _checked(num_vars, cliques, look)
    if any(len(members) > most + 1 for members in sets):
        return None
    found = _greedy(primal_graph(num_vars, sets, look), "min-degree", range(num_vars), most + 1, look)
    return None if found is None else found[1]


def bucket_tree(
    order: npt.NDArray[np.integer] | Sequence[int],
    cliques: Iterable[Sequence[int]],
    check: Callable[[], None] | None = None,
) -> npt.NDArray[np.int32]:
    """The tree of bags: the parent of a variable is the member of its bag that is eliminated first.

    Returns:
        [num_vars] the parent of each variable, -1 for roots.
    """
    parent = np.full(len(order), -1, np.int32)
    for variable, bag in _bags(order, cliques, check or (lambda: None)):
        if bag:
            parent[variable] = bag[0]
    return parent


def _bags(
    order: npt.NDArray[np.integer] | Sequence[int], cliques: Iterable[Sequence[int]], check: Callable[[], None]
) -> Iterator[tuple[int, list[int]]]:
    """Each variable with its bag, in the order of elimination; bags are sorted in this order, too.

    Only the first member of a bag needs to know the others: when it is eliminated, it passes them on to the first of
    its own bag. So no clique is ever written out.
    """
    variables = [int(v) for v in order]
    n = len(variables)
    if sorted(variables) != list(range(n)):
        raise FormatError(f"order: not a permutation of 0 … {n - 1}")
    position = [0] * n
    for i, v in enumerate(variables):
        position[v] = i
    later: list[set[int]] = [set() for _ in range(n)]
    for clique in _checked(n, cliques, check):
        if clique:
            first = min(clique, key=position.__getitem__)
            later[first].update(clique)
    for v in variables:
        check()
        bag = sorted(later[v] - {v}, key=position.__getitem__)
        later[v] = set()
        if bag:
            later[bag[0]].update(bag)
        yield v, bag


def _checked(num_vars: int, cliques: Iterable[Sequence[int]], check: Callable[[], None]) -> list[list[int]]:
    if not 0 <= num_vars < 2**30:
        raise FormatError(f"num_vars: {num_vars} is not between 0 and {2**30 - 1}")
    sets = []
    for i, clique in enumerate(watched(cliques, check)):
        members = sorted({int(v) for v in clique})
        if members and not 0 <= members[0] <= members[-1] < num_vars:
            bad = members[0] if members[0] < 0 else members[-1]
            raise FormatError(f"clique {i}: {bad} is not a variable between 0 and {num_vars - 1}")
        sets.append(members)
    return sets


def primal_graph(
    num_vars: int, sets: Iterable[Sequence[int]], check: Callable[[], None] | None = None
) -> list[set[int]]:
    """The neighbours of each variable: all that share a set with it."""
    graph: list[set[int]] = [set() for _ in range(num_vars)]
    for members in watched(sets, check):
        for v in members:
            graph[v].update(members)
    for v in watched(range(num_vars), check):
        graph[v].discard(v)
    return graph


def _greedy(
    graph: list[set[int]], method: Method, tie: Sequence[float], limit: int, check: Callable[[], None]
) -> tuple[list[int], int] | None:
    """One greedy elimination, with ties broken by `tie`, and its width; None as soon as that reaches the limit."""
    neighbours = [set(s) for s in watched(graph, check)]

    def cost(v: int) -> int:
        degree = len(neighbours[v])
        if method == "min-degree":
            return degree
        inside = sum(len(neighbours[v] & neighbours[u]) for u in neighbours[v])
        return (degree * (degree - 1) - inside) // 2 * len(graph) + degree

    costs = [cost(v) for v in watched(range(len(graph)), check)]
    heap = [(costs[v], tie[v], v) for v in range(len(graph))]
    heapq.heapify(heap)
    order: list[int] = []
    largest = 0
    gone = [False] * len(graph)
    while heap:
        known, _, v = heapq.heappop(heap)
        if gone[v] or known != costs[v]:
            continue
        check()
        gone[v] = True
        bag = neighbours[v]
        largest = max(largest, len(bag))
        if largest >= limit:
            return None
        order.append(v)
        touched = set(bag)
        for u in bag:
            new = bag - neighbours[u] - {u}
            if new and method == "min-fill":
                # An outsider that sees both ends of a new edge needs one fill edge less.
                for w in new:
                    touched |= neighbours[u] & neighbours[w]
            neighbours[u] |= new
            neighbours[u].discard(v)
        touched.discard(v)
        for u in touched:
            if not gone[u]:
                costs[u] = cost(u)
                heapq.heappush(heap, (costs[u], tie[u], u))
    return order, largest
