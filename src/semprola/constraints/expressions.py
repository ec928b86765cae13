"""Arithmetic on variables with whole numbers: sums, multiples, absolute values, comparisons."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

from semprola.constraints.family import as_whole
from semprola.constraints.relations import COMPARISONS, Comparison, name_of
from semprola.constraints.terms import Applied, Group, Lookup, Term, Total
from semprola.errors import LabelError
from semprola.logic import FALSE, TRUE, Formula, Kind, Or
from semprola.logic.formula import intern_node
from semprola.logic.messages import brief


class Arithmetic:
    """What a value with a whole number can do: ``+ -``, ``* // %`` by constants, ``abs``, and comparisons."""

    __slots__ = ()

    functions: ClassVar[dict[str, Callable[..., Any]]] = {}
    """What a text can apply to lists of numbers."""

    def total(self) -> Total:
        """The value as a sum of terms.

        Raises:
            LabelError: the values are not whole numbers.
        """
        raise NotImplementedError

    def __add__(self, other: Any) -> Expression:
        return self._joined(other, 1, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Expression:
        return self._joined(other, 1, -1)

    def __rsub__(self, other: Any) -> Expression:
        return self._joined(other, -1, 1)

    def __mul__(self, other: Any) -> Expression:
        if isinstance(other, Arithmetic):
            raise LabelError(f"cannot multiply {self!r} by {other!r}: one factor must be a constant")
        factor = as_whole(other)
        return NotImplemented if factor is None else Expression(summed([(factor, self.total())]))

    __rmul__ = __mul__

    def __neg__(self) -> Expression:
        return Expression(summed([(-1, self.total())]))

    def __pos__(self) -> Expression:
        return Expression(self.total())

    def __abs__(self) -> Expression:
        return Expression(applied("abs", [self.total()]))

    def __floordiv__(self, other: Any) -> Expression:
        return Expression(applied("//", [self.total()], _divisor(self, "//", other)))

    def __mod__(self, other: Any) -> Expression:
        return Expression(applied("%", [self.total()], _divisor(self, "%", other)))

    def __lt__(self, other: Any) -> Formula:
        return between(self, other, "<")

    def __le__(self, other: Any) -> Formula:
        return between(self, other, "<=")

    def __gt__(self, other: Any) -> Formula:
        return between(self, other, ">")

    def __ge__(self, other: Any) -> Formula:
        return between(self, other, ">=")

    def _joined(self, other: Any, own: int, others: int) -> Expression:
        total = total_of(other)
        return NotImplemented if total is None else Expression(summed([(own, self.total()), (others, total)]))


class Expression(Arithmetic):
    """A whole number that depends on variables, such as ``2 * n + m``; comparisons of expressions are formulas.

    Example:
        >>> import semprola as sp
        >>> n, m = sp.Integer("n", 0, 9), sp.Integer("m", 0, 9)
        >>> 2 * n + m <= 7
        2*n + m <= 7
        >>> [sp.rules.model_count(rule) for rule in (2 * n + m <= 7, abs(n - m) == 1, (n + m) % 10 == 3)]
        [20, 18, 10]
    """

    __slots__ = ("_total",)

    def __init__(self, total: Total) -> None:
        self._total = total

    def total(self) -> Total:
        """The expression as a sum of terms."""
        return self._total

    @property
    def bounds(self) -> tuple[int, int]:
        """Numbers between which it always is."""
        return self._total.bounds()

    def isin(self, values: Iterable[int]) -> Formula:
        """The expression has one of these values."""
        numbers = [as_whole(value) for value in values]
        if None in numbers:
            raise LabelError(f"{self!r} is a whole number and cannot be compared with {brief(list(values))}")
        return compared(self._total, "in", frozenset(number for number in numbers if number is not None))

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return between(self, other, "==")

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return between(self, other, "!=")

    def __hash__(self) -> int:
        return hash(self._total)

    def __repr__(self) -> str:
        return self._total.text(name_of)


def between(left: Arithmetic, right: object, op: str) -> Formula:
    """The comparison of an expression with another one, or with a whole number."""
    other = total_of(right)
    if other is None:
        raise LabelError(f"{left!r} is a whole number and cannot be compared with {brief(right)}")
    return compared(summed([(1, left.total()), (-1, other)]), op, frozenset())


def total_of(value: object) -> Total | None:
    """An expression, a variable or a whole number as a sum of terms; None for anything else."""
    if isinstance(value, Arithmetic):
        return value.total()
    number = as_whole(value)
    return None if number is None else Total((), number)


def totals_of(values: Sequence[object], what: str) -> list[Total]:
    """Expressions, variables and whole numbers as sums of terms."""
    if not values:
        raise LabelError(f"{what}: there must be at least one expression")
    totals = [total_of(value) for value in values]
    for value, total in zip(values, totals, strict=True):
        if total is None:
            raise LabelError(f"{what}: {brief(value)} is neither a whole number nor an expression")
    return [total for total in totals if total is not None]


def summed(parts: Iterable[tuple[int, Total]]) -> Total:
    """The sum of multiples of sums: one lookup per variable, and every other term once."""
    constant = 0
    lookups: dict[Group, list[int]] = {}
    others: dict[Term, int] = {}
    for outer, total in parts:
        constant += outer * total.constant
        for inner, term in total.parts:
            factor = outer * inner
            if isinstance(term, Lookup):
                known = lookups.setdefault(term.group, [0] * len(term.numbers))
                lookups[term.group] = [a + factor * b for a, b in zip(known, term.numbers, strict=True)]
            else:
                others[term] = others.get(term, 0) + factor
    found: list[tuple[int, Term]] = [(1, Lookup(group, tuple(numbers))) for group, numbers in lookups.items()]
    found += [(factor, term) for term, factor in others.items() if factor]
    return Total(tuple(found), constant)


def applied(name: str, args: Sequence[Total], divisor: int = 1) -> Total:
    """A function of sums as a sum; functions of constants and of one variable become constants and lookups."""
    term = Applied(name, tuple(args), divisor)
    groups = list(term.spans())
    if len(groups) > 1:
        return Total(((1, term),), 0)
    place = dict.fromkeys(groups, 0)
    reading = term.reading(place)
    if not groups:
        ends = [term.evaluate({}, 1)[0]]
        return Total((), int(ends[0]))
    count = len(groups[0])
    numbers = tuple(reading.number(reading.step(reading.start, 0, choice)) for choice in range(count))
    return Total(((1, Lookup(groups[0], numbers)),), 0)


def compared(total: Total, op: str, allowed: frozenset[int]) -> Formula:
    """The formula "total op 0" (or "total in allowed"); over one variable, a choice of its values."""
    holds = COMPARISONS[op]
    if not total.parts:
        return TRUE if holds(total.constant, allowed) else FALSE
    _, first = total.parts[0]
    if len(total.parts) == 1 and isinstance(first, Lookup):
        return _chosen(first.group, [holds(number + total.constant, allowed) for number in first.numbers])
    return Comparison(total, op, allowed)


def _chosen(group: Group, chosen: Sequence[bool]) -> Formula:
    atoms = [intern_node(Kind.ATOM, name=label, group=group) for label in group]
    wanted = [atom for atom, on in zip(atoms, chosen, strict=True) if on]
    # even a formula that is always false mentions the variable, so that its rule is not lost
    return Or(*wanted) if wanted else ~Or(*atoms)


def _divisor(left: Arithmetic, op: str, value: Any) -> int:
    number = as_whole(value)
    if number is None or number < 1:
        raise LabelError(f"{left!r} {op} {brief(value)}: the divisor must be a whole number of at least 1")
    return number
