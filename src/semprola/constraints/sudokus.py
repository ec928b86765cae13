"""Sudoku, an example of a family built on another: its solutions are listed and become a table."""

from __future__ import annotations

import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.constraints.family import Family, renamed, whole_number
from semprola.constraints.permutations import permutation
from semprola.constraints.tables import Table
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError
from semprola.logic import Bool, Formula
from semprola.logic.messages import brief

_MOST_SOLUTIONS = 200_000


def sudoku(
    n: int = 3,
    givens: Mapping[tuple[int, int], int] | None = None,
    *,
    labels: Iterable[str] | Mapping[str, str] | None = None,
) -> Sudoku:
    """Completed sudokus of n² × n² cells that agree with the givens. This name goes with the next release.

    Label ``"r1c2=5"`` says that the cell in row 1 and column 2 holds 5; rows, columns and digits count from 1. The
    solutions are enumerated, so the givens must leave no more than 200,000 of them.

    Args:
        n: the side of a box; 3 is the usual puzzle.
        givens: the digit of each (row, column) that is known.
        labels: other names for the labels, by row, column and digit, or a dict that renames some of them.

    Raises:
        ValueError: n is not a whole number of at least 1.
        LabelError: a given is outside the grid, or the numbers of names and labels differ.
        CompilationBudgetError: n is above 10.
    """
    text = "sp.constraints.sudoku goes with the next release: examples/visual_sudoku.py shows what to write instead"
    warnings.warn(text, DeprecationWarning, stacklevel=2)
    box = whole_number(n, "n", "sudoku", 1)
    side = box * box
    known: dict[tuple[int, int], int] = {}
    for cell, digit in (givens or {}).items():
        try:
            row, column = (whole_number(x, "a given", "sudoku", 1) for x in cell)
            value = whole_number(digit, "a given", "sudoku", 1)
        except (TypeError, ValueError):
            raise LabelError(f"sudoku: a given is (row, column): digit, not {brief(cell)}: {brief(digit)}") from None
        if max(row, column, value) > side:
            raise LabelError(f"sudoku: the given {brief(cell)}: {brief(digit)} is outside 1 to {side}")
        known[row - 1, column - 1] = value - 1
    digits = range(1, side + 1)

    def own() -> list[str]:
        return [f"r{row}c{column}={digit}" for row in digits for column in digits for digit in digits]

    return Sudoku(box, tuple(sorted(known.items())), renamed(own, side**3, labels, f"sudoku({box})"))


class Sudoku(Family):
    """Completed sudokus; see :func:`sudoku`."""

    advice = "add givens"

    def __init__(self, box: int, givens: tuple[tuple[tuple[int, int], int], ...], names: tuple[str, ...]) -> None:
        self.box, self.givens, self.names = box, givens, names

    def key(self) -> Hashable:
        return self.box, self.givens, self.names

    def describe(self) -> str:
        return f"sudoku({self.box}, {len(self.givens)} givens)"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        b, side = self.box, self.box * self.box
        grid = np.stack([columns[name] for name in self.names], axis=1).reshape(rows, side, side, side)
        boxes = grid.reshape(rows, b, b, b, b, side).sum(axis=(2, 4))
        holds = np.ones(rows, bool)
        for counts in (grid.sum(axis=1), grid.sum(axis=2), grid.sum(axis=3), boxes):
            holds &= (counts == 1).all(axis=tuple(range(1, counts.ndim)))
        for (row, column), digit in self.givens:
            holds &= grid[:, row, column, digit]
        return holds

    def as_parts(self) -> tuple[Formula, ...]:
        side = self.box * self.box
        grid = np.array(self.names).reshape(side, side, side)
        boxes = grid.reshape(self.box, self.box, self.box, self.box, side).swapaxes(1, 2).reshape(side, side, side)
        units = [*grid, *grid.swapaxes(0, 1), *boxes]
        known = [Bool(grid[row, column, digit]) for (row, column), digit in self.givens]
        return (*(permutation(side, unit.ravel().tolist()) for unit in units), *known)

    def _build(self, budget: Budget) -> Circuit:
        side = self.box * self.box
        found: list[list[int]] = []
        for solution in _solutions(self.box, dict(self.givens), budget):
            found.append(solution)
            budget.check("the search for solutions", len(found) * side)
            if len(found) > _MOST_SOLUTIONS:
                raise CompilationBudgetError(f"{budget.what} has more than {_MOST_SOLUTIONS:,} solutions: add givens")
        if not found:
            raise UnsatisfiableError(f"{budget.what} has no solution")
        rows = np.eye(side, dtype=bool)[np.array(found)].reshape(len(found), -1)
        return Table(self.names, rows[np.lexsort(rows.T[::-1])])._build(budget)


def _solutions(box: int, givens: dict[tuple[int, int], int], budget: Budget) -> Iterator[list[int]]:
    """All completed grids, found by filling the cell with the fewest possible digits first."""
    side = box * box
    full = (1 << side) - 1
    units = [[0] * side for _ in range(3)]  # digits used in each row, column and box
    grid: list[int] = [-1] * (side * side)

    def places(cell: int) -> tuple[tuple[list[int], int], ...]:
        row, column = divmod(cell, side)
        return (units[0], row), (units[1], column), (units[2], row // box * box + column // box)

    def flip(cell: int, bit: int) -> None:
        for unit, i in places(cell):
            unit[i] ^= bit

    for (row, column), digit in givens.items():
        cell, bit = row * side + column, 1 << digit
        if any(unit[i] & bit for unit, i in places(cell)):
            return
        grid[cell] = digit
        flip(cell, bit)

    def choices(cell: int) -> int:
        free = full
        for unit, i in places(cell):
            free &= ~unit[i]
        return free

    def tightest() -> tuple[int, int]:
        empty = ((choices(cell), cell) for cell in range(side * side) if grid[cell] < 0)
        return min(empty, key=lambda pair: pair[0].bit_count(), default=(0, -1))

    trail: list[tuple[int, int]] = []  # cells being filled, with the digits still to try
    free, cell = tightest()
    steps = 0
    while True:
        steps += 1
        if steps % 4096 == 0:
            budget.check("the search for solutions")
        if cell < 0:
            yield list(grid)
        else:
            trail.append((cell, free))
        while trail:
            cell, free = trail.pop()
            if grid[cell] >= 0:
                flip(cell, 1 << grid[cell])
                grid[cell] = -1
            if free:
                break
        else:
            return
        bit = free & -free
        trail.append((cell, free ^ bit))
        grid[cell] = bit.bit_length() - 1
        flip(cell, bit)
        free, cell = tightest()
