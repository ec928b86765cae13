"""Building circuits node by node; equal nodes are shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from semprola.circuit.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.fold import below_root
from semprola.circuit.vtree import Vtree
from semprola.errors import UnsatisfiableError

FALSE = -1
"""What a builder returns for a node without a model; it never becomes part of a circuit."""

_CHECK_EVERY = 1024
Item = TypeVar("Item")


def watched(items: Iterable[Item], check: Callable[[], None] | None) -> Iterator[Item]:
    """The items one by one; `check` is called once per thousand items and may raise an exception to stop."""
    for number, item in enumerate(items, start=1):
        if number % _CHECK_EVERY == 0 and check is not None:
            check()
        yield item


class CircuitBuilder:
    """Collects nodes bottom-up: equal nodes get equal numbers, and constants are folded away.

    Example:
        >>> b = CircuitBuilder(["a", "b"])
        >>> root = b.sum([b.product([b.literal(0, True), b.literal(1, False)]), b.literal(0, False)])
        >>> b.build(root).model_count()
        3
    """

    def __init__(self, labels: Sequence[str], given: Sequence[str] = ()) -> None:
        self.labels = tuple(labels)
        self.given = tuple(given)
        self._kind: list[int] = []
        self._literal: list[int] = []
        self._children: list[tuple[int, ...]] = []
        self._known: dict[tuple[int, ...], int] = {}

    def __len__(self) -> int:
        return len(self._kind)

    def literal(self, variable: int, positive: bool) -> int:
        """The literal of a variable (its index among labels, then given)."""
        signed = variable + 1 if positive else -variable - 1
        return self._node((LITERAL, signed), LITERAL, signed, ())

    def true(self) -> int:
        """The node that every assignment satisfies."""
        return self._node((PRODUCT,), PRODUCT, 0, ())

    def product(self, children: Iterable[int]) -> int:
        """The conjunction of nodes that share no variable."""
        parts = []
        for child in dict.fromkeys(children):
            if child == FALSE:
                return FALSE
            if self._kind[child] != PRODUCT or self._children[child]:
                parts.append(child)
        if len(parts) == 1:
            return parts[0]
        return self._node((PRODUCT, *sorted(parts)), PRODUCT, 0, tuple(parts))

    def sum(self, children: Iterable[int]) -> int:
        """The disjunction of mutually exclusive nodes."""
        parts = [child for child in dict.fromkeys(children) if child != FALSE]
        if not parts:
            return FALSE
        if len(parts) == 1:
            return parts[0]
        return self._node((SUM, *sorted(parts)), SUM, 0, tuple(parts))

    def decision(self, variable: int, low: int, high: int) -> int:
        """``(not v and low) or (v and high)``."""
        return self.sum(
            [
                self.product([self.literal(variable, False), low]),
                self.product([self.literal(variable, True), high]),
            ]
        )

    def build(
        self,
        root: int,
        *,
        zero_suppressed: npt.ArrayLike | None = None,
        vtree: Vtree | None = None,
        info: Mapping[str, Any] | None = None,
        check: Callable[[], None] | None = None,
    ) -> Circuit:
        """The circuit below `root`: unreachable nodes are dropped, products whose only parent is a product are merged.

        Args:
            root: the node.
            zero_suppressed, vtree, info: see `Circuit`.
            check: called from time to time; may raise an exception to stop.

        Raises:
            UnsatisfiableError: `root` is FALSE.
        """
        if root == FALSE:
            raise UnsatisfiableError("the constraint has no model")
        count = root + 1
        kind = np.fromiter(self._kind, np.int8, count)
        arity = np.fromiter(map(len, self._children), np.int64, count)
        flat = np.fromiter(chain.from_iterable(self._children), np.int64, int(arity.sum()))
        look = check or (lambda: None)
        look()
        above = np.repeat(np.arange(count), arity)
        reached = below_root(np.concatenate([[0], np.cumsum(arity)]), flat)
        look()
        live = reached[above]
        parents = np.bincount(flat[live], minlength=count)
        taken = live & (kind[above] == PRODUCT) & (kind[flat] == PRODUCT) & (parents[flat] == 1)
        look()
        inlined = np.zeros(count, bool)
        inlined[flat[taken]] = True
        kept = reached & ~inlined
        takers = np.zeros(count, bool)
        takers[above[taken]] = True
        grown = np.flatnonzero(takers & kept)
        inside = set(np.flatnonzero(inlined).tolist())
        merged = [self._expand(node, inside) for node in watched(grown.tolist(), check)]
        arity[grown] = [len(parts) for parts in merged]
        start = np.concatenate([[0], np.cumsum(arity[kept])])
        number = np.cumsum(kept) - 1
        look()
        owner = np.repeat(np.flatnonzero(kept), arity[kept])
        children = np.empty(len(owner), np.int64)
        children[takers[owner]] = np.fromiter(chain.from_iterable(merged), np.int64)
        children[~takers[owner]] = flat[kept[above] & ~takers[above]]
        literal = np.fromiter(self._literal, np.int32, count)
        return Circuit(
            self.labels,
            self.given,
            kind[kept],
            literal[kept],
            start,
            number[children],
            zero_suppressed=zero_suppressed,
            vtree=vtree,
            info=info,
        )

    def _node(self, key: tuple[int, ...], kind: int, literal: int, children: tuple[int, ...]) -> int:
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self._kind)
            self._kind.append(kind)
            self._literal.append(literal)
            self._children.append(children)
        return known

    def _expand(self, node: int, inlined: set[int]) -> list[int]:
        parts: list[int] = []
        stack = list(reversed(self._children[node]))
        while stack:
            child = stack.pop()
            if child in inlined:
                stack.extend(reversed(self._children[child]))
            else:
                parts.append(child)
        return parts
