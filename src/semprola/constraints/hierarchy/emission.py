"""Writes the states of a hierarchy that is not a forest as a circuit.

A state is the sum of its two branches; a branch is the product of the labels that are on in it and of the remaining
states. Trees below other labels are part of the branches that turn their parents on. Labels that a branch does not
mention are off.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from semprola.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.fold import pruned
from semprola.constraints.hierarchy.states import Ideals

Ints = npt.NDArray[np.int64]

_TRUE = 0


class Emission:
    """The nodes of a circuit: literals and trees, then states and their branches, then the nodes that join them."""

    def __init__(
        self,
        names: tuple[str, ...],
        core: Sequence[int],
        peeled: Sequence[int],
        children_of: Sequence[Sequence[int]],
        ideals: Ideals,
    ) -> None:
        self.names, self.ideals = names, ideals
        self._kind: list[int] = [PRODUCT, *[LITERAL] * len(names)]
        self._literal: list[int] = [0, *range(1, len(names) + 1)]
        self._children: list[list[int]] = [[] for _ in self._kind]
        self.either: dict[int, int] = {}
        trees = set(peeled)
        self._on: dict[int, int] = {}
        for v in peeled:
            self._on[v] = self._product([v + 1, *(self.either[c] for c in children_of[v])])
            self.either[v] = self._node(SUM, [_TRUE, self._on[v]])
        below = [self._product([self.either[c] for c in children_of[v] if c in trees]) for v in core]
        self._states = _States(ideals, np.array(core, np.int64) + 1, np.array(below, np.int64), len(self._kind))
        self._last: list[tuple[int, list[int]]] = []

    def circuit(self, trees: Sequence[int], nonempty: bool) -> Circuit:
        """The circuit of the states and of some separate trees."""
        start = self.ideals.start
        parts = [*self._states.node[start].tolist(), *(self.either[t] for t in trees)]
        if nonempty:
            some = self._some_of_states(start.tolist())
            self._some([*(some[s] for s in start.tolist()), *(self._on[t] for t in trees)], parts, top=True)
        else:
            self._add(PRODUCT, parts)
        return self._build()

    def _some_of_states(self, start: list[int]) -> dict[int, int]:
        """For each state that is reached with all labels off, the same state without the assignment with no label on.

        Either the next label is on, or it is off and some label of the remaining states in that branch is on.
        """
        states = self._states
        order = list(start)
        for s in order:
            order += states.left(2 * s)
        some: dict[int, int] = {}
        for s in reversed(order):
            left = states.left(2 * s)
            on = int(states.branch[2 * s + 1])
            if left:
                rest = self._some([some[t] for t in left], states.node[left].tolist())
                some[s] = self._add(SUM, [rest, on])
            else:
                some[s] = on
        return some

    def _some(self, some: list[int], any_of: list[int], top: bool = False) -> int:
        """The node "some of several independent parts is not empty", built along a balanced tree of the parts."""
        level = list(zip(some, any_of, strict=True))
        while len(level) > 1:
            joined = []
            for (some_left, any_left), (some_right, any_right) in zip(level[0::2], level[1::2], strict=False):
                either = self._add(PRODUCT, [any_left, any_right]) if len(level) > 2 else _TRUE
                first = self._add(PRODUCT, [some_left, any_right])
                joined.append((self._add(SUM, [first, some_right]), either))
            level = joined + level[len(joined) * 2 :]
        node = level[0][0]
        return self._add(PRODUCT, [node]) if top and node != self._end() - 1 else node

    # nodes before the states, and after them -------------------------------------------------------------------------

    def _product(self, parts: list[int]) -> int:
        """A product before the states; true if it has no parts."""
        if len(parts) < 2:
            return parts[0] if parts else _TRUE
        return self._node(PRODUCT, parts)

    def _node(self, kind: int, children: list[int]) -> int:
        self._kind.append(kind)
        self._literal.append(0)
        self._children.append(children)
        return len(self._kind) - 1

    def _end(self) -> int:
        return self._states.end + len(self._last)

    def _add(self, kind: int, children: list[int]) -> int:
        """A node after the states."""
        self._last.append((kind, children))
        return self._end() - 1

    def _build(self) -> Circuit:
        states = self._states
        kind = np.concatenate([self._kind, states.kind, [k for k, _ in self._last]]).astype(np.int8)
        literal = np.zeros(len(kind), np.int32)
        literal[: len(self._literal)] = self._literal
        lists = [self._children, [children for _, children in self._last]]
        flat = [np.array([c for children in part for c in children], np.int64) for part in lists]
        arity = [np.array([len(children) for children in part], np.int64) for part in lists]
        start = np.concatenate([[0], np.cumsum(np.concatenate([arity[0], states.arity, arity[1]]))])
        children = np.concatenate([flat[0], states.children, flat[1]])
        # without the empty assignment, some states and products are not needed
        arrays = pruned(kind, literal, start, children)
        return Circuit(self.names, (), *arrays, zero_suppressed=np.ones(len(self.names), np.bool_))


class _States:
    """The nodes of states and branches; branches with the same parts share a product.

    Attributes:
        node: the sum of each state.
        branch: the node of each branch.
        kind, arity, children: the nodes from `begin` to `end`, starting with the last state.
    """

    def __init__(self, ideals: Ideals, literal: Ints, below: Ints, begin: int) -> None:
        count = ideals.count
        has = below[ideals.on_label] != _TRUE
        owner = np.concatenate([ideals.on_branch, ideals.on_branch[has], ideals.branch])
        part = np.concatenate([literal[ideals.on_label], below[ideals.on_label[has]], begin + ideals.state])
        order = np.argsort(owner * (begin + count) + part)
        self._part, owner = part[order], owner[order]
        self._begin = begin
        size = np.bincount(owner, minlength=2 * count)
        self._start = np.concatenate([[0], np.cumsum(size)])
        shared = self._shared(size)
        own = (shared == np.arange(2 * count)) & (size > 1)
        # a state comes before those that follow from it, so nodes are numbered from the last state backwards
        nodes = 1 + own[0::2].astype(np.int64) + own[1::2]
        self.node = begin + np.cumsum(nodes[::-1])[::-1] - 1
        self.end = begin + int(nodes.sum())
        self.branch = self._branch_nodes(size, shared, own)
        self._write(size, own)

    def left(self, branch: int) -> list[int]:
        """The remaining states in a branch."""
        parts = self._part[self._start[branch] : self._start[branch + 1]] - self._begin
        return [int(s) for s in parts[parts >= 0]]

    def _shared(self, size: Ints) -> Ints:
        """For each branch, the last branch with the same parts: found by a hash, then compared."""
        numbers = np.random.default_rng(0).integers(0, 2**63, self._begin + len(size) // 2, np.uint64)
        total = np.concatenate([[np.uint64(0)], np.cumsum(numbers[self._part], dtype=np.uint64)])
        key = total[self._start[1:]] - total[self._start[:-1]]
        _, first, inverse = np.unique(key[::-1], return_index=True, return_inverse=True)
        shared = (len(size) - 1 - first)[inverse.reshape(-1)][::-1]
        alike = size == size[shared]
        chosen = np.flatnonzero(alike & (shared != np.arange(len(size))))
        owner = np.repeat(chosen, size[chosen])
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(size[chosen]) - size[chosen], size[chosen])
        same = self._part[self._start[owner] + offset] == self._part[self._start[shared[owner]] + offset]
        alike[owner[~same]] = False
        return np.where(alike, shared, np.arange(len(size)))

    def _branch_nodes(self, size: Ints, shared: Ints, own: npt.NDArray[np.bool_]) -> Ints:
        """The node of each branch; products come just before the sum of their state, first that of the "off" branch."""
        made = np.zeros(len(size), np.int64)
        made[0::2] = self.node - 1 - own[1::2]
        made[1::2] = self.node - 1
        nodes: Ints = made[shared]
        single = np.flatnonzero(size == 1)
        nodes[single] = self._resolve(self._part[self._start[single]])
        nodes[size == 0] = _TRUE
        return nodes

    def _resolve(self, part: Ints) -> Ints:
        """The nodes of parts: a part below `begin` is a node itself, the others are states."""
        nodes: Ints = part.copy()
        is_state = part >= self._begin
        nodes[is_state] = self.node[part[is_state] - self._begin]
        return nodes

    def _write(self, size: Ints, own: npt.NDArray[np.bool_]) -> None:
        count = self.end - self._begin
        self.kind = np.full(count, PRODUCT, np.int8)
        self.arity = np.zeros(count, np.int64)
        sums = self.node - self._begin
        products = self.branch[own] - self._begin
        self.kind[sums] = SUM
        self.arity[sums] = 2
        self.arity[products] = size[own]
        start = np.concatenate([[0], np.cumsum(self.arity)])
        self.children = np.empty(int(start[-1]), np.int64)
        self.children[start[sums]] = self.branch[0::2]
        self.children[start[sums] + 1] = self.branch[1::2]
        chosen = np.flatnonzero(own)
        owner = np.repeat(chosen, size[chosen])
        offset = np.arange(len(owner)) - np.repeat(np.cumsum(size[chosen]) - size[chosen], size[chosen])
        target = start[np.repeat(products, size[chosen])] + offset
        self.children[target] = self._resolve(self._part[self._start[owner] + offset])
