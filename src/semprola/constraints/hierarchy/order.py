"""Chooses the order in which to decide the labels of a hierarchy that is not a forest.

The labels that are on form an up-set of the order "ancestor of". Decisions above a part of the hierarchy affect it only
through which of its neighbours are on, and these form an up-set of the neighbours. So the bags of a good elimination
order have few up-sets; it is not enough that they are small.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_TRIES = 6
_WORK = 30_000
"""The most labels times tries: larger hierarchies get fewer tries."""
_EASY = 20_000
"""If all bags together have at most this many up-sets, there is no need to look for a better order."""
_MOST_KNOWN = 20_000
"""The most partial results kept while counting the up-sets of one bag; beyond this their number is estimated."""
_STYLES = ((0.3, 1.0, 0.0), (0.3, 1.0, 0.1), (0.3, 1.0, 0.3))
"""How a try scores labels: the weight of fill between related labels, the weight of up-sets, and the random part."""


@dataclass(frozen=True)
class Poset:
    """Labels of a hierarchy, numbered parents first; sets of labels are the bits of integers.

    Attributes:
        parents: the parents of each label.
        above: all ancestors of each label.
        below: all descendants of each label.
        near: the parents and the children of each label.
    """

    parents: list[list[int]]
    above: list[int]
    below: list[int]
    near: list[int]

    @staticmethod
    def of(parents: list[list[int]]) -> Poset:
        """Make a poset from the parents of each label; parents must have lower numbers than their children."""
        count = len(parents)
        above, below, near = [0] * count, [0] * count, [0] * count
        for v, direct in enumerate(parents):
            for p in direct:
                above[v] |= above[p] | 1 << p
                near[v] |= 1 << p
                near[p] |= 1 << v
        for v in range(count - 1, -1, -1):
            for p in parents[v]:
                below[p] |= below[v] | 1 << v
        return Poset(parents, above, below, near)


@dataclass(frozen=True)
class Elimination:
    """An elimination order with its bags.

    Attributes:
        order: the labels in the order of elimination, which is the reverse of the order of decisions.
        bags: for each label, the labels later in the order that it depends on, in this order.
        cost: how many up-sets all bags have together.
    """

    order: list[int]
    bags: list[list[int]]
    cost: int


def peel(parents_of: Sequence[Sequence[int]], children_of: Sequence[Sequence[int]]) -> list[int]:
    """Labels that have at most one parent and only such labels below them, children first.

    They form trees that hang below the other labels: each is an independent choice once its parent is on.

    Example:
        >>> peel([[], [0], [0], [1, 2], [1]], [[1, 2], [3, 4], [3], [], []])
        [4]
    """
    left = [len(children) for children in children_of]
    ready = [v for v, count in enumerate(left) if not count and len(parents_of[v]) <= 1]
    order: list[int] = []
    while ready:
        v = ready.pop()
        order.append(v)
        for p in parents_of[v]:
            left[p] -= 1
            if not left[p] and len(parents_of[p]) <= 1:
                ready.append(p)
    return order


def best_elimination(poset: Poset, check: Callable[[], None]) -> Elimination:
    """The best of a fixed number of greedy orders: the same on every machine."""
    count = len(poset.parents)
    best: Elimination | None = None
    for attempt in range(max(1, min(_TRIES, _WORK // max(count, 1)))):
        order = _greedy(poset, attempt, check)
        bags = bags_of(poset.parents, order)
        cost = 0
        for bag in sorted(bags, key=len, reverse=True):
            check()
            cost += up_sets(poset, sum(1 << v for v in bag))
            if best is not None and cost >= best.cost:
                break
        else:
            best = Elimination(order, bags, cost)
        if best.cost <= _EASY:
            break
    if best is None:
        return Elimination([], [], 0)
    order = _rerooted(poset, best.order, best.bags)
    return Elimination(order, bags_of(poset.parents, order), best.cost)


def _rerooted(poset: Poset, order: Sequence[int], bags: Sequence[Sequence[int]]) -> list[int]:
    """An order with the same cliques that first decides a separator in the middle, so that the rest splits early.

    A label and its bag are a clique, and the cliques form a tree. Take another clique as its root: each label is then
    eliminated in the clique nearest to the root, and within a clique, descendants are eliminated before ancestors.
    """
    cliques = [1 << v | sum(1 << u for u in bag) for v, bag in enumerate(bags)]
    links: list[list[int]] = [[] for _ in bags]
    size = [1] * len(bags)
    for v in order:
        if bags[v]:
            links[v].append(bags[v][0])
            links[bags[v][0]].append(v)
            size[bags[v][0]] += size[v]
    result: list[int] = []
    for root in order:
        if bags[root]:
            continue
        middle = _middle(poset, root, links, size, cliques)
        outward = [(middle, 0)]
        seen = {middle}
        for node, _ in outward:
            outward += [(other, cliques[node]) for other in links[node] if other not in seen]
            seen.update(links[node])
        for node, nearer in reversed(outward):
            result += sorted(bits(cliques[node] & ~nearer), reverse=True)
    return result


def _middle(poset: Poset, root: int, links: list[list[int]], size: list[int], cliques: list[int]) -> int:
    """The clique with the fewest up-sets among those that leave no part much larger than half the tree."""
    inside, parent = [root], {root: root}
    for node in inside:
        for other in links[node]:
            if other not in parent:
                parent[other] = node
                inside.append(other)
    total = size[root]
    largest = {
        node: max([total - size[node], *(size[other] for other in links[node] if other != parent[node])])
        for node in inside
    }
    bound = max(min(largest.values()), 0.6 * total)
    return min((node for node in inside if largest[node] <= bound), key=lambda v: up_sets(poset, cliques[v]))


def bags_of(parents_of: Sequence[Sequence[int]], order: Sequence[int]) -> list[list[int]]:
    """For each label, the labels later in the order that it depends on, in that order.

    Example:
        >>> bags_of([[], [0], [0], [1, 2]], [3, 2, 1, 0])
        [[], [0], [1, 0], [2, 1]]
    """
    place = {v: i for i, v in enumerate(order)}
    later: list[set[int]] = [set() for _ in order]
    for child, parents in enumerate(parents_of):
        for parent in parents:
            first, second = sorted((child, parent), key=place.__getitem__)
            later[first].add(second)
    bags: list[list[int]] = [[] for _ in order]
    for v in order:
        bag = bags[v] = sorted(later[v], key=place.__getitem__)
        if bag:
            later[bag[0]].update(bag[1:])  # the next label of the bag inherits the others
    return bags


def up_sets(poset: Poset, labels: int) -> int:
    """The number of up-sets of some labels, or an estimate if counting takes too long.

    Example:
        >>> up_sets(Poset.of([[], [0], [0], [1, 2]]), 0b0110), up_sets(Poset.of([[], [0], [0], [1, 2]]), 0b1001)
        (4, 3)
    """
    members = list(bits(labels))
    place = {v: i for i, v in enumerate(members)}
    related, above, below = [], [], []
    for v in members:
        above.append(sum(1 << place[u] for u in bits(poset.above[v] & labels)) | 1 << place[v])
        below.append(sum(1 << place[u] for u in bits(poset.below[v] & labels)) | 1 << place[v])
        related.append(above[-1] | below[-1])
    known = {0: 1}
    stack = [(1 << len(members)) - 1]
    while stack:
        part = stack[-1]
        if part in known:
            stack.pop()
            continue
        v = max(bits(part), key=lambda u: (related[u] & part).bit_count())
        if (related[v] & part).bit_count() == 1:
            known[part] = 1 << part.bit_count()
            continue
        rest = part & ~above[v], part & ~below[v]
        unknown = [other for other in rest if other not in known]
        stack.extend(unknown)
        if not unknown:
            known[part] = known[rest[0]] + known[rest[1]]
        if len(known) > _MOST_KNOWN:
            return int(2 ** min(_chains(poset, labels), 1000.0))
    return known[(1 << len(members)) - 1]


def bits(mask: int) -> Iterator[int]:
    """The members of a set, lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def _chains(poset: Poset, labels: int) -> float:
    """An upper bound on log2 of the number of up-sets: a chain of n labels has n + 1 of them."""
    total = 0.0
    while labels:
        length, rest = 0, labels
        while rest:
            low = rest & -rest
            labels ^= low
            length += 1
            rest &= poset.below[low.bit_length() - 1]
        total += math.log2(length + 1)
    return total


