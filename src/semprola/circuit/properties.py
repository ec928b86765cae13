"""Structural properties, each decided from the arrays alone: nothing here trusts the code that made the circuit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from semprola.circuit.fold import Index, bits, fold_arrays, scope_blocks, scopes
from semprola.circuit.queries import model_count

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

_SUM, _PRODUCT = 2, 1


def is_smooth(circuit: Circuit) -> bool:
    """Every child of a sum mentions the same labels as the sum, and the root mentions all labels."""
    labels = _labels(circuit)
    scope = scopes(circuit) & labels
    parent, child = _edges(circuit, _SUM)
    return bool(np.array_equal(scope[parent], scope[child]) and np.array_equal(scope[circuit.root], labels))


def is_decomposable(circuit: Circuit) -> bool:
    """The children of every product mention disjoint sets of variables."""
    return swept(circuit)[0]


def swept(circuit: Circuit) -> tuple[bool, bool]:
    """Whether a circuit is decomposable, and whether every sum is a decision on zero-suppressed labels.

    One sweep finds both: collecting the variables that each node mentions takes most of the time on large circuits.
    """
    size = np.zeros(circuit.num_nodes, np.int64)
    decisions = _decisions(circuit)
    for first, block in scope_blocks(circuit):
        size += np.bitwise_count(block).sum(axis=1, dtype=np.int64)
        if decisions is not None:
            decisions.look(first, block)
    parent, child = _edges(circuit, _PRODUCT)
    total = np.bincount(parent, weights=size[child], minlength=circuit.num_nodes)
    products = np.unique(parent)
    decided = decisions is not None and bool(decisions.proven.all())
    if decisions is not None and not decided:  # few sums, if any: not worth a look in the first sweep
        sums = np.flatnonzero(circuit.kind == _SUM)
        decided = _told_apart(circuit, sums[~decisions.proven])
    return bool(np.array_equal(total[products], size[products])), decided


def is_structured(circuit: Circuit) -> bool:
    """The children of every product lie below disjoint nodes of the vtree; False without a vtree."""
    vtree = circuit.vtree
    if vtree is None or not is_decomposable(circuit):
        return False
    big = circuit.num_variables
    first = np.full(circuit.num_nodes, big, dtype=np.int32)
    last = np.full(circuit.num_nodes, -1, dtype=np.int32)
    leaves = np.flatnonzero(circuit.literal)
    first[leaves] = last[leaves] = vtree.position[np.abs(circuit.literal[leaves]) - 1]
    fold_arrays(circuit, first, np.minimum, np.minimum)
    fold_arrays(circuit, last, np.maximum, np.maximum)
    parent, child = _edges(circuit, _PRODUCT)
    mentions = last[child] >= 0
    parent, child = parent[mentions], child[mentions]
    home = vtree.lowest_covering(first[child], last[child])
    order = np.lexsort((vtree.first[home], parent))
    parent, home = parent[order], home[order]
    siblings = parent[1:] == parent[:-1]
    return bool(np.all(vtree.last[home[:-1]][siblings] < vtree.first[home[1:]][siblings]))


def is_deterministic(circuit: Circuit, decided: bool | None = None) -> bool:
    """The children of every sum are proven to be mutually exclusive.

    Most sums are decisions: one child has a literal v directly below it and the other has -v, or, if v is
    zero-suppressed, does not mention v at all. Any other pair (such as primes of a sentential decision diagram) goes
    to a search for a contradiction. The search is sound: a circuit reported as deterministic is deterministic.
    """
    if swept(circuit)[1] if decided is None else decided:
        return True
    scope = scopes(circuit)
    direct = _direct_literals(circuit)
    zero = bits(circuit.zero_suppressed)
    search = _Contradictions(circuit, scope, direct)
    suppresses = bool(np.any(circuit.zero_suppressed))
    start = circuit.child_start
    for node in np.flatnonzero(circuit.kind == _SUM):
        children = circuit.children[start[node] : start[node + 1]].tolist()
        if len(set(children)) < len(children):
            return False
        for a, b in _without_conflict(children, direct):
            if suppresses and not _suppressed(a, b, direct, scope, zero):
                # below a product, "not mentioned here" no longer means false: first spell out the suppressed literals
                from semprola.circuit.transforms import smooth

                smoothed = smooth(circuit)
                # branches that smoothing made equal are merged and no longer seen: only the count reveals them
                return is_deterministic(smoothed) and model_count(smoothed) == model_count(circuit)
            if not suppresses and not search.exclusive(a, b):
                return False
    return True


def _labels(circuit: Circuit) -> npt.NDArray[np.uint64]:
    return bits(np.arange(circuit.num_variables) < circuit.num_labels)


def _edges(circuit: Circuit, kind: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]:
    parents = np.repeat(np.arange(circuit.num_nodes), np.diff(circuit.child_start))
    chosen = circuit.kind[parents] == kind
    return parents[chosen], circuit.children[chosen]


class _Decisions:
    """Looks for a zero-suppressed label that one of two children of a sum asserts and the other leaves out.

    Attributes:
        proven: for each sum, whether there is such a label.
    """

    def __init__(self, count: int, place: Index, other: Index, variable: Index) -> None:
        self.proven = np.zeros(count, np.bool_)
        order = np.argsort(variable // 64, kind="stable")
        self._place, self._other, self._variable = place[order], other[order], variable[order]
        self._word = self._variable // 64

    def look(self, first: int, block: npt.NDArray[np.uint64]) -> None:
        """Look at a block of words from the bit sets of variables that nodes mention."""
        begin, end = np.searchsorted(self._word, [first, first + block.shape[1]])
        part = slice(int(begin), int(end))
        shift = (self._variable[part] % 64).astype(np.uint64)
        mentioned = block[self._other[part], self._word[part] - first] >> shift & np.uint64(1)
        self.proven[self._place[part][mentioned == 0]] = True


def _decisions(circuit: Circuit) -> _Decisions | None:
    """The zero-suppressed labels that children of sums assert; None if some sum cannot be decided by one.

    Most large circuits of families consist of such decisions; this looks at all sums at once.
    """
    arity = np.diff(circuit.child_start)
    sums = np.flatnonzero(circuit.kind == _SUM)
    if not np.any(circuit.zero_suppressed) or not np.all(arity[sums] == 2):
        return None if len(sums) else _Decisions(0, *[np.zeros(0, np.int64)] * 3)
    place, part, other = _parts(circuit, sums)
    variable = circuit.literal[part].astype(np.int64) - 1
    asserted = (variable >= 0) & circuit.zero_suppressed[np.maximum(variable, 0)]
    return _Decisions(len(sums), place[asserted], other[asserted], variable[asserted])


def _parts(circuit: Circuit, sums: Index) -> tuple[Index, Index, Index]:
    """What the two children of sums consist of: each child itself, and its children if it is a product.

    Returns:
        For each part, the place of its sum in `sums`, its node, and the other child of that sum.
    """
    pairs = circuit.children[circuit.child_start[sums][:, None] + np.arange(2)].astype(np.int64)
    arity = np.diff(circuit.child_start)
    places, parts, others = [], [], []
    for one, other in ((pairs[:, 0], pairs[:, 1]), (pairs[:, 1], pairs[:, 0])):
        width = np.where(circuit.kind[one] == _PRODUCT, arity[one], 0)
        owner = np.repeat(np.arange(len(sums)), width)
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(width) - width, width)
        below = circuit.children[circuit.child_start[one][owner] + offset]
        place = np.concatenate([owner, np.arange(len(sums))])
        places.append(place)
        parts.append(np.concatenate([below, one]).astype(np.int64))
        others.append(other[place])
    return np.concatenate(places), np.concatenate(parts), np.concatenate(others)


def _told_apart(circuit: Circuit, sums: Index) -> bool:
    """Whether one child of each of these sums asserts some label of a set of which the other mentions none.

    It asserts that a zero-suppressed label of the set is on; a child that does not mention these labels turns them off.
    """
    asserts = np.zeros(circuit.num_nodes, np.int8)
    leaves = np.flatnonzero(circuit.literal > 0)
    asserts[leaves] = circuit.zero_suppressed[circuit.literal[leaves] - 1]
    fold_arrays(circuit, asserts, np.maximum, np.minimum)
    place, part, other = _parts(circuit, sums)
    chosen = asserts[part] == 1
    place, part, other = place[chosen], part[chosen], other[chosen]
    shared = np.zeros(len(part), np.bool_)
    for _, block in scope_blocks(circuit):
        shared |= (block[part] & block[other]).any(axis=1)
    proven = np.zeros(len(sums), np.bool_)
    proven[place[~shared]] = True
    return bool(proven.all())


def _direct_literals(circuit: Circuit) -> list[frozenset[int]]:
    """The literals of each node: itself, or its children if it is a product."""
    literal = circuit.literal.tolist()
    start, children, kind = circuit.child_start.tolist(), circuit.children.tolist(), circuit.kind.tolist()
    direct: list[frozenset[int]] = []
    for node in range(circuit.num_nodes):
        if literal[node]:
            direct.append(frozenset([literal[node]]))
        elif kind[node] == _PRODUCT:
            parts = children[start[node] : start[node + 1]]
            direct.append(frozenset(literal[c] for c in parts if literal[c]))
        else:
            direct.append(frozenset())
    return direct


def _without_conflict(children: list[int], direct: list[frozenset[int]]) -> Iterator[tuple[int, int]]:
    """The pairs of children that no direct literal distinguishes."""
    groups = [children]
    while groups:
        group = groups.pop()
        if len(group) > 8:
            # a variable that every child decides splits the group in two: no pair across the halves needs comparing
            counts = Counter(literal for child in group for literal in direct[child])
            decided = [v for v in counts if v > 0 and counts[-v] and counts[v] + counts[-v] == len(group)]
            if decided:
                v = min(decided, key=lambda v: abs(counts[v] - counts[-v]))
                halves = [[c for c in group if literal in direct[c]] for literal in (v, -v)]
                if sum(map(len, halves)) == len(group):
                    groups += halves
                    continue
        for i, a in enumerate(group):
            for b in group[:i]:
                if not _conflict(direct[a], direct[b]):
                    yield a, b


def _conflict(a: frozenset[int], b: frozenset[int]) -> bool:
    small, large = (a, b) if len(a) <= len(b) else (b, a)
    return any(-literal in large for literal in small)


def _suppressed(
    a: int,
    b: int,
    direct: list[frozenset[int]],
    scope: npt.NDArray[np.uint64],
    zero: npt.NDArray[np.uint64],
) -> bool:
    """One child asserts a zero-suppressed variable that the other does not mention and hence makes false."""
    for one, other in ((a, b), (b, a)):
        for literal in direct[one]:
            v = literal - 1
            if literal > 0 and _has(zero, v) and not _has(scope[other], v):
                return True
    return False


def _has(bit_set: npt.NDArray[np.uint64], v: int) -> bool:
    return bool(int(bit_set[v // 64]) >> (v % 64) & 1)


class _Contradictions:
    """Proves that two nodes exclude each other: for a sum all its children must, for a product one child is enough."""

    def __init__(self, circuit: Circuit, scope: npt.NDArray[np.uint64], direct: list[frozenset[int]]) -> None:
        self.circuit, self.direct = circuit, direct
        self.known: dict[tuple[int, int], bool] = {}
        self._bit_sets = scope
        self._scope: dict[int, int] = {}
        self._parts: dict[int, list[int]] = {}

    def exclusive(self, a: int, b: int) -> bool:
        """Depth-first proof with an explicit stack; `known` holds what is settled."""
        goal = _ordered(a, b)
        stack = [goal]
        unsettled: dict[tuple[int, int], tuple[bool, list[tuple[int, int]]]] = {}
        while stack:
            pair = stack[-1]
            if pair not in self.known and pair not in unsettled:
                if pair[0] == pair[1] or _conflict(self.direct[pair[0]], self.direct[pair[1]]):
                    self.known[pair] = pair[0] != pair[1]
                else:
                    need_all, subgoals = self._subgoals(*pair)
                    unsettled[pair] = need_all, subgoals[::-1]  # taken from the end
            if pair not in self.known:
                next_goal = self._advance(pair, *unsettled[pair])
                if next_goal is not None:
                    stack.append(next_goal)
                    continue
            stack.pop()
        return self.known[goal]

    def _advance(
        self, pair: tuple[int, int], need_all: bool, subgoals: list[tuple[int, int]]
    ) -> tuple[int, int] | None:
        """The next subgoal to settle, or None once the pair is settled; without subgoals, nothing proves it."""
        while subgoals:
            verdict = self.known.get(subgoals[-1])
            if verdict is None:
                return subgoals[-1]
            if verdict is not need_all:
                self.known[pair] = verdict
                return None
            subgoals.pop()
        self.known[pair] = need_all
        return None

    def _subgoals(self, a: int, b: int) -> tuple[bool, list[tuple[int, int]]]:
        """Whether all of some smaller pairs must be exclusive to settle (a, b), or one is enough; and these pairs.

        Complete for structured circuits: there, a factor of one side meets one factor of the other, or several of them.
        """
        sum_a, sum_b = self.circuit.kind[a] == _SUM, self.circuit.kind[b] == _SUM
        if sum_a and sum_b:
            # split the node with the larger scope first: the other one then meets parts with a scope like its own
            larger = self._variables(a).bit_count() >= self._variables(b).bit_count()
            return self._split(a, b) if larger else self._split(b, a)
        parts_a = [(p, self._variables(p)) for p in ([a] if sum_a else self._children(a))]
        parts_b = [(q, self._variables(q)) for q in ([b] if sum_b else self._children(b))]
        meets = [(p, q) for p, in_p in parts_a for q, in_q in parts_b if in_p & in_q]
        if (sum_a or sum_b) and len(meets) > 1:
            return self._split(a, b) if sum_a else self._split(b, a)
        if len({p for p, _ in meets}) == len({q for _, q in meets}) == len(meets) > 1:
            return False, [_ordered(p, q) for p, q in meets]
        met_a, met_b = Counter([p for p, _ in meets]), Counter([q for _, q in meets])
        goals = [_ordered(p, q) for p, q in meets if met_a[p] == met_b[q] == 1]
        goals += [_ordered(p, b) for p in met_a if met_a[p] > 1]
        goals += [_ordered(a, q) for q in met_b if met_b[q] > 1]
        goals = [goal for goal in goals if goal != (a, b)]
        if not goals and (sum_a or sum_b) and meets:
            return self._split(a, b) if sum_a else self._split(b, a)
        return False, goals

    def _split(self, node: int, other: int) -> tuple[bool, list[tuple[int, int]]]:
        return True, [_ordered(child, other) for child in self._children(node)]

    def _children(self, node: int) -> list[int]:
        """The distinct children of a sum or product; a literal stands for itself."""
        parts = self._parts.get(node)
        if parts is None:
            below = self.circuit.children_of(node).tolist() if self.circuit.kind[node] else [node]
            parts = self._parts[node] = list(dict.fromkeys(below))
        return parts

    def _variables(self, node: int) -> int:
        """The variables below a node as the bits of an int: faster than an array for a single node."""
        found = self._scope.get(node)
        if found is None:
            found = self._scope[node] = int.from_bytes(self._bit_sets[node].tobytes(), "little")
        return found


def _ordered(a: int, b: int) -> tuple[int, int]:
    return (a, b) if a < b else (b, a)
