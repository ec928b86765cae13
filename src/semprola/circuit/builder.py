"""Builds circuits node by node, sharing equal nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.circuit.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.vtree import Vtree
from semprola.errors import UnsatisfiableError

FALSE = -1
"""What a builder returns for a node with no model; it never becomes part of a circuit."""


class CircuitBuilder:
    """Collects nodes bottom-up; equal nodes get equal numbers, constants are folded away.

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
        """The disjunction of nodes that exclude each other."""
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

    def copy_nodes(self, circuit: Circuit, rename: Mapping[int, int]) -> list[int]:
        """Add the nodes of a circuit, its variables renamed; returns their new numbers."""
        image: list[int] = []
        start, children = circuit.child_start.tolist(), circuit.children.tolist()
        for node, (kind, literal) in enumerate(zip(circuit.kind.tolist(), circuit.literal.tolist(), strict=True)):
            if kind == LITERAL:
                image.append(self.literal(rename[abs(literal) - 1], literal > 0))
                continue
            parts = [image[child] for child in children[start[node] : start[node + 1]]]
            image.append(self.product(parts) if kind == PRODUCT else self.sum(parts))
        return image

    def build(
        self,
        root: int,
        *,
        zero_suppressed: npt.ArrayLike | None = None,
        vtree: Vtree | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> Circuit:
        """The circuit below `root`: unreachable nodes dropped, products with a single parent product merged into it.

        Raises:
            UnsatisfiableError: `root` is FALSE.
        """
        if root == FALSE:
            raise UnsatisfiableError("the constraint has no model")
        parents = self._parent_counts(root)
        inlined = {
            child
            for node in parents
            if self._kind[node] == PRODUCT
            for child in self._children[node]
            if self._kind[child] == PRODUCT and parents[child] == 1
        }
        kept = [node for node in sorted(parents) if node not in inlined]
        merged = {node: self._expand(node, inlined) for node in kept}
        number = {node: i for i, node in enumerate(kept)}
        counts = [len(merged[node]) for node in kept]
        return Circuit(
            self.labels,
            self.given,
            np.fromiter((self._kind[node] for node in kept), np.int8, len(kept)),
            np.fromiter((self._literal[node] for node in kept), np.int32, len(kept)),
            np.concatenate([[0], np.cumsum(counts, dtype=np.int64)]),
            np.fromiter((number[child] for node in kept for child in merged[node]), np.int32, sum(counts)),
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

    def _parent_counts(self, root: int) -> dict[int, int]:
        parents = {root: 0}
        stack = [root]
        while stack:
            for child in self._children[stack.pop()]:
                if child not in parents:
                    parents[child] = 0
                    stack.append(child)
                parents[child] += 1
        return parents

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
