"""A list of allowed rows as a minimal decision diagram."""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import binary_rows, is_named
from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import Diagram
from semprola.compiler.emission import FALSE_ID, TRUE_ID
from semprola.constraints.family import Family, label_names
from semprola.constraints.numbers import value_table
from semprola.constraints.variables import Categorical
from semprola.errors import LabelError
from semprola.logic import Formula, Reader

_MOST_READ = 5000
"""A table with more rows is read only in its own order."""


def table(rows: Any, *, labels: Iterable[str] | None = None, variables: Iterable[Categorical] | None = None) -> Formula:
    """Exactly these rows are allowed.

    The circuit is the smaller of the minimal binary and the minimal zero-suppressed diagram in the order of the labels.
    It never has more diagram nodes than the table has entries, and only a few per row if rows have much in common.

    Args:
        rows: rows of 0 and 1, as an array, tensor or nested list of shape [rows, labels]; repeated rows count once. If
            `variables` are given, rows of their values.
        labels: names of the columns.
        variables: the integers and categoricals that are the columns, in place of labels.

    Raises:
        LabelError: the numbers of columns and labels differ, or a label is listed twice.
        ValueError: a value is neither 0 nor 1.

    Example:
        >>> allowed = table([[0, 0, 1], [1, 1, 1], [1, 1, 0]], labels=["a", "b", "c"])
        >>> allowed.to_circuit().model_count()
        3
        >>> allowed.evaluate([[1, 1, 0], [1, 0, 0]])
        array([ True, False])
    """
    if (labels is None) == (variables is None):
        raise LabelError("table: give either labels= or variables=")
    if variables is not None:
        return value_table(rows, variables)
    names = label_names(labels or (), "table")
    listed = rows if hasattr(rows, "__array__") or is_named(rows) else list(rows)
    values = binary_rows(listed if len(listed) else np.zeros((0, len(names))), names, "table")
    if values.ndim != 2:
        raise LabelError(f"table: rows have shape {list(values.shape)}, expected [rows, {len(names)}] for the labels")
    return Table(names, _distinct(values == 1))


class Table(Family):
    """Exactly the listed rows are allowed; see :func:`table`."""

    advice = "list the labels in another order"

    def __init__(self, names: tuple[str, ...], rows: NDArray[np.bool_]) -> None:
        self.names, self.rows = names, rows
        self.digest = hashlib.sha256(np.packbits(rows).tobytes()).digest()

    def key(self) -> Hashable:
        return self.names, len(self.rows), self.digest

    def describe(self) -> str:
        return f"table({len(self.rows)} rows, {len(self.names)} labels)"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        asked = np.stack([columns[name] for name in self.names], axis=1)
        allowed = {row.tobytes() for row in np.packbits(self.rows, axis=1)}
        return np.fromiter((row.tobytes() in allowed for row in np.packbits(asked, axis=1)), np.bool_, rows)

    def reader(self, order: Sequence[str]) -> Reader | None:
        if len(self.rows) > _MOST_READ:
            return None
        place = {name: i for i, name in enumerate(self.names)}
        columns = [frozenset(np.flatnonzero(self.rows[:, place[name]]).tolist()) for name in order]

        def step(rows: frozenset[int], position: int, value: int) -> frozenset[int] | None:
            return (rows & columns[position] if value else rows - columns[position]) or None

        return Reader(frozenset(range(len(self.rows))), step, bool)

    def _build(self, budget: Budget) -> Circuit:
        diagrams = [self._diagram(zero_suppressed, budget) for zero_suppressed in (True, False)]
        smallest, root = min(diagrams, key=lambda made: made[0].num_nodes)
        return smallest.circuit(root, range(len(self.names)))

    def _diagram(self, zero_suppressed: bool, budget: Budget) -> tuple[Diagram, int]:
        """The diagram; its nodes are prefixes of the sorted rows, and equal ones merge from the last column up."""
        rows, diagram = self.rows, Diagram(self.names, (), zero_suppressed, budget)
        if not len(rows):
            return diagram, FALSE_ID
        differs = rows[1:] != rows[:-1]
        # the column in which each row first differs from the previous one, where it starts a new prefix
        begins = np.concatenate([[-1], differs.argmax(axis=1)])
        firsts = np.arange(len(rows))
        ids = np.full(len(rows), TRUE_ID, np.int64)
        for column in range(len(self.names) - 1, -1, -1):
            above = firsts[begins[firsts] < column]
            parent = np.searchsorted(above, firsts, side="right") - 1
            value = rows[firsts, column]
            low = np.full(len(above), FALSE_ID, np.int64)
            high = low.copy()
            low[parent[~value]] = ids[~value]
            high[parent[value]] = ids[value]
            ids = diagram.add(column, low, high)
            firsts = above
            budget.check(f"from label {self.names[column]!r} on ({len(above):,} different rows)", diagram.num_nodes)
        return diagram, int(ids[0])


def _distinct(rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The distinct rows, sorted."""
    if not len(rows):
        return rows
    packed = np.ascontiguousarray(np.packbits(rows, axis=1))
    keys = packed.view(np.dtype((np.void, packed.shape[1]))).reshape(-1)
    _, first = np.unique(keys, return_index=True)
    result = rows[first]
    result.flags.writeable = False
    return result