def _greedy(poset: Poset, attempt: int, check: Callable[[], None]) -> list[int]:
    """A greedy order: always eliminate the label whose neighbours get the fewest new edges and have few up-sets."""
    related_weight, up_set_weight, noise = _STYLES[attempt % len(_STYLES)]
    chance = random.Random(attempt)
    near = list(poset.near)
    related = [a | b for a, b in zip(poset.above, poset.below, strict=True)]
    factor = [1 + noise * chance.random() for _ in near]
    ties = [chance.random() for _ in near]

    def score(v: int) -> float:
        around, missing, kin = near[v], 0, 0
        for u in bits(around):
            new = around & ~near[u]
            missing += new.bit_count() - 1  # u is not its own neighbour
            kin += (new & related[u]).bit_count()
        fill = missing - (1 - related_weight) * kin
        return fill / 2 * factor[v] + up_set_weight * _chains(poset, around)

    scores = [score(v) for v in range(len(near))]
    heap = [(scores[v], ties[v], v) for v in range(len(near))]
    heapq.heapify(heap)
    gone = 0
    order: list[int] = []
    while heap:
        known, _, v = heapq.heappop(heap)
        if gone >> v & 1 or known != scores[v]:
            continue
        check()
        order.append(v)
        gone |= 1 << v
        for u in bits(_eliminate(near, v) & ~gone):
            scores[u] = score(u)
            heapq.heappush(heap, (scores[u], ties[u], u))
    return order


def _eliminate(near: list[int], v: int) -> int:
    """Make the neighbours of v a clique without v; return the labels whose neighbourhood changes."""
    around = touched = near[v]
    for u in bits(around):
        new = around & ~near[u] & ~(1 << u)
        for w in bits(new):
            touched |= near[u] & near[w]
    for u in bits(around):
        near[u] = (near[u] | around) & ~(1 << u) & ~(1 << v)
    return touched
