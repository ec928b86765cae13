"""Constraints between whole variables, compiled one whole variable at a time."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit, CircuitBuilder
from semprola.circuit.builder import FALSE
from semprola.circuit.vtree import VtreeBuilder
from semprola.compiler.budget import Budget
from semprola.constraints.family import Family
from semprola.constraints.terms import Choices, Group, Lookup, State, Term, Total
from semprola.errors import UnsatisfiableError
from semprola.logic import Reader

COMPARISONS: dict[str, Callable[[Any, frozenset[int]], Any]] = {
    "<=": lambda number, _: number <= 0,
    ">=": lambda number, _: number >= 0,
    "<": lambda number, _: number < 0,
    ">": lambda number, _: number > 0,
    "==": lambda number, _: number == 0,
    "!=": lambda number, _: number != 0,
    "in": lambda number, allowed: number in allowed,
}
"""How a number is compared with zero, or with a set."""
_YES: State = "yes"
"""The state of a comparison that holds whatever follows."""


def name_of(group: Group) -> str:
    """The name of a variable, from its labels."""
    return group[0].rpartition("=")[0]


class Relation(Family):
    """A constraint between whole variables: each has exactly one value, and these values are allowed together.

    A subclass says in which order the variables are read, what to remember of those read so far, and when that is
    allowed in the end.
    """

    groups: tuple[Group, ...]
    """The variables in the order of reading, as the labels of their values; exactly one of each is on."""
    advice = "use smaller ranges, or split the rule into several"

    @abstractmethod
    def start(self) -> State:
        """The state before the first variable; None if nothing is allowed."""

    @abstractmethod
    def step(self, state: State, place: int, choice: int) -> State:
        """The state after the variable at this place takes the value at this place of its labels; None: not allowed."""

    @abstractmethod
    def holds(self, choices: Choices, rows: int) -> NDArray[np.bool_]:
        """Whether the values in each row are allowed, by the definition [rows]."""

    def __init__(self, groups: tuple[Group, ...]) -> None:
        self.groups = groups
        self.names = tuple(label for group in self.groups for label in group)

    @property
    def whole(self) -> tuple[Group, ...]:
        return self.groups

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        single = np.ones(rows, bool)
        choices = {}
        for group in self.groups:
            table = np.stack([columns[label] for label in group], axis=1)
            single &= table.sum(axis=1) == 1
            choices[group] = table.argmax(axis=1)
        return single & self.holds(choices, rows)

    def reader(self, order: Sequence[str]) -> Reader | None:
        """A state machine for orders in which the labels of each variable stay together, in the order of reading."""
        home = {label: (place, choice) for place, group in enumerate(self.groups) for choice, label in enumerate(group)}
        homes = [home[name] for name in order]
        if [place for place, _ in homes] != [place for place, group in enumerate(self.groups) for _ in group]:
            return None
        last = [len(order) == i + 1 or homes[i + 1][0] != place for i, (place, _) in enumerate(homes)]

        def step(state: tuple[bool, State], position: int, value: int) -> tuple[bool, State] | None:
            found, rest = state
            place, choice = homes[position]
            if value:
                rest = None if found else self.step(rest, place, choice)
                if rest is None:
                    return None
                found = True
            if last[position]:
                return (False, rest) if found else None
            return found, rest

        start = self.start()
        return Reader(None if start is None else (False, start), _alive(step), lambda state: state is not None)

    def _build(self, budget: Budget) -> Circuit:
        levels = self._levels(budget)
        labels = self.labels
        builder, first = CircuitBuilder(labels), len(labels)
        below = [builder.true()] * (1 + max(after for row in levels[-1] for after in row))
        for place in range(len(self.groups) - 1, -1, -1):
            group = self.groups[place]
            first -= len(group)
            literals = [builder.literal(first + choice, True) for choice in range(len(group))]
            below = [_node(builder, literals, row, below) for row in levels[place]]
            budget.check(f"variable {name_of(group)!r} ({len(below):,} states)", len(builder))
        if below[0] == FALSE:
            raise UnsatisfiableError(f"{self.describe()} has no model")
        tree, parts, at = VtreeBuilder(range(len(labels))), [], 0
        for group in self.groups:
            parts.append(tree.chain(range(at, at + len(group))))
            at += len(group)
        check = budget.checker("the finished circuit", len(builder))
        vtree = tree.build(tree.chain(parts))
        return builder.build(below[0], zero_suppressed=[True] * len(labels), vtree=vtree, check=check)

    def _levels(self, budget: Budget) -> list[list[list[int]]]:
        """For each variable and state before it, the number of the state after each value; -1 if not allowed."""
        start = self.start()
        current: list[State] = [] if start is None else [start]
        levels: list[list[list[int]]] = []
        total = 0
        for place, group in enumerate(self.groups):
            number: dict[State, int] = {}
            rows = []
            for state in current:
                after = [self.step(state, place, choice) for choice in range(len(group))]
                rows.append([-1 if new is None else number.setdefault(new, len(number)) for new in after])
                if len(rows) % 256 == 0:
                    budget.check(f"variable {name_of(group)!r} ({len(number):,} states)", total + len(number))
            levels.append(rows)
            current, total = list(number), total + len(number)
            budget.check(f"variable {name_of(group)!r} ({len(number):,} states)", total)
        if not current:
            raise UnsatisfiableError(f"{self.describe()} has no model")
        return levels


def _alive(step: Callable[[Any, int, int], Any]) -> Callable[[Any, int, int], Any]:
    return lambda state, position, value: None if state is None else step(state, position, value)


def _node(builder: CircuitBuilder, literals: Sequence[int], row: Sequence[int], below: Sequence[int]) -> int:
    """The sum over the values of a variable; values that lead to the same node share a product."""
    values: dict[int, list[int]] = {}
    for literal, after in zip(literals, row, strict=True):
        if after >= 0 and below[after] != FALSE:
            values.setdefault(below[after], []).append(literal)
    return builder.sum([builder.product([builder.sum(some), node]) for node, some in values.items()])


class Comparison(Relation):
    """An expression compared with zero, or with a set of numbers."""

    def __init__(self, total: Total, op: str, allowed: frozenset[int]) -> None:
        self.total, self.op, self.allowed = total, op, allowed
        spans = total.spans()
        super().__init__(tuple(sorted(spans, key=spans.__getitem__)))
        reading = total.reading({group: place for place, group in enumerate(self.groups)})
        self._reading = reading

    def key(self) -> Hashable:
        return self.total, self.op, self.allowed

    def describe(self) -> str:
        if self.op == "in":
            return f"{self.total.text(name_of)} in {sorted(self.allowed)}"
        left, right = _sides(self.total)
        op = self.op
        if not left.parts:  # constants belong on the right
            left, right = Total(right.parts, 0), Total((), -right.constant)
            op = op.translate(str.maketrans("<>", "><"))
        return f"{left.text(name_of)} {op} {right.text(name_of)}"

    def holds(self, choices: Choices, rows: int) -> NDArray[np.bool_]:
        numbers = self.total.evaluate(choices, rows)
        if self.op == "in":
            return np.fromiter((int(number) in self.allowed for number in numbers), np.bool_, rows)
        return np.asarray(_COMPARE[self.op](numbers, 0), np.bool_)

    def start(self) -> State:
        return self._settled(self._reading.start, 0)

    def step(self, state: State, place: int, choice: int) -> State:
        return state if state is _YES else self._settled(self._reading.step(state, place, choice), place + 1)

    def _settled(self, state: State, place: int) -> State:
        """A state reduced to what matters: None if the comparison cannot hold any more, `_YES` if it must."""
        total, *parts = state
        low, high = total + self._reading.lows[place], total + self._reading.highs[place]
        step = self._reading.steps[place]
        if self.op == "in":
            near = (n - low for n in self.allowed if low <= n <= high)
            reached = any(n % step == 0 if step else n == 0 for n in near)
            return (_YES if low == high else state) if reached else None
        if self.op in ("==", "!="):
            possible = low <= 0 <= high and (low == 0 if not step else low % step == 0)
            if not possible:
                return None if self.op == "==" else _YES
            return _YES if self.op == "==" and low == high else None if self.op == "!=" and low == high else state
        if self.op in (">=", ">"):
            worst, best, sign = -low, -high, -1
        else:
            worst, best, sign = high, low, 1
        most = 0 if self.op in ("<=", ">=") else -1  # what `sign * total` may be at most
        if worst <= most:
            return _YES
        if best > most:
            return None
        if step:  # totals that leave the same values of the rest are one state
            total = total + sign * ((most - best) % step)
        return (total, *parts)


def _sides(total: Total) -> tuple[Total, Total]:
    """Two sums whose difference is the total, without negative terms where possible."""
    left: list[tuple[int, Term]] = []
    right: list[tuple[int, Term]] = []
    for factor, term in total.parts:
        if isinstance(term, Lookup) and term.text(name_of).startswith("-"):
            right.append((1, Lookup(term.group, tuple(-number for number in term.numbers))))
        else:
            (left if factor > 0 else right).append((abs(factor), term))
    return Total(tuple(left), 0), Total(tuple(right), -total.constant)


_COMPARE = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
    "==": operator.eq,
    "!=": operator.ne,
}
