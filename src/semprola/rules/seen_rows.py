"""Only the combinations that rows have are allowed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import is_absent, row_names
from semprola.constraints.tables import table
from semprola.constraints.variables import Categorical
from semprola.errors import LabelError
from semprola.logic import Formula
from semprola.rules.reading import is_frame


def from_rows(data: Any) -> Formula:
    """The combinations of values that occur in rows, and no others.

    A column that contains only 0 and 1 (or true and false) is a label. Any other column has one label per value, such
    as "colour=red", of which exactly one is 1.

    Args:
        data: a data frame, or a mapping of columns.

    Raises:
        LabelError: there is no column or no row, columns differ in length, or two values of a column have the same
            text.
        ValueError: a cell is empty.
        TypeError: the data are something else.

    Example:
        >>> seen = from_rows({"colour": ["red", "green", "red"], "ripe": [1, 0, 1]})
        >>> seen.labels
        ('colour=green', 'colour=red', 'ripe')
        >>> import semprola as sp
        >>> sp.rules.model_count(seen)
        2
    """
    if not is_frame(data) and not isinstance(data, Mapping):
        raise TypeError(f"from_rows takes a data frame or a mapping of columns, not {data!r:.60}")
    columns = {name: list(data[name]) for name in getattr(data, "columns", data)}
    if any(not isinstance(name, str) for name in columns):
        raise LabelError("from_rows: the names of columns must be texts")
    lengths = {len(cells) for cells in columns.values()}
    if len(lengths) > 1:
        raise LabelError("from_rows: the columns differ in length")
    if lengths in (set(), {0}):
        raise LabelError("from_rows: there must be at least one column and one row")
    index = row_names(data)
    parts = [_labels(name, cells, index) for name, cells in columns.items()]
    labels = [label for names, _ in parts for label in names]
    return table(np.concatenate([values for _, values in parts], axis=1), labels=labels)


def _labels(name: str, cells: list[Any], index: Any) -> tuple[tuple[str, ...], NDArray[np.bool_]]:
    """The labels of a column, and their values [rows, labels]."""
    for row, cell in enumerate(cells):
        if is_absent(cell):
            place = row if index is None else index[row]
            raise ValueError(f"from_rows: row {place} has no value of {name!r}: drop such rows, or fill them in")
    if all(cell in (0, 1) for cell in cells):
        return (name,), np.array(cells, dtype=np.bool_).reshape(-1, 1)
    values = sorted(set(cells), key=lambda value: (str(type(value)), value))
    place_of = {value: place for place, value in enumerate(values)}
    return Categorical(name, values).labels, np.eye(len(values), dtype=np.bool_)[[place_of[cell] for cell in cells]]
