"""The states of a hierarchy that is not a forest: the labels left to decide, split into independent parts.

Once some labels are decided, so are all ancestors of those that are on and all descendants of those that are off. The
remaining labels depend only on the edges among them, not on what was decided elsewhere. A connected set of such labels
is a state. Of its labels, the last in the elimination order is decided next. If it is on, so are its ancestors; if it
is off, so are its descendants; the connected parts of the rest are states again.

All states with the same next label are expanded at once, as the rows of a bit matrix.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semprola.compiler.budget import Budget
from semprola.constraints.hierarchy.order import Elimination, Poset, bits

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]

_CELLS = 1 << 24
"""Entries of a bit matrix that are unpacked at a time."""


@dataclass(frozen=True)
class Ideals:
    """The states and how they follow from each other; a state comes before those that follow from it.

    Branch ``2 s`` is state s with its next label off, ``2 s + 1`` with it on.

    Attributes:
        count: how many states there are.
        start: the states that together make up the whole hierarchy.
        branch, state: pairs of a branch and a state that remains in it.
        on_branch, on_label: pairs of a branch and a label that is on in it: the next label or one of its ancestors.
    """

    count: int
    start: Ints
    branch: Ints
    state: Ints
    on_branch: Ints
    on_label: Ints


def expand(poset: Poset, elimination: Elimination, names: list[str], budget: Budget) -> Ideals:
    """All states of a hierarchy."""
    tree = _Tree(poset, elimination)
    work = _Expansion(tree, [names[v] for v in tree.label], budget)
    work.run()
    branch, state = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (work.branch, work.state))
    on_branch, on_place = (np.concatenate([np.zeros(0, np.int64), *parts]) for parts in (work.on_branch, work.on_place))
    begins = branch < 0
    on_label = np.array(tree.label, np.int64)[on_place]
    return Ideals(work.count, state[begins], branch[~begins], state[~begins], on_branch, on_label)


class _Tree:
    """The elimination tree, numbered so that the labels below a label come just before it.

    Attributes:
        label: the label with each number.
        first: the lowest number below (or at) each number.
        kids: the numbers directly below each number, in the tree.
        near: the neighbours of each number in the hierarchy.
        above, below: the ancestors and descendants, including the number itself, as bits.
    """

    def __init__(self, poset: Poset, elimination: Elimination) -> None:
        kids: dict[int, list[int]] = {v: [] for v in elimination.order}
        for v in elimination.order:
            if elimination.bags[v]:
                kids[elimination.bags[v][0]].append(v)
        self.roots: list[int] = []
        self.label: list[int] = []
        number: dict[int, int] = {}
        for root in elimination.order:
            if elimination.bags[root]:
                continue
            for v in _postorder(root, kids):
                number[v] = len(self.label)
                self.label.append(v)
            self.roots.append(number[root])
        self.kids = [[number[k] for k in kids[v]] for v in self.label]
        self.first: list[int] = []
        for v, below in enumerate(self.kids):
            self.first.append(min((self.first[k] for k in below), default=v))
        self.near = [[number[u] for u in bits(poset.near[v])] for v in self.label]
        self.above = [self._renumbered(poset.above[v], number) | 1 << i for i, v in enumerate(self.label)]
        self.below = [self._renumbered(poset.below[v], number) | 1 << i for i, v in enumerate(self.label)]

    @staticmethod
    def _renumbered(mask: int, number: dict[int, int]) -> int:
        return sum(1 << number[v] for v in bits(mask))

    def within(self, mask: int, v: int) -> Bools:
        """Which of the numbers from first[v] to v are in a set."""
        width = v - self.first[v] + 1
        part = mask >> self.first[v] & (1 << width) - 1
        packed = np.frombuffer(part.to_bytes((width + 7) // 8, "little"), np.uint8)
        return np.unpackbits(packed, count=width, bitorder="little").view(np.bool_)


def _postorder(root: int, kids: dict[int, list[int]]) -> Iterator[int]:
    order: list[int] = []
    stack = [root]
    while stack:
        v = stack.pop()
        order.append(v)
        stack.extend(kids[v])
    return reversed(order)


class _Expansion:
    """Expands states from the last number down; `_pending` holds the rows found so far and the branches they are in."""

    def __init__(self, tree: _Tree, names: list[str], budget: Budget) -> None:
        self.tree, self.names, self.budget = tree, names, budget
        self.count = 0
        self.branch: list[Ints] = []
        self.state: list[Ints] = []
        self.on_branch: list[Ints] = []
        self.on_place: list[Ints] = []
        self._pending: list[list[tuple[Bytes, Ints]]] = [[] for _ in names]
        self._widest = (0, 0)

    def run(self) -> None:
        for v in self.tree.roots:
            width = v - self.tree.first[v] + 1
            self._split_all([(v, np.ones((1, width), np.bool_), np.array([-1]))])
        for v in range(len(self.names) - 1, -1, -1):
            met, self._pending[v] = self._pending[v], []
            if not met:
                continue
            rows, inverse = distinct_rows(np.concatenate([part for part, _ in met]))
            self.branch.append(np.concatenate([branches for _, branches in met]))
            self.state.append(self.count + inverse)
            self._widest = max(self._widest, (len(rows), v))
            self._branch_all(v, rows)
            self.count += len(rows)
            self.budget.check(self._where(), self.count)

    def _branch_all(self, v: int, rows: Bytes) -> None:
        tree, width = self.tree, v - self.tree.first[v] + 1
        taken, lost = tree.within(tree.above[v], v), tree.within(tree.below[v], v)
        step = max(1, _CELLS // width)
        for begin in range(0, len(rows), step):
            self.budget.check(self._where(), self.count + begin)
            inside = np.unpackbits(rows[begin : begin + step], axis=1, count=width, bitorder="little").view(np.bool_)
            ids = 2 * np.arange(self.count + begin, self.count + begin + len(inside))
            row, place = np.nonzero(inside & taken)
            self.on_branch.append(ids[row] + 1)
            self.on_place.append(place + tree.first[v])
            rest = np.concatenate([inside & ~lost, inside & ~taken])
            both = np.concatenate([ids, ids + 1])
            self._split_all([(k, self._slice(rest, k, v), both) for k in tree.kids[v]])

    def _slice(self, rest: Bools, k: int, v: int) -> Bools:
        """The columns below k of a matrix over the numbers below v."""
        first = self.tree.first
        return rest[:, first[k] - first[v] : k - first[v] + 1]

    def _split_all(self, work: list[tuple[int, Bools, Ints]]) -> None:
        """Split the rest of each branch (a row) into connected parts, each stored at its highest number."""
        while work:
            v, rest, branches = work.pop()
            used = rest.any(axis=1)
            if not used.all():
                rest, branches = rest[used], branches[used]
            if not len(rest):
                continue
            top = rest[:, -1]
            without = rest[~top]
            if len(without):
                others = branches[~top]
                work.extend((k, self._slice(without, k, v), others) for k in self.tree.kids[v])
                rest, branches = rest[top], branches[top]
            if not len(rest):
                continue
            part = self._connected(v, rest)
            self._pending[v].append((np.packbits(part, axis=1, bitorder="little"), branches))
            if part is not rest:
                left = rest & ~part
                work.extend((k, self._slice(left, k, v), branches) for k in self.tree.kids[v])

    def _connected(self, v: int, inside: Bools) -> Bools:
        """In each row, what is connected to v (the last column) within the row; `inside` itself if that is all."""
        if inside.shape[1] == 1:
            return inside
        first, near = self.tree.first[v], self.tree.near
        packed = np.packbits(inside, axis=0).T.copy()
        # for each label, the rows that contain it, as the bits of an integer, and those in which it is not yet reached
        there = [int.from_bytes(label.tobytes(), "little") for label in packed]
        missing = list(there)
        missing[-1] = 0
        queue, waiting = [v], {v}
        for u in queue:
            waiting.discard(u)
            reached = there[u - first] ^ missing[u - first]
            for w in near[u]:
                if first <= w <= v:
                    new = reached & missing[w - first]
                    if new:
                        missing[w - first] ^= new
                        if w not in waiting:
                            waiting.add(w)
                            queue.append(w)
        if not any(missing):
            return inside
        length = packed.shape[1]
        left = np.frombuffer(b"".join(rows.to_bytes(length, "little") for rows in missing), np.uint8)
        return inside & ~np.unpackbits(left.reshape(-1, length).T, axis=0, count=len(inside)).view(np.bool_)

    def _where(self) -> str:
        states, v = self._widest
        return f"label {self.names[v]!r} with the {v - self.tree.first[v]} labels decided after it ({states:,} states)"


def distinct_rows(rows: Bytes) -> tuple[Bytes, Ints]:
    """The distinct rows, and the index of each row among them; found by a hash that is checked."""
    width = rows.shape[1]
    padded = np.zeros((len(rows), (width + 7) // 8 * 8), np.uint8)
    padded[:, :width] = rows
    words = padded.view(np.uint64)
    odd = np.random.default_rng(0).integers(0, 2**63, words.shape[1], np.uint64) * np.uint64(2) + np.uint64(1)
    mixed = words ^ words >> np.uint64(29)
    keys = (mixed * odd).sum(axis=1, dtype=np.uint64)
    _, index, inverse = np.unique(keys, return_index=True, return_inverse=True)
    if not np.array_equal(words[index[inverse]], words):
        _, index, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
    return rows[index], inverse.reshape(-1)
