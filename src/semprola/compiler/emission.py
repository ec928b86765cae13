"""From a reduced decision diagram to the arrays of a circuit."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from semprola.circuit import LITERAL, PRODUCT, SUM

Ids = npt.NDArray[np.int64]

FALSE_ID, TRUE_ID = 0, 1
"""The ids of the two constant nodes of every diagram."""

_CHECK_EVERY = 16384


class Emitter:
    """Writes a reduced diagram as circuit arrays: products are shared, chains of forced literals become one product.

    Args:
        variable, low, high: the variable and the two successors of each node, children first; entries 0 and 1, which
            stand for false and true, are not read.

    Attributes:
        kind, literal, arity, children: the nodes of the circuit, after `run`.
    """

    def __init__(self, variable: Ids, low: Ids, high: Ids, suppressed: npt.NDArray[np.bool_]) -> None:
        self.variable, self.low, self.high, self.suppressed = variable, low, high, suppressed
        # arrays take a fraction of the memory of lists, and numpy reads them directly
        self.kind = array("b")
        self.literal = array("i")
        self.arity = array("i")
        self.children = array("i")
        self._leaves: dict[int, int] = {}
        self._products: dict[tuple[int, int], int] = {}
        self._image: list[int] = []
        self._pending: dict[int, list[int]] = {}

    def run(self, root: int, check: Callable[[], None]) -> None:
        """Write everything below a node, which must be the last one; `check` may raise an exception to stop."""
        inlined, suppressed = self._inlined(root, check), self.suppressed.tolist()
        image = self._image = [-1, -1]
        for node, v, low, high in self._nodes(root, check):
            if inlined[node]:
                sign, child = (v + 1, high) if high else (-v - 1, low)
                self._pending[node] = [*self._parts(child), self._leaf(sign)]
                image.append(-1)
                continue
            branches = []
            if low != FALSE_ID:
                branches.append(self._plain(low) if suppressed[v] else self._product(-v - 1, low))
            if high != FALSE_ID:
                branches.append(self._product(v + 1, high))
            image.append(branches[0] if len(branches) == 1 else self._node(SUM, 0, branches))
        if root == TRUE_ID:
            self._leaf(0)

    def _nodes(self, root: int, check: Callable[[], None]) -> Iterator[tuple[int, int, int, int]]:
        """Every node up to the root with its variable and successors."""
        for first in range(2, root + 1, _CHECK_EVERY):
            check()
            end = min(first + _CHECK_EVERY, root + 1)
            columns = (column[first:end].tolist() for column in (self.variable, self.low, self.high))
            yield from zip(range(first, end), *columns, strict=True)

    def _inlined(self, root: int, check: Callable[[], None]) -> bytes:
        """Nodes that are just a literal and a successor, and part of only one product: they are merged into it."""
        count = len(self.variable)
        zero = self.suppressed[self.variable]
        zero[:2] = False
        literal = np.concatenate([self.variable * 2 + 1, self.variable * 2])
        child = np.concatenate([self.high, self.low])
        real = np.concatenate([self.high != FALSE_ID, (self.low != FALSE_ID) & ~zero])
        real[:2] = real[count : count + 2] = False
        check()
        products, place, times = distinct((literal[real] << 32) | child[real], check)
        in_products = np.bincount(products & 0xFFFFFFFF, minlength=count)
        check()
        in_sums = np.bincount(self.low[zero & (self.low != FALSE_ID)], minlength=count)
        forced = ((self.low == FALSE_ID) & (self.high > TRUE_ID)) | (
            ~zero & (self.high == FALSE_ID) & (self.low > TRUE_ID)
        )
        forced &= (in_products == 1) & (in_sums == 0)
        forced[:2] = forced[root] = False
        check()
        nodes = np.flatnonzero(forced)
        number = np.cumsum(real) - 1  # of each branch among those that are products
        own = place[number[np.where(self.high[nodes] != FALSE_ID, nodes, nodes + count)]]
        alone = times[own] == 1
        inlined = np.zeros(count, np.int8)
        inlined[nodes[alone]] = 1
        return inlined.tobytes()

    def _plain(self, child: int) -> int:
        return self._leaf(0) if child == TRUE_ID else self._image[child]

    def _parts(self, child: int) -> list[int]:
        """The children of a product with this successor, besides its literal; the last variable comes first."""
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


Keys = npt.NDArray[np.int64]

_AT_ONCE = 1 << 18
"""Keys that are sorted in one go: about twenty milliseconds."""
_PARTS = 256


def distinct(keys: Keys, check: Callable[[], None]) -> tuple[Keys, Keys, Keys]:
    """The distinct keys in ascending order, the index of each key among them, and how often each occurs.

    The result equals that of ``numpy.unique``, which cannot be stopped while it sorts millions of keys.
    """
    if len(keys) <= _AT_ONCE:
        return np.unique(keys, return_inverse=True, return_counts=True)
    check()
    sample = np.sort(keys[:: max(1, len(keys) // (16 * _PARTS))])
    bounds = sample[:: max(1, len(sample) // (_PARTS - 1))][1:_PARTS]
    part = np.empty(len(keys), np.uint8)
    for first in range(0, len(keys), _AT_ONCE):
        part[first : first + _AT_ONCE] = np.searchsorted(bounds, keys[first : first + _AT_ONCE], side="right")
        check()
    order = np.argsort(part, kind="stable")
    check()
    ends = np.cumsum(np.bincount(part, minlength=_PARTS)).tolist()
    place = np.empty(len(keys), np.int64)
    values, times, found, first = [], [], 0, 0
    for end in ends:
        check()
        members = order[first:end]
        own, inverse, count = np.unique(keys[members], return_inverse=True, return_counts=True)
        place[members] = inverse + found
        values.append(own)
        times.append(count)
        found, first = found + len(own), end
    return np.concatenate(values), place, np.concatenate(times)
