"""Vtrees: full binary trees over the variables, whose splits a structured circuit respects."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int32]


class Vtree:
    """A full binary tree whose leaves are variables; a right-linear one is a variable order.

    Nodes are numbered children first, the root last. ``variable[n]`` is the variable of a leaf, -1 for inner nodes.

    Example:
        >>> Vtree.right_linear([2, 0, 1]).order.tolist()
        [2, 0, 1]
    """

    __slots__ = ("__dict__", "left", "right", "variable")

    def __init__(self, left: npt.ArrayLike, right: npt.ArrayLike, variable: npt.ArrayLike) -> None:
        self.left: Ints = np.array(left, dtype=np.int32)
        self.right: Ints = np.array(right, dtype=np.int32)
        self.variable: Ints = np.array(variable, dtype=np.int32)
        for array in (self.left, self.right, self.variable):
            array.flags.writeable = False
        self._check()

    @classmethod
    def right_linear(cls, order: Iterable[int]) -> Vtree:
        """The vtree of a variable order: each inner node has the next variable on its left."""
        variables = list(order)
        left, right, variable = _leaves(variables)
        below = len(variables) - 1
        for leaf in range(len(variables) - 2, -1, -1):
            left.append(leaf)
            right.append(below)
            variable.append(-1)
            below = len(variable) - 1
        return cls(left, right, variable)

    @classmethod
    def balanced(cls, order: Iterable[int]) -> Vtree:
        """A vtree of minimal depth with the variables in this order from left to right."""
        variables = list(order)
        left, right, variable = _leaves(variables)
        _join(list(range(len(variables))), left, right, variable)
        return cls(left, right, variable)

    @classmethod
    def from_forest(cls, parent: Sequence[int]) -> Vtree:
        """The vtree of a rooted forest over the variables (such as the bucket tree of an elimination order).

        Each variable is decided before the subtrees below it, and the subtrees of one variable are independent.

        Args:
            parent: the variable above each variable; -1 for roots.
        """
        count = len(parent)
        children: list[list[int]] = [[] for _ in range(count)]
        roots: list[int] = []
        for v, above in enumerate(parent):
            (children[above] if above >= 0 else roots).append(v)
        left, right, variable = _leaves(range(count))

        subtree = list(range(count))
        order: list[int] = []
        stack = list(roots)
        while stack:
            v = stack.pop()
            order.append(v)
            stack.extend(children[v])
        if len(order) != count:
            raise ValueError("parent has a cycle")
        for v in reversed(order):
            if children[v]:
                below = _join([subtree[c] for c in children[v]], left, right, variable)
                left.append(v)
                right.append(below)
                variable.append(-1)
                subtree[v] = len(variable) - 1
        if roots:
            _join([subtree[r] for r in roots], left, right, variable)
        return cls(left, right, variable)

    def __len__(self) -> int:
        return len(self.variable)

    def __reduce__(self) -> tuple[type[Vtree], tuple[Ints, Ints, Ints]]:
        return Vtree, (self.left, self.right, self.variable)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vtree) and all(
            np.array_equal(a, b)
            for a, b in ((self.left, other.left), (self.right, other.right), (self.variable, other.variable))
        )

    def __hash__(self) -> int:
        return hash((self.left.tobytes(), self.right.tobytes(), self.variable.tobytes()))

    def __repr__(self) -> str:
        shape = "right-linear" if self.is_right_linear else f"depth {int(self.depth.max(initial=0))}"
        return f"Vtree({self.num_variables} variables, {shape})"

    @property
    def num_variables(self) -> int:
        return (len(self.variable) + 1) // 2

    @property
    def root(self) -> int:
        return len(self.variable) - 1

    @cached_property
    def is_right_linear(self) -> bool:
        """Whether this is a plain variable order."""
        inner = self.variable < 0
        return bool(np.all(self.variable[self.left[inner]] >= 0))

    @cached_property
    def order(self) -> Ints:
        """The variables from left to right."""
        leaves = np.flatnonzero(self.variable >= 0)
        return self.variable[leaves[np.argsort(self.first[leaves])]]

    @cached_property
    def parent(self) -> Ints:
        """The node above each node; -1 at the root."""
        parent = np.full(len(self), -1, dtype=np.int32)
        inner = np.flatnonzero(self.variable < 0).astype(np.int32)
        parent[self.left[inner]] = inner
        parent[self.right[inner]] = inner
        return parent

    @cached_property
    def depth(self) -> Ints:
        """Number of edges from the root to each node."""
        depth = np.zeros(len(self), dtype=np.int32)
        for node in range(len(self) - 2, -1, -1):
            depth[node] = depth[self.parent[node]] + 1
        return depth

    @cached_property
    def _interval(self) -> tuple[Ints, Ints]:
        size = (self.variable >= 0).astype(np.int32)
        for node in np.flatnonzero(self.variable < 0).tolist():
            size[node] = size[self.left[node]] + size[self.right[node]]
        first = np.zeros(len(self), dtype=np.int32)
        for node in range(len(self) - 1, -1, -1):
            if self.variable[node] < 0:
                first[self.left[node]] = first[node]
                first[self.right[node]] = first[node] + size[self.left[node]]
        return first, first + size - 1

    @property
    def first(self) -> Ints:
        """Position, in `order`, of the first variable below each node."""
        return self._interval[0]

    @property
    def last(self) -> Ints:
        """Position, in `order`, of the last variable below each node."""
        return self._interval[1]

    @cached_property
    def position(self) -> Ints:
        """Position of each variable in `order`."""
        position = np.zeros(self.num_variables, dtype=np.int32)
        position[self.order] = np.arange(self.num_variables, dtype=np.int32)
        return position

    @cached_property
    def leaf(self) -> Ints:
        """The leaf node at each position of `order`."""
        leaves = np.flatnonzero(self.variable >= 0).astype(np.int32)
        return leaves[np.argsort(self.first[leaves])]

    def lowest_covering(self, first: Ints, last: Ints) -> Ints:
        """The lowest node that covers each interval of positions [first, last]."""
        pairs = first.astype(np.int64) * self.num_variables + last
        unique, inverse = np.unique(pairs, return_inverse=True)
        node = self.leaf[unique // self.num_variables].copy()
        last_unique = unique % self.num_variables
        climbing = np.flatnonzero(self.last[node] < last_unique)
        while len(climbing):
            node[climbing] = self.parent[node[climbing]]
            climbing = climbing[self.last[node[climbing]] < last_unique[climbing]]
        covering: Ints = node[inverse]
        return covering

    def restrict(self, rename: Mapping[int, int]) -> Vtree | None:
        """The vtree over the variables in `rename` only, renamed; None if no variable is left."""
        left: list[int] = []
        right: list[int] = []
        variable: list[int] = []
        image = [-1] * len(self)
        for node in range(len(self)):
            v = int(self.variable[node])
            if v >= 0:
                if v not in rename:
                    continue
                parts = (-1, -1, rename[v])
            else:
                a, b = image[self.left[node]], image[self.right[node]]
                if a < 0 or b < 0:
                    image[node] = max(a, b)
                    continue
                parts = (a, b, -1)
            left.append(parts[0])
            right.append(parts[1])
            variable.append(parts[2])
            image[node] = len(variable) - 1
        return Vtree(left, right, variable) if variable else None

    def _check(self) -> None:
        count = len(self.variable)
        if not (len(self.left) == len(self.right) == count) or count % 2 == 0:
            raise ValueError("a vtree over n variables has 2n - 1 nodes")
        leaf = self.variable >= 0
        nodes = np.arange(count)
        inner_children = np.concatenate([self.left[~leaf], self.right[~leaf]])
        above = np.concatenate([nodes[~leaf], nodes[~leaf]])
        ok = (
            np.all(inner_children >= 0)
            and np.all(inner_children < above)
            and len(np.unique(inner_children)) == len(inner_children) == count - 1
            and np.array_equal(np.sort(self.variable[leaf]), np.arange((count + 1) // 2))
        )
        if not ok:
            raise ValueError("not a vtree: children come first, each node has one parent, and each variable one leaf")


def _leaves(variables: Iterable[int]) -> tuple[list[int], list[int], list[int]]:
    variable = [int(v) for v in variables]
    return [-1] * len(variable), [-1] * len(variable), variable


def _join(parts: list[int], left: list[int], right: list[int], variable: list[int]) -> int:
    """Add nodes of least depth above the parts, from left to right; returns the topmost, -1 if there are no parts."""
    while len(parts) > 1:
        above = []
        for i in range(0, len(parts) - 1, 2):
            left.append(parts[i])
            right.append(parts[i + 1])
            variable.append(-1)
            above.append(len(variable) - 1)
        if len(parts) % 2:
            above.append(parts[-1])
        parts = above
    return parts[0] if parts else -1
