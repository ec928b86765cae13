"""Builds vtrees bottom-up, for circuits that do not follow one variable order."""

from __future__ import annotations

from collections.abc import Iterable

from semprola.circuit import Vtree


class VtreeBuilder:
    """A vtree under construction; node v < variables is the leaf of variable v.

    Example:
        >>> tree = VtreeBuilder(3)
        >>> tree.build(tree.pair(1, tree.pair(0, 2))).order.tolist()
        [1, 0, 2]
    """

    def __init__(self, variables: int) -> None:
        self._left = [-1] * variables
        self._right = [-1] * variables
        self._variable = list(range(variables))

    def pair(self, left: int, right: int) -> int:
        """A node above two nodes."""
        self._left.append(left)
        self._right.append(right)
        self._variable.append(-1)
        return len(self._variable) - 1

    def chain(self, parts: Iterable[int]) -> int:
        """A right-linear tree of nodes: each is to the left of all that follow."""
        nodes = list(parts)
        above = nodes.pop()
        while nodes:
            above = self.pair(nodes.pop(), above)
        return above

    def balanced(self, parts: Iterable[int]) -> int:
        """A tree of minimal depth over nodes."""
        nodes = list(parts)
        while len(nodes) > 1:
            joined = [self.pair(nodes[i], nodes[i + 1]) for i in range(0, len(nodes) - 1, 2)]
            nodes = joined + nodes[len(joined) * 2 :]
        return nodes[0]

    def build(self, root: int) -> Vtree:
        """The finished vtree; `root` must be the node made last."""
        return Vtree(self._left, self._right, self._variable)
