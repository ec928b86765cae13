"""A formula read through an algebra: negations moved down to the labels, then "both" and "either" from the leaves up.

Fuzzy losses, normal forms and counts of terms differ in nothing but the algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Generic, Protocol, TypeVar

from semprola.logic.formula import Formula, Kind

Value = TypeVar("Value")
Pair = tuple[Value, Value]


class Algebra(Protocol[Value]):
    """What a formula is read as."""

    @property
    def true(self) -> Value:
        """The value of a constant that always holds."""

    @property
    def false(self) -> Value:
        """The value of a constant that never holds."""

    def literal(self, name: str, positive: bool) -> Value:
        """The value of a label, or of its negation."""

    def both(self, parts: Sequence[Value]) -> Value:
        """The value of a conjunction of at least one part."""

    def either(self, parts: Sequence[Value]) -> Value:
        """The value of a disjunction of at least one part."""


def read(formula: Formula, algebra: Algebra[Value], leaf: Callable[[Formula], Pair[Value]]) -> Value:
    """The value of a formula.

    Each distinct node is read once, as itself and as its negation. Exclusive or, equivalence and counting are spelled
    out by deciding one operand after the other.

    Args:
        formula: any formula.
        algebra: what to read it as.
        leaf: the values of a family and of its negation.

    Example:
        >>> from semprola.logic import parse
        >>> class Text:
        ...     true, false = "T", "F"
        ...     def literal(self, name, positive):
        ...         return name if positive else f"~{name}"
        ...     def both(self, parts):
        ...         return "(" + " & ".join(parts) + ")"
        ...     def either(self, parts):
        ...         return "(" + " | ".join(parts) + ")"
        >>> read(parse("!(a & !b) ^ c"), Text(), None)
        '(((~a | b) & ~c) | ((a & ~b) & c))'
    """
    reading = _Reading(algebra, leaf)
    found: dict[Formula, Pair[Value]] = {}
    for node in formula.nodes():
        found[node] = reading.node(node, [found[part] for part in node.args])
    return found[formula][0]


class _Reading(Generic[Value]):
    """Values of nodes and of their negations, from those of their operands."""

    def __init__(self, algebra: Algebra[Value], leaf: Callable[[Formula], Pair[Value]]) -> None:
        self.algebra, self.leaf = algebra, leaf

    def node(self, node: Formula, parts: list[Pair[Value]]) -> Pair[Value]:
        algebra, kind = self.algebra, node.kind
        if kind is Kind.ATOM:
            return algebra.literal(node.name, True), algebra.literal(node.name, False)
        if kind is Kind.TRUE:
            return algebra.true, algebra.false
        if kind is Kind.FALSE:
            return algebra.false, algebra.true
        if kind is Kind.NOT:
            return parts[0][::-1]
        if kind is Kind.CUSTOM:
            return self.leaf(node)
        if kind is Kind.CARDINALITY:
            least, most = node.bounds
            inside = [least <= count <= most for count in range(len(parts) + 1)]
            return self._counted(parts, inside), self._counted(parts, [not allowed for allowed in inside])
        if kind is Kind.IMPLIES:
            return self._either([parts[0][::-1], parts[1]])
        if kind is Kind.AND:
            return self._both(parts)
        if kind is Kind.OR:
            return self._either(parts)
        pair = reduce(self._differ, parts)
        return pair if kind is Kind.XOR else pair[::-1]

    def _both(self, parts: Sequence[Pair[Value]]) -> Pair[Value]:
        if not parts:
            return self.algebra.true, self.algebra.false
        return self.algebra.both([yes for yes, _ in parts]), self.algebra.either([no for _, no in parts])

    def _either(self, parts: Sequence[Pair[Value]]) -> Pair[Value]:
        return self._both([part[::-1] for part in parts])[::-1]

    def _differ(self, a: Pair[Value], b: Pair[Value]) -> Pair[Value]:
        """One of the two and not the other; its negation is both or neither."""
        both, either = self.algebra.both, self.algebra.either
        return either([both([a[0], b[1]]), both([a[1], b[0]])]), either([both([a[0], b[0]]), both([a[1], b[1]])])

    def _counted(self, parts: list[Pair[Value]], allowed: list[bool]) -> Value:
        """Value of: the number of operands that hold is one of those allowed."""
        # what is decided already stays a bool, so that constants do not reach the algebra
        level: list[tuple[Value | None, bool]] = [(None, each) for each in allowed]
        for yes, no in reversed(parts):
            level = [self._decide(yes, no, level[n + 1], level[n]) for n in range(len(level) - 1)]
        ((value, constant),) = level
        if value is None:
            return self.algebra.true if constant else self.algebra.false
        return value

    def _decide(
        self, yes: Value, no: Value, then: tuple[Value | None, bool], otherwise: tuple[Value | None, bool]
    ) -> tuple[Value | None, bool]:
        if then[0] is None and otherwise[0] is None and then[1] == otherwise[1]:
            return then
        ways = []
        for condition, (value, constant) in ((yes, then), (no, otherwise)):
            if value is not None:
                ways.append(self.algebra.both([condition, value]))
            elif constant:
                ways.append(condition)
        return (self.algebra.either(ways) if len(ways) > 1 else ways[0]), True
