"""Turns the columns of a table into inputs of a network: numbers as they are, texts as one input per category."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.cli.tables import MISSING, Table, as_numbers
from semprola.errors import FormatError

_MOST_CATEGORIES = 100


@dataclass(frozen=True)
class Features:
    """Which columns a model reads, and how.

    Args:
        columns: the name and the sorted categories of each column; None in place of categories for numbers.
    """

    columns: tuple[tuple[str, tuple[str, ...] | None], ...]

    @classmethod
    def of(cls, table: Table, names: Sequence[str]) -> Features:
        """Decide how to read each column, from training rows."""
        if not names:
            raise FormatError(f"{table.path}: there is no column left to predict from")
        columns: list[tuple[str, tuple[str, ...] | None]] = []
        for name in names:
            column = table.columns[name]
            if not as_numbers(column)[1].any():
                columns.append((name, None))
                continue
            categories = tuple(sorted({word for word in column if word.lower() not in MISSING}))
            if len(categories) > _MOST_CATEGORIES:
                raise FormatError(
                    f"{table.path}: column {name!r} has {len(categories)} different texts: turn it into numbers, "
                    f"or leave it out with --ignore"
                )
            columns.append((name, categories))
        return cls(tuple(columns))

    def table(self, table: Table) -> NDArray[np.float64]:
        """The inputs [rows, features] of the rows of a table."""
        table.require([name for name, _ in self.columns])
        parts = [self._inputs(table, name, categories) for name, categories in self.columns]
        return np.concatenate(parts, axis=1)

    def to_json(self) -> list[Any]:
        """The features as plain data."""
        return [[name, None if categories is None else list(categories)] for name, categories in self.columns]

    @classmethod
    def from_json(cls, content: Any) -> Features:
        """Features from plain data."""
        return cls(tuple((str(name), None if found is None else tuple(map(str, found))) for name, found in content))

    def _inputs(self, table: Table, name: str, categories: tuple[str, ...] | None) -> NDArray[np.float64]:
        column = table.columns[name]
        if categories is None:
            numbers, wrong = as_numbers(column)
            bad = wrong | ~np.isfinite(numbers)
            if bad.any():
                row = int(np.flatnonzero(bad)[0])
                found = "is empty" if not wrong[row] and np.isnan(numbers[row]) else f"is {str(column[row])[:24]!r}"
                raise FormatError(
                    f"{table.place(row)}: column {name!r} {found}, expected a number: fill it in, or leave the column "
                    f"out when you train (--ignore {name})"
                )
            return numbers[:, None]
        # a category that did not occur in training matches none of them: all its inputs are 0
        words = np.array([str(word) for word in column], dtype=object)
        chosen: NDArray[np.float64] = (words[:, None] == np.array(categories, dtype=object)).astype(np.float64)
        return chosen
