"""Numbers that depend on whole variables: the terms that arithmetic is made of, without operators.

A term knows its bounds, its value on data, and how to read its variables one after the other (see `Reading`): what it
remembers of the variables read so far is as little as possible, such as a partial sum.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Group: TypeAlias = tuple[str, ...]
"""A variable, as the labels of its values."""
State: TypeAlias = Any
"""What a reading remembers: a hashable value; equal ones behave the same."""
Choices: TypeAlias = Mapping[Group, NDArray[np.int64]]
"""The place of the value of each variable in every row [rows]."""


class Reading(ABC):
    """A term along an order of its variables."""

    start: State

    @abstractmethod
    def step(self, state: State, place: int, choice: int) -> State:
        """The state after the variable at this place of the order takes one of its values."""

    @abstractmethod
    def number(self, state: State) -> int:
        """The value of the term, once all its variables are read."""


class Term(ABC):
    """A whole number that depends on variables."""

    @abstractmethod
    def spans(self) -> dict[Group, int]:
        """The variables in order of appearance, and by how much each can change the term.

        Those that change it least are read first: what they leave to the others is then a carry, and a variable that
        the others determine, such as a digit of their sum, comes right after them.
        """

    @abstractmethod
    def bounds(self) -> tuple[int, int]:
        """Numbers between which the term always is."""

    @abstractmethod
    def evaluate(self, choices: Choices, rows: int) -> NDArray[Any]:
        """The value in every row [rows]; Python numbers of any size where needed."""

    @abstractmethod
    def reading(self, place: Mapping[Group, int]) -> Reading:
        """The term along an order, given by the place of each variable."""

    @abstractmethod
    def text(self, name: Callable[[Group], str]) -> str:
        """How it is written."""


@dataclass(frozen=True)
class Lookup(Term):
    """A number for each value of one variable."""

    group: Group
    numbers: tuple[int, ...]

    def spans(self) -> dict[Group, int]:
        return {self.group: max(self.numbers) - min(self.numbers)}

    def bounds(self) -> tuple[int, int]:
        return min(self.numbers), max(self.numbers)

    def evaluate(self, choices: Choices, rows: int) -> NDArray[Any]:
        return _numbers(self.numbers)[choices[self.group]]

    def reading(self, place: Mapping[Group, int]) -> Reading:
        return Total(((1, self),), 0).reading(place)

    def text(self, name: Callable[[Group], str]) -> str:
        step = self.numbers[1] - self.numbers[0] if len(self.numbers) > 1 else 0
        if step and all(b - a == step for a, b in zip(self.numbers, self.numbers[1:], strict=False)):
            own = self.group[0].rpartition("=")[2]
            if own.lstrip("-").isdigit() and self.numbers[0] == step * int(own):
                return {1: "", -1: "-"}.get(step, f"{step}*") + name(self.group)
        return f"f({name(self.group)})"


@dataclass(frozen=True)
class Total(Term):
    """The sum of other terms with coefficients, and a constant; lookups have coefficient 1 and different variables."""

    parts: tuple[tuple[int, Term], ...]
    constant: int

    def spans(self) -> dict[Group, int]:
        found: dict[Group, int] = {}
        for factor, part in self.parts:
            for group, span in part.spans().items():
                found[group] = max(found.get(group, 0), abs(factor) * span)
        return found

    def bounds(self) -> tuple[int, int]:
        ends = [sorted(factor * end for end in part.bounds()) for factor, part in self.parts]
        return self.constant + sum(low for low, _ in ends), self.constant + sum(high for _, high in ends)

    def evaluate(self, choices: Choices, rows: int) -> NDArray[Any]:
        sizes = [abs(factor * end) for factor, part in self.parts for end in part.bounds()]
        total: NDArray[Any] = np.full(rows, self.constant, _number_type([sum(sizes) + abs(self.constant)]))
        for factor, part in self.parts:
            total = total + factor * part.evaluate(choices, rows).astype(total.dtype)
        return total

    def reading(self, place: Mapping[Group, int]) -> TotalReading:
        return TotalReading(self, place)

    def text(self, name: Callable[[Group], str]) -> str:
        shown = [("" if factor == 1 else f"{factor}*") + part.text(name) for factor, part in self.parts]
        if self.constant or not shown:
            shown.append(str(self.constant))
        return " + ".join(shown).replace("+ -", "- ")


class TotalReading(Reading):
    """A sum along an order: what is remembered is the sum so far, and the states of parts that are not finished.

    Attributes:
        lows, highs: after each number of places read, the least and greatest sum of what is still to come.
        steps: likewise, what divides every difference of two such sums.
    """

    def __init__(self, total: Total, place: Mapping[Group, int]) -> None:
        self.own: dict[int, tuple[int, ...]] = {}
        self.open: list[tuple[int, Reading, frozenset[int], int]] = []
        ends: list[tuple[int, int, int, int]] = []
        for factor, part in total.parts:
            places = [place[group] for group in part.spans()]
            low, high = sorted(factor * end for end in part.bounds())
            if isinstance(part, Lookup):
                self.own[places[0]] = numbers = tuple(factor * number for number in part.numbers)
                ends.append((places[0], low, high, math.gcd(*(n - numbers[0] for n in numbers))))
            else:
                self.open.append((factor, part.reading(place), frozenset(places), max(places)))
                ends.append((max(places), low, high, abs(factor)))
        self.start = (total.constant, *(reading.start for _, reading, _, _ in self.open))
        self.lows, self.highs, self.steps = _rest(ends, max(place.values(), default=-1) + 1)

    def step(self, state: State, place: int, choice: int) -> State:
        total, *parts = state
        if place in self.own:
            total += self.own[place][choice]
        for i, (factor, reading, places, last) in enumerate(self.open):
            if place in places:
                parts[i] = reading.step(parts[i], place, choice)
                if place == last:
                    total, parts[i] = total + factor * reading.number(parts[i]), None
        return (total, *parts)

    def number(self, state: State) -> int:
        return int(state[0])


@dataclass(frozen=True)
class Applied(Term):
    """A function of other terms: "abs", "//", "%" (by `number`), "min", "max", "element" (the first is the place)."""

    name: str
    args: tuple[Total, ...]
    divisor: int = 1

    def spans(self) -> dict[Group, int]:
        found: dict[Group, int] = {}
        for arg in self.args:
            for group, span in arg.spans().items():
                found[group] = max(found.get(group, 0), span)
        if self.name == "element":  # what decides between the others is read first
            found |= dict.fromkeys(self.args[0].spans(), 0)
        return found

    def bounds(self) -> tuple[int, int]:
        ends = [arg.bounds() for arg in self.args]
        low, high = ends[0]
        if self.name == "abs":
            return max(0, low, -high), max(abs(low), abs(high))
        if self.name == "//":
            return low // self.divisor, high // self.divisor
        if self.name == "%":
            return 0, self.divisor - 1
        if self.name in ("min", "max"):
            choose = min if self.name == "min" else max
            return choose(a for a, _ in ends), choose(b for _, b in ends)
        return min(a for a, _ in ends[1:]), max(b for _, b in ends[1:])

    def evaluate(self, choices: Choices, rows: int) -> NDArray[Any]:
        first, *others = (arg.evaluate(choices, rows) for arg in self.args)
        if self.name == "abs":
            return np.asarray(abs(first))
        if self.name in ("//", "%"):
            return np.asarray(first // self.divisor if self.name == "//" else first % self.divisor)
        if self.name in ("min", "max"):
            choose = np.minimum if self.name == "min" else np.maximum
            for other in others:
                first = choose(first, other)
            return first
        return np.array([others[int(i)][row] for row, i in enumerate(first)], dtype=object)

    def reading(self, place: Mapping[Group, int]) -> Reading:
        readings = [arg.reading(place) for arg in self.args]
        places = [frozenset(place[group] for group in arg.spans()) for arg in self.args]
        return _ElementReading(readings, places) if self.name == "element" else _AppliedReading(self, readings, places)

    def text(self, name: Callable[[Group], str]) -> str:
        shown = [arg.text(name) for arg in self.args]
        if self.name in ("//", "%"):
            return f"({shown[0]}) {self.name} {self.divisor}"
        return f"{self.name}({', '.join(shown)})"


class _AppliedReading(Reading):
    """A function of terms: the states of those that are not finished, and the least or greatest of those that are."""

    def __init__(self, term: Applied, readings: Sequence[TotalReading], places: Sequence[frozenset[int]]) -> None:
        self.term, self.readings, self.places = term, readings, places
        fixed = [reading.start[0] for reading, own in zip(readings, places, strict=True) if not own]
        self.choose: Callable[[Iterable[int]], int] = max if term.name == "max" else min
        best = self.choose(fixed) if fixed else None
        starts = (reading.start if own else None for reading, own in zip(readings, places, strict=True))
        self.start = (best, *starts)

    def step(self, state: State, place: int, choice: int) -> State:
        best, *parts = state
        for i, (reading, places) in enumerate(zip(self.readings, self.places, strict=True)):
            if place in places:
                parts[i] = reading.step(parts[i], place, choice)
                if self.term.name == "%":
                    parts[i] = (parts[i][0] % self.term.divisor, *parts[i][1:])
                if place == max(places):
                    value, parts[i] = self._applied(parts[i][0]), None
                    best = value if best is None else self.choose((best, value))
        return (best, *parts)

    def number(self, state: State) -> int:
        return int(state[0])

    def _applied(self, value: int) -> int:
        if self.term.name == "abs":
            return abs(value)
        if self.term.name == "//":
            return value // self.term.divisor
        return value % self.term.divisor if self.term.name == "%" else value


class _ElementReading(Reading):
    """One of several terms: all their states, until it is known which one counts."""

    def __init__(self, readings: Sequence[TotalReading], places: Sequence[frozenset[int]]) -> None:
        self.readings, self.places, self.last = readings, places, max(places[0], default=-1)
        self.start = (None, *(reading.start for reading in readings))

    def step(self, state: State, place: int, choice: int) -> State:
        chosen, *parts = state
        for i, (reading, places) in enumerate(zip(self.readings, self.places, strict=True)):
            if place in places and parts[i] is not None:
                parts[i] = reading.step(parts[i], place, choice)
        if place == self.last:
            chosen = parts[0][0] + 1
            parts = [part if i == chosen else None for i, part in enumerate(parts)]
        return (chosen, *parts)

    def number(self, state: State) -> int:
        return int(state[1 + state[0]][0])


def _rest(ends: Sequence[tuple[int, int, int, int]], places: int) -> tuple[list[int], list[int], list[int]]:
    """The bounds and common step of what comes at each place or later; `ends` lists (last place, low, high, step)."""
    lows, highs, steps = [0] * (places + 1), [0] * (places + 1), [0] * (places + 1)
    for last, low, high, step in ends:
        lows[last] += low
        highs[last] += high
        steps[last] = math.gcd(steps[last], step)
    for i in range(places - 1, -1, -1):
        lows[i] += lows[i + 1]
        highs[i] += highs[i + 1]
        steps[i] = math.gcd(steps[i], steps[i + 1])
    return lows, highs, steps


def _number_type(ends: Iterable[int]) -> type:
    return np.int64 if all(abs(end) < 2**62 for end in ends) else object


def _numbers(numbers: Sequence[int]) -> NDArray[Any]:
    return np.array(numbers, _number_type(numbers))
