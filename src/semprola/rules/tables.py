"""Data in any form as a table with the labels of rules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import binary_rows, row_names
from semprola.errors import LabelError
from semprola.rules.reading import is_frame
from semprola.rules.variables import Variables

Table = NDArray[np.float32]
"""0, 1, and NaN where not observed [rows, labels]."""


@dataclass
class Rows:
    """A table of labels.

    Attributes:
        names: the labels.
        values: 0, 1, and NaN where not observed [rows, labels].
        index: what names each row.
        places: what messages call each row.
        whole: the variables with several values that are one column each.
    """

    names: Sequence[str]
    values: Table
    index: Sequence[Any]
    places: Sequence[str] = field(default_factory=list)
    whole: Variables = field(default_factory=lambda: Variables(()))

    def __post_init__(self) -> None:
        self.places = self.places or [f"row {name}" for name in self.index]


def as_rows(data: Any, names: Sequence[str], labels: Sequence[str] | None, variables: Variables | None = None) -> Rows:
    """Data in any form as a table with these labels.

    Args:
        data: a data frame or a mapping of columns, or an array or a tensor [rows, labels]; values are 0, 1, and NaN,
            None or NA where not observed. Or `Rows`.
        variables: variables with several values, which may be one column each, with their values.
    """
    if isinstance(data, Rows):
        return data
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        raise TypeError(
            f"data must be a data frame or an array, not {data!r:.60}: read the file, or use semprola check"
        )
    index = row_names(data)
    whole = Variables(())
    own: Sequence[str] = names
    if is_frame(data) or isinstance(data, Mapping):
        columns = {name: data[name] for name in getattr(data, "columns", data)}
        if len({len(column) for column in columns.values() if np.ndim(column)}) > 1:
            raise LabelError("the columns of data differ in length")
        whole = (variables or whole).given(columns)
        data = whole.spelled(columns, _failing(index)) if whole.labels else data
        extra = {name for name in getattr(data, "columns", data) if name not in set(names)}
        data = data if not extra else {name: data[name] for name in names if name in data}
    else:
        own = tuple(labels) if labels is not None else names
    values = binary_rows(data, own, "data", partial=True)
    if values.ndim != 2:
        raise LabelError(f"data has shape {values.shape}, expected [rows, {len(own)}], one column per label")
    missing = [name for name in names if name not in set(own)]
    if missing:
        raise LabelError(f"data has no column for {missing[0]!r}, which the rules mention")
    column_of = {name: i for i, name in enumerate(own)}
    at = [column_of[name] for name in names]
    places = range(len(values)) if index is None else index
    return Rows(names, values[:, at], places, whole=whole)


def _failing(index: Sequence[Any] | None) -> Callable[[str, int], None]:
    def fail(message: str, row: int) -> None:
        raise LabelError(f"data: row {row if index is None else index[row]}, {message}")

    return fail
