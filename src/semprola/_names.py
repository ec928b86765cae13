"""Values by name: mappings and data frames whose columns are matched with the labels of a constraint.

Knows no torch and imports no data-frame library: pandas and polars are recognised by what their objects can do.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.errors import LabelError


def is_named(value: Any) -> bool:
    """Whether a value carries names: a mapping, a data frame, or a series indexed by names.

    Example:
        >>> is_named({"cat": 1}), is_named([1, 0])
        (True, False)
    """
    return isinstance(value, Mapping) or _is_frame(value) or _is_series(value)


def is_absent(entry: Any) -> bool:
    """Whether an entry of a table stands for a missing value: None, an empty text, NaN, or NA of a data frame."""
    # pandas.NA refuses to be a truth value, and is not equal to itself
    if entry is None or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    return not entry.strip() if isinstance(entry, str) else isinstance(entry, float | np.floating) and entry != entry


def row_names(value: Any) -> list[Any] | None:
    """The index of a pandas data frame, which names its rows; None for values whose rows are counted from 0.

    Example:
        >>> row_names([[1, 0]]) is None
        True
    """
    return value.index.tolist() if _is_frame(value) and hasattr(value, "index") else None


def named_columns(value: Any, names: Sequence[str], what: str, *, missing: float | None = None) -> list[Any]:
    """The columns of named values, in the order of `names`.

    Args:
        value: a mapping from names to numbers or arrays, a data frame with one column per name, or a series with one
            entry per name.
        missing: the value for names that are left out; None if every name is required.

    Returns:
        One number, array or tensor per name. Missing entries of data frames (None, NA) are NaN.

    Example:
        >>> named_columns({"dog": 0, "cat": 1}, ["cat", "dog"], "y")
        [1, 0]
        >>> named_columns({"dgo": 0}, ["cat", "dog"], "evidence", missing=0.0)
        Traceback (most recent call last):
        semprola.errors.LabelError: evidence names 'dgo', which is not a label: did you mean 'dog'?
    """
    found = columns_by_name(value, what)
    known = set(names)
    for name in found:
        if name not in known:
            raise LabelError(f"{what} names {name!r}, which is not {_what_it_should_be(name, names)}")
    absent = [name for name in names if name not in found]
    if absent and missing is None:
        more = f" (and {len(absent) - 1} more)" if len(absent) > 1 else ""
        raise LabelError(f"{what} has no column {absent[0]!r}{more}")
    return [found.get(name, missing) for name in names]


def named_rows(value: Any, names: Sequence[str], what: str, *, missing: float | None = None) -> Any:
    """Like :func:`named_columns`, but as one array [..., names]; columns are broadcast against each other."""
    columns = [np.asarray(column) for column in named_columns(value, names, what, missing=missing)]
    try:
        return np.stack(np.broadcast_arrays(*columns), axis=-1)
    except ValueError:
        raise LabelError(f"the columns of {what} have different shapes") from None


def binary_rows(values: Any, names: Sequence[str], what: str, *, partial: bool = False) -> NDArray[np.float32]:
    """0 and 1, and NaN if they may be partial [*batch, names], from an array, a tensor, nested lists or named values.

    Example:
        >>> binary_rows({"dog": [0, 1], "cat": [1, 1]}, ["cat", "dog"], "y").tolist()
        [[1.0, 0.0], [1.0, 1.0]]
        >>> binary_rows([[1, 0], [2, 0]], ["cat", "dog"], "y")
        Traceback (most recent call last):
        ValueError: y must contain only 0 and 1: row 1, label 'cat' is 2
    """
    index = row_names(values)
    if is_named(values):
        values = named_rows(values, names, what)
    elif hasattr(values, "detach"):
        values = values.detach().cpu()
        values = values.float() if values.is_floating_point() else values  # numpy does not know bfloat16
    try:
        array = np.asarray(values)
        if array.dtype == object:
            array = np.array([np.nan if is_absent(v) else v for v in array.flat], np.float64).reshape(array.shape)
    except (TypeError, ValueError) as error:
        raise LabelError(f"{what} must be numbers of shape [*batch, {len(names)}]: {error}") from None
    if array.ndim == 0 or array.shape[-1] != len(names):
        shown = ", ".join(map(repr, names[:4])) + (", …" if len(names) > 4 else "")
        raise LabelError(f"{what} has shape {list(array.shape)}, expected [*batch, {len(names)}]: columns {shown}")
    allowed = (array == 0) | (array == 1)
    if partial and array.dtype.kind == "f":
        allowed |= np.isnan(array)
    if not allowed.all():
        wrong = np.argwhere(~allowed)
        *row, column = wrong[0].tolist()
        named = str(row[0] if index is None else index[row[0]]) if len(row) == 1 else str(tuple(row))
        found = f"{f'row {named}, ' if row else ''}label {names[column]!r} is {array[tuple(wrong[0])]}"
        raise ValueError(
            f"{what} must contain only {'0, 1, and NaN where not observed' if partial else '0 and 1'}: {found}"
        )
    return array.astype(np.float32)


def columns_by_name(value: Any, what: str) -> dict[Any, Any]:
    """All columns of named values, see :func:`named_columns`."""
    if isinstance(value, Mapping):
        return {_text(name): _plain(column, name, what) for name, column in value.items()}
    labels = value.columns if _is_frame(value) else value.index
    names = [_text(name) for name in labels]
    repeated = next((name for i, name in enumerate(names) if name in names[:i]), None) if _repeats(names) else None
    if repeated is not None:
        raise LabelError(f"{what} has the column {repeated!r} twice")
    if _is_frame(value):
        return {name: _plain(value[label], name, what) for name, label in zip(names, labels, strict=True)}
    return {name: _plain(entry, name, what) for name, entry in zip(names, value, strict=True)}


def _plain(column: Any, name: Any, what: str) -> Any:
    """A column as numbers: tensors stay as they are, None and NA become NaN."""
    if hasattr(column, "detach"):
        return column
    entry: Any = column
    try:
        array = np.asarray(column)
        if array.dtype.kind in "OU":
            numbers = []
            for entry in array.reshape(-1):
                numbers.append(np.nan if is_absent(entry) else float(entry))
            array = np.array(numbers, np.float64).reshape(array.shape)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise LabelError(f"{what}: the values of {name!r} are not numbers: {str(entry)!r:.60}") from None
    # data frames return read-only views, which torch warns about
    return np.array(array) if array.ndim else array.item()


def _text(name: Any) -> Any:
    """A name as text: integers are labels of DIMACS files, and atoms stand for their names."""
    if isinstance(name, int) and not isinstance(name, bool):
        return str(name)
    return getattr(name, "name", name) if hasattr(name, "evaluate") else name


def _repeats(names: list[Any]) -> bool:
    return len(set(names)) < len(names)


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and hasattr(value, "to_numpy")


def _is_series(value: Any) -> bool:
    if not (hasattr(value, "index") and hasattr(value, "to_numpy")):
        return False
    return any(isinstance(name, str) for name in getattr(value, "index", ()))


def _what_it_should_be(name: Any, names: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, names, 1) if isinstance(name, str) else []
    if close:
        return f"a label: did you mean {close[0]!r}?"
    shown = ", ".join(names[:5]) + (", …" if len(names) > 5 else "")
    return f"among {shown}"
