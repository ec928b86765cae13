"""A formula evaluated in an algebra: negations move down to the labels, then values combine from the leaves up.

Fuzzy losses, normal forms and counts of terms differ only in the algebra.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, Protocol, TypeVar

from semprola.logic.formula import Formula, Kind

Value = TypeVar("Value")
Signed = tuple[Formula, bool]
"""A node and a sign: True for the node itself, False for its negation."""


class Algebra(Protocol[Value]):
    """The values of constants and labels, and how values combine."""

    @property
    def true(self) -> Value:
        """The value of the constant "true"."""

    @property
    def false(self) -> Value:
        """The value of the constant "false"."""

    def literal(self, name: str, positive: bool) -> Value:
        """The value of a label, or of its negation."""

    def both(self, parts: Sequence[Value]) -> Value:
        """The value of a conjunction of at least one part."""

    def either(self, parts: Sequence[Value]) -> Value:
        """The value of a disjunction of at least one part."""


def read(formula: Formula, algebra: Algebra[Value], leaf: Callable[[Formula, bool], Value]) -> Value:
    """The value of a formula.

    Each distinct node is read at most twice: as itself, and negated where a negation reaches it. Exclusive or,
    equivalence and counting are spelled out operand by operand.
    """
    reading = _Reading(algebra, leaf)
    pending: list[Signed] = [(formula, True)]
    while pending:
        node = pending[-1]
        waiting = [part for part in _needed(*node) if part not in reading.found]
        if waiting:
            pending += waiting
            continue
        pending.pop()
        if node not in reading.found:
            reading.found[node] = reading.value(*node)
    return reading.found[formula, True]


def _needed(node: Formula, positive: bool) -> list[Signed]:
    """The parts that make up the value of a node, or of its negation."""
    kind, args = node.kind, node.args
    if kind is Kind.NOT:
        return [(args[0], not positive)]
    if kind is Kind.IMPLIES:
        return [(args[0], not positive), (args[1], positive)]
    if kind in (Kind.AND, Kind.OR):
        return [(part, positive) for part in args]
    return [(part, sign) for part in args for sign in (True, False)]


class _Reading(Generic[Value]):
    """Computes the values of nodes and negated nodes from those of their operands."""

    def __init__(self, algebra: Algebra[Value], leaf: Callable[[Formula, bool], Value]) -> None:
        self.algebra, self.leaf = algebra, leaf
        self.found: dict[Signed, Value] = {}

    def value(self, node: Formula, positive: bool) -> Value:
        algebra, kind = self.algebra, node.kind
        if kind is Kind.ATOM:
            return algebra.literal(node.name, positive)
        if kind in (Kind.TRUE, Kind.FALSE):
            return algebra.true if (kind is Kind.TRUE) == positive else algebra.false
        if kind is Kind.CUSTOM:
            return self.leaf(node, positive)
        if kind is Kind.CARDINALITY:
            least, most = node.bounds
            allowed = [(least <= count <= most) == positive for count in range(len(node.args) + 1)]
            return self._counted(node.args, allowed)
        if kind in (Kind.XOR, Kind.IFF):
            return self._parity(node.args, odd=(kind is Kind.XOR) == positive)
        parts = [self.found[part] for part in _needed(node, positive)]
        if kind is Kind.NOT:
            return parts[0]
        conjunction = (kind is Kind.AND) == positive
        if not parts:
            return algebra.true if conjunction else algebra.false
        return algebra.both(parts) if conjunction else algebra.either(parts)

    def _parity(self, args: Sequence[Formula], odd: bool) -> Value:
        """The value of "an odd (or even) number of operands hold", built operand by operand from the left."""
        both, either = self.algebra.both, self.algebra.either
        yes, no = self.found[args[0], True], self.found[args[0], False]
        for part in args[1:]:
            on, off = self.found[part, True], self.found[part, False]
            yes, no = either([both([yes, off]), both([no, on])]), either([both([yes, on]), both([no, off])])
        return yes if odd else no

    def _counted(self, args: Sequence[Formula], allowed: list[bool]) -> Value:
        """The value of "the number of operands that hold is one of those allowed"."""
        # what is already decided stays a bool: constants do not reach the algebra
        level: list[tuple[Value | None, bool]] = [(None, each) for each in allowed]
        for part in reversed(args):
            yes, no = self.found[part, True], self.found[part, False]
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
