"""Sums of which some parts count only where a formula holds, such as ``n + 2*late``, and their comparisons."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from semprola.constraints.expressions import Arithmetic, between
from semprola.constraints.linear_sums import linear
from semprola.constraints.relations import COMPARISONS
from semprola.logic import FALSE, TRUE, And, Formula, Kind, Or, at_least, at_most, exactly

Plain: TypeAlias = "Arithmetic | int"
"""A number without conditions."""
_MOST_STATES = 20_000


@dataclass(frozen=True)
class Sum:
    """Parts that count only where their formula holds, and a rest that always counts."""

    parts: tuple[tuple[Formula, Plain], ...] = ()
    rest: Plain = 0

    def plus(self, other: Sum) -> Sum:
        """The sum of two."""
        return Sum(self.parts + other.parts, self.rest + other.rest)

    def scaled(self, factor: int) -> Sum:
        """A multiple."""
        return Sum(tuple((holds, factor * number) for holds, number in self.parts), factor * self.rest)

    def times(self, other: Sum) -> Sum | None:
        """The product of two; None if two numbers with variables meet."""
        parts = []
        for one_holds, one in ((TRUE, self.rest), *self.parts):
            for other_holds, number in ((TRUE, other.rest), *other.parts):
                if not isinstance(one, int) and not isinstance(number, int):
                    return None
                if not (isinstance(one, int) and one == 0) and not (isinstance(number, int) and number == 0):
                    holds = [each for each in (one_holds, other_holds) if each is not TRUE]
                    parts.append((And(holds), one * number))
        always = [number for holds, number in parts if holds is TRUE]
        rest: Plain = 0
        for number in always:
            rest = rest + number
        return Sum(tuple(part for part in parts if part[0] is not TRUE), rest)


def compared(total: Sum, op: str) -> Formula | None:
    """The formula "total op 0"; None if it would be too large."""
    if not total.parts:
        return _plain(total.rest, op)
    if isinstance(total.rest, int):
        merged: dict[Formula, Plain] = {}
        for holds, number in total.parts:
            merged[holds] = merged[holds] + number if holds in merged else number
        weights = {holds: number for holds, number in merged.items() if isinstance(number, int) and number}
        if len(weights) == len(merged):
            if len({abs(weight) for weight in weights.values()}) == 1:
                return _counted(weights, op, total.rest)
            if all(holds.kind is Kind.ATOM and not holds.group for holds in weights):
                return linear({holds.name: weight for holds, weight in weights.items()}, op, -total.rest)
    return _by_cases(total, op)


def _plain(number: Plain, op: str) -> Formula:
    if isinstance(number, int):
        return TRUE if COMPARISONS[op](number, frozenset()) else FALSE
    return between(number, 0, op)


def _counted(weights: dict[Formula, int], op: str, rest: int) -> Formula:
    """A count: all weights are the same number, up to their sign."""
    unit = abs(next(iter(weights.values())))
    items = [holds if weight > 0 else ~holds for holds, weight in weights.items()]
    bound = -rest + unit * sum(weight < 0 for weight in weights.values())  # unit * count op bound
    low, exact = bound // unit, bound % unit == 0
    if op in ("==", "!="):
        same = exactly(low, items) if exact and low >= 0 else FALSE
        return same if op == "==" else ~same
    if op in ("<=", "<"):
        most = low - (op == "<" and exact)
        return at_most(most, items) if most >= 0 else FALSE
    least = low + (not exact or op == ">")
    return at_least(max(least, 0), items)


def _by_cases(total: Sum, op: str) -> Formula | None:
    """One part after the other: it holds or not; sums that leave the same rest share a formula."""
    zero: Callable[[Plain], object] = lambda n: n if isinstance(n, int) else n.total()  # noqa: E731
    levels: list[dict[object, Plain]] = [{zero(total.rest): total.rest}]
    for _, number in total.parts:
        after = {zero(each): each for each in levels[-1].values()}
        for each in levels[-1].values():
            larger = each + number
            after.setdefault(zero(larger), larger)
        levels.append(after)
        if sum(map(len, levels)) > _MOST_STATES:
            return None
    below = {key: _plain(number, op) for key, number in levels[-1].items()}
    for (holds, number), level in zip(reversed(total.parts), reversed(levels[:-1]), strict=True):
        made = {}
        for key, each in level.items():
            with_it, without = below[zero(each + number)], below[key]
            made[key] = with_it if with_it is without else Or(And(holds, with_it), And(~holds, without))
        below = made
    (found,) = below.values()
    return found
