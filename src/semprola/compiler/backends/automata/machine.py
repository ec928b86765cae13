"""State machines that read some of the variables in a fixed order, and operations on them.

A machine has one table per variable: for each state, the state after a 0 and after a 1, or -1 if no model is left.
Machines are minimal: any two states of a level accept different inputs, and every state accepts some.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from semprola.compiler.diagram import Levels

Table = npt.NDArray[np.int32]
State = TypeVar("State", bound=Hashable)

DEAD = -1


class TooWideError(Exception):
    """A machine would have more states than allowed; never leaves the back end."""


@dataclass(frozen=True, eq=False)
class Machine:
    """A Boolean function of some variables as a minimal state machine.

    Attributes:
        variables: the variables that it depends on, in the order of reading.
        low, high: for each variable, the next state of each state after a 0 and after a 1; the only final state is 0.
    """

    variables: tuple[int, ...]
    low: tuple[Table, ...]
    high: tuple[Table, ...]

    @property
    def size(self) -> int:
        """The number of states, without the final one."""
        return sum(map(len, self.low))

    def width(self, level: int) -> int:
        """The number of states before the variable of a level."""
        return len(self.low[level]) if level < len(self.low) else 1

    def same_as(self, other: Machine) -> bool:
        """Whether both accept the same inputs; over one order, this holds only if their tables are equal."""
        return self.variables == other.variables and all(
            np.array_equal(mine, theirs)
            for mine, theirs in zip((*self.low, *self.high), (*other.low, *other.high), strict=True)
        )


TRUE = Machine((), (), ())


def minimal(variables: Sequence[int], low: Sequence[Table], high: Sequence[Table]) -> Machine | None:
    """The minimal machine for any tables; None if nothing is accepted.

    States are numbered in the order in which they are reached, so equal functions give equal tables.
    """
    image = np.zeros(2, np.int64)
    image[-1] = DEAD  # index -1: a dead state stays dead
    kept: list[int] = []
    tables: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = []
    for level in range(len(variables) - 1, -1, -1):
        after = [image[low[level]], image[high[level]]]
        if np.array_equal(after[0], after[1]):
            # the variable makes no difference: its states are those of the next level
            image = np.append(after[0], DEAD)
            continue
        alive = np.flatnonzero((after[0] >= 0) | (after[1] >= 0))
        keys = ((after[0][alive] + 1) << 32) | (after[1][alive] + 1)
        pairs, inverse = np.unique(keys, return_inverse=True)
        image = np.full(len(low[level]) + 1, DEAD, np.int64)
        image[alive] = inverse
        kept.append(level)
        tables.append(((pairs >> 32) - 1, (pairs & 0xFFFFFFFF) - 1))
    if not len(image) or image[0] == DEAD:
        return None
    return _numbered([variables[level] for level in reversed(kept)], tables[::-1], int(image[0]))


def _numbered(
    variables: Sequence[int], tables: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]], start: int
) -> Machine:
    """The machine with states numbered by first visit, without states that are never reached."""
    current = np.array([start])
    lows, highs = [], []
    for low, high in tables:
        after = np.stack([low[current], high[current]], axis=1).ravel()
        reached, first = np.unique(after[after >= 0], return_index=True)
        current = reached[np.argsort(first, kind="stable")]
        number = np.full(int(after.max(initial=0)) + 2, DEAD, np.int32)
        number[current] = np.arange(len(current), dtype=np.int32)
        lows.append(number[after[::2]])
        highs.append(number[after[1::2]])
    return Machine(tuple(variables), tuple(lows), tuple(highs))


def read(
    variables: Sequence[int],
    start: State,
    step: Callable[[State, int, int], State | None],
    accept: Callable[[State], bool],
    most: int,
) -> Machine | None:
    """The minimal machine for any state machine in Python.

    Args:
        step: ``step(state, position, value)`` is the state after the variable at this position has taken the value 0 or
            1, or None if no model is left.
        accept: whether a state after the last variable is accepted as a model.
    """
    current: list[State] = [start]
    lows: list[Table] = []
    highs: list[Table] = []
    total = 0
    for position in range(len(variables)):
        number: dict[State, int] = {}
        last = position == len(variables) - 1
        ends: tuple[list[int], list[int]] = ([], [])
        for value, end in enumerate(ends):
            for state in current:
                after = step(state, position, value)
                if after is None or (last and not accept(after)):
                    end.append(DEAD)
                else:
                    end.append(0 if last else number.setdefault(after, len(number)))
        total += len(current)
        if total > most:
            raise TooWideError
        lows.append(np.array(ends[0], np.int32))
        highs.append(np.array(ends[1], np.int32))
        current = list(number)
    if not variables:
        return TRUE if accept(start) else None
    return minimal(variables, lows, highs)


def complement(machine: Machine | None) -> Machine | None:
    """The machine that accepts what this one does not."""
    if machine is None:
        return TRUE
    if not machine.variables:
        return None
    lows: list[Table] = []
    highs: list[Table] = []
    for level in range(len(machine.variables)):
        last = level == len(machine.variables) - 1
        beyond = machine.width(level + 1)  # the state for everything that the machine refuses
        for table, result in ((machine.low[level], lows), (machine.high[level], highs)):
            whole = np.append(table, DEAD)
            if last:
                whole = np.where(whole == DEAD, 0, DEAD).astype(np.int32)
            else:
                whole = np.where(whole == DEAD, beyond, whole).astype(np.int32)
            result.append(whole)
    return minimal(machine.variables, lows, highs)


class Product:
    """All machines side by side, along one order of the variables; it grows by one variable at a time.

    Attributes:
        size: the number of joint states so far.
    """

    def __init__(self, machines: Sequence[Machine], place: Sequence[int]) -> None:
        self.machines = [machine for machine in machines if machine.variables]
        readers: dict[int, list[tuple[int, int]]] = {}
        for number, machine in enumerate(self.machines):
            for level, variable in enumerate(machine.variables):
                readers.setdefault(variable, []).append((number, level))
        self.variables = sorted(readers, key=place.__getitem__)
        self.size = 0
        self._readers = readers
        self._level = [0] * len(self.machines)
        self._open: dict[int, Table] = {}
        """The state of each machine that has started but not finished, per joint state."""
        self._rows = 1
        self._low: list[Table] = []
        self._high: list[Table] = []

    @property
    def finished(self) -> bool:
        """Whether all variables are read."""
        return len(self._low) == len(self.variables)

    def advance(self) -> None:
        """Read one more variable."""
        touched = self._readers[self.variables[len(self._low)]]
        states = [self._open.pop(number, None) for number, _ in touched]
        before = [np.zeros(1, np.int32) if state is None else state for state in states]
        picks: list[npt.NDArray[np.int64]] = []
        moved: list[list[Table]] = []
        for tables in ("low", "high"):
            after = [
                getattr(self.machines[number], tables)[level][state]
                for (number, level), state in zip(touched, before, strict=True)
            ]
            alive = np.ones(self._rows, bool)
            for column in after:
                alive &= column >= 0
            pick = np.flatnonzero(alive)
            picks.append(pick)
            moved.append([np.broadcast_to(column, self._rows)[pick] for column in after])
        both = np.concatenate(picks)
        columns = {number: column[both] for number, column in self._open.items()}
        for i, (number, level) in enumerate(touched):
            if level + 1 < len(self.machines[number].variables):
                columns[number] = np.concatenate([moved[0][i], moved[1][i]])
                self._level[number] = level + 1
        index, first = _joined(
            [(column, self.machines[number].width(self._level[number])) for number, column in columns.items()],
            len(both),
        )
        ends = np.full((2, self._rows), DEAD, np.int32)
        ends[0, picks[0]] = index[: len(picks[0])]
        ends[1, picks[1]] = index[len(picks[0]) :]
        self.size += self._rows
        self._low.append(ends[0])
        self._high.append(ends[1])
        self._open = {number: column[first] for number, column in columns.items()}
        self._rows = len(first)

    def levels(self) -> Levels:
        """The joint states, after all variables are read: like a machine, but not minimal."""
        return Levels(self._low, self._high, np.ones(self._rows, bool))


def _joined(columns: Sequence[tuple[Table, int]], rows: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """A number per distinct row of several columns, in sorted order: the number of each row, and a row per number."""
    key = np.zeros(rows, np.int64)
    size = 1
    for column, width in columns:
        if width == 1:
            continue
        if size * width >= 1 << 62:
            _, key = np.unique(key, return_inverse=True)
            size = int(key.max(initial=0)) + 1
        key = key * width + column
        size *= width
    _, first, index = np.unique(key, return_index=True, return_inverse=True)
    return index, first


def conjoined(machines: Sequence[Machine], place: Sequence[int], most: int) -> Machine | None:
    """The machine that accepts what all machines accept; None if that is nothing."""
    product = Product(machines, place)
    for _ in growing(product, most):
        pass
    levels = product.levels()
    return minimal(product.variables, levels.low, levels.high) if product.variables else TRUE


def growing(product: Product, most: int) -> Iterator[int]:
    """Advance a product to its end, yielding its size after each variable."""
    while product.size <= most:
        if product.finished:
            return
        product.advance()
        yield product.size
    raise TooWideError
