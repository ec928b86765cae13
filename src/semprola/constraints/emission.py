"""From a reduced decision diagram to the arrays of a circuit."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from semprola.circuit import LITERAL, PRODUCT, SUM

Ids = npt.NDArray[np.int64]

FALSE_ID, TRUE_ID = 0, 1
"""The two nodes that every diagram has."""

_CHECK_EVERY = 16384


class Emitter:
    """Writes a reduced diagram as circuit arrays: shared products once, chains of forced literals as one product.

    Args:
        variable, low, high: the variable and the two successors of each node, children first; entries 0 and 1, which
            stand for false and true, are not read.
        suppressed: for each variable whether it is zero-suppressed.

    Attributes:
        kind, literal, arity, children: the nodes of the circuit, after `run`.
    """

    def __init__(self, variable: Ids, low: Ids, high: Ids, suppressed: npt.NDArray[np.bool_]) -> None:
        self.variable, self.low, self.high, self.suppressed = variable, low, high, suppressed
        self.kind: list[int] = []
        self.literal: list[int] = []
        self.arity: list[int] = []
        self.children: list[int] = []
        self._leaves: dict[int, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._image: list[int] = []
        self._pending: dict[int, list[int]] = {}

    def run(self, root: int, check: Callable[[], None]) -> None:
        """Write everything below a node, which must be the last one; `check` is called now and then, to stop it."""
        inlined = self._inlined(root)
        low, high, suppressed = self.low.tolist(), self.high.tolist(), self.suppressed.tolist()
        image = self._image = [-1, -1]
        for node, v in enumerate(self.variable.tolist()[2 : root + 1], start=2):
            if node % _CHECK_EVERY == 0:
                check()
            if node in inlined:
                sign, child = (v + 1, high[node]) if high[node] else (-v - 1, low[node])
                self._pending[node] = [*self._parts(child), self._leaf(sign)]
                image.append(-1)
                continue
            branches = []
            if low[node] != FALSE_ID:
                branches.append(self._plain(low[node]) if suppressed[v] else self._product(-v - 1, low[node]))
            if high[node] != FALSE_ID:
                branches.append(self._product(v + 1, high[node]))
            image.append(branches[0] if len(branches) == 1 else self._node(SUM, 0, branches))
        if root == TRUE_ID:
            self._leaf(0)

    def _inlined(self, root: int) -> set[int]:
        """Nodes that are one literal and a successor, and part of one product only: that product takes them in."""
        count = len(self.variable)
        zero = self.suppressed[self.variable]
        zero[:2] = False
        literal = np.concatenate([self.variable * 2 + 1, self.variable * 2])
        child = np.concatenate([self.high, self.low])
        real = np.concatenate([self.high != FALSE_ID, (self.low != FALSE_ID) & ~zero])
        real[:2] = real[count : count + 2] = False
        products, times = np.unique((literal[real] << 32) | child[real], return_counts=True)
        in_products = np.bincount(products & 0xFFFFFFFF, minlength=count)
        in_sums = np.bincount(self.low[zero & (self.low != FALSE_ID)], minlength=count)
        forced = ((self.low == FALSE_ID) & (self.high > TRUE_ID)) | (
            ~zero & (self.high == FALSE_ID) & (self.low > TRUE_ID)
        )
        forced &= (in_products == 1) & (in_sums == 0)
        forced[:2] = forced[root] = False
        nodes = np.flatnonzero(forced)
        positive = self.high[nodes] != FALSE_ID
        own_literal = self.variable[nodes] * 2 + positive
        own = (own_literal << 32) | np.where(positive, self.high[nodes], self.low[nodes])
        alone = times[np.searchsorted(products, own)] == 1
        return set(nodes[alone].tolist())

    def _plain(self, child: int) -> int:
        return self._leaf(0) if child == TRUE_ID else self._image[child]

    def _parts(self, child: int) -> list[int]:
        """What a product with this successor has as children beside its literal, last variable first."""
        pending = self._pending.pop(child, None)
        if pending is not None:
            return pending
        return [self._image[child]]

    def _product(self, sign: int, child: int) -> int:
        if child == TRUE_ID:
            return self._leaf(sign)
        known = self._products.get((sign, child))
        if known is None:
            parts = self._parts(child)
            parts.append(self._leaf(sign))
            parts.reverse()
            known = self._products[sign, child] = self._node(PRODUCT, 0, parts)
        return known

    def _leaf(self, sign: int) -> int:
        """A literal; 0 is the empty product, which is true."""
        known = self._leaves.get(sign)
        if known is None:
            known = self._leaves[sign] = self._node(LITERAL if sign else PRODUCT, sign, [])
        return known

    def _node(self, kind: int, literal: int, children: list[int]) -> int:
        self.kind.append(kind)
        self.literal.append(literal)
        self.arity.append(len(children))
        self.children.extend(children)
        return len(self.kind) - 1
