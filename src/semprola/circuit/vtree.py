"""Vtrees: full binary trees over the variables, whose splits a structured circuit respects; and how to build them."""

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
        tree = VtreeBuilder(order)
        return tree.build(tree.chain(range(len(tree))))

    @classmethod
    def balanced(cls, order: Iterable[int]) -> Vtree:
        """A vtree of minimal depth with the variables in this order from left to right."""
        tree = VtreeBuilder(order)
        return tree.build(tree.balanced(range(len(tree))))

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
        order: list[int] = []
        stack = list(roots)
        while stack:
            v = stack.pop()
            order.append(v)
            stack.extend(children[v])
        if len(order) != count:
            raise ValueError("parent has a cycle")
        tree, subtree = VtreeBuilder(range(count)), list(range(count))
        for v in reversed(order):
            if children[v]:
                subtree[v] = tree.pair(v, tree.balanced(subtree[c] for c in children[v]))
        return tree.build(tree.balanced(subtree[r] for r in roots))

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
        tree = VtreeBuilder()
        image = [-1] * len(self)
        for node, v in enumerate(self.variable.tolist()):
            if v >= 0:
                image[node] = tree.leaf(rename[v]) if v in rename else -1
            else:
                a, b = image[self.left[node]], image[self.right[node]]
                image[node] = max(a, b) if a < 0 or b < 0 else tree.pair(a, b)
        return tree.build(len(tree) - 1) if len(tree) else None

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


class VtreeBuilder:
    """A vtree under construction, from the leaves up."""

    def __init__(self, leaves: Iterable[int] = ()) -> None:
        self._variable = [int(v) for v in leaves]
        self._left = [-1] * len(self._variable)
        self._right = [-1] * len(self._variable)

    def __len__(self) -> int:
        return len(self._variable)

    def leaf(self, variable: int) -> int:
        """A further leaf."""
        return self._node(-1, -1, variable)

    def pair(self, left: int, right: int) -> int:
        """A node above two nodes."""
        return self._node(left, right, -1)

    def chain(self, parts: Iterable[int]) -> int:
        """A right-linear tree of nodes: each is to the left of all that follow; -1 if there are none."""
        nodes = list(parts)
        above = nodes.pop() if nodes else -1
        while nodes:
            above = self.pair(nodes.pop(), above)
        return above

    def balanced(self, parts: Iterable[int]) -> int:
        """A tree of minimal depth over nodes, from left to right; -1 if there are none."""
        nodes = list(parts)
        while len(nodes) > 1:
            joined = [self.pair(a, b) for a, b in zip(nodes[::2], nodes[1::2], strict=False)]
            nodes = joined + nodes[2 * len(joined) :]
        return nodes[0] if nodes else -1

    def add(self, vtree: Vtree, rename: npt.NDArray[np.int64]) -> int:
        """A whole vtree with its variable v renamed to ``rename[v]``; returns its root."""
        inner, first = vtree.variable < 0, len(self)
        self._left += np.where(inner, vtree.left + first, -1).tolist()
        self._right += np.where(inner, vtree.right + first, -1).tolist()
        self._variable += np.where(inner, -1, rename[np.where(inner, 0, vtree.variable)]).tolist()
        return len(self) - 1

    def build(self, root: int) -> Vtree:
        """The finished vtree; `root` must be the node made last."""
        return Vtree(self._left, self._right, self._variable)

    def _node(self, left: int, right: int, variable: int) -> int:
        self._left.append(left)
        self._right.append(right)
        self._variable.append(variable)
        return len(self._variable) - 1
