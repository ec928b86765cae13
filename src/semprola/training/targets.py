"""Labels in the forms that users have (arrays, sparse matrices, data frames, dicts) as tables of 0, 1 and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from semprola._names import is_absent, is_named, row_names
from semprola.circuit import Circuit
from semprola.distributions.names import as_rows
from semprola.errors import LabelError
from semprola.nn import PooledLayer


def label_table(y: Any, labels: Sequence[str] | None = None) -> tuple[NDArray[np.float32], tuple[str, ...] | None]:
    """A table of labels as numbers, and its column names if it has any.

    Args:
        y: 0, 1, and NaN, None or NA where not observed [rows, labels]: an array, a sparse matrix, or a pandas or polars
            data frame.
        labels: names of the wanted columns, in order; a data frame may have them in another order.

    Returns:
        The table, float32 [rows, labels], and the names of its columns, or None if none are known.

    Example:
        >>> label_table([[0, 1], [1, None]], ["cat", "dog"])[0].tolist()
        [[0.0, 1.0], [1.0, nan]]
    """
    names = _names(y)
    table = _numbers(y)
    if names is not None and len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise LabelError(f"y has the column {twice!r} twice")
    if names is not None and labels is not None:
        missing = [name for name in labels if name not in names]
        if missing:
            raise LabelError(f"y has no column {missing[0]!r}; it has {', '.join(names[:6])}")
        unknown = [name for name in names if name not in labels]
        if unknown:
            raise LabelError(
                f"y has the column {unknown[0]!r}, which is not a label: leave it out, or add it to labels"
            )
        table = table[:, [names.index(name) for name in labels]]
    elif labels is not None and table.shape[1] != len(labels):
        raise LabelError(f"y has {table.shape[1]} columns, but there are {len(labels)} labels")
    known = tuple(labels) if labels is not None else None if names is None else tuple(names)
    wrong = np.argwhere(~((table == 0) | (table == 1) | np.isnan(table)))
    if len(wrong):
        row, column = (int(i) for i in wrong[0])
        index = row_names(y)
        name = repr(known[column]) if known else str(column)
        raise LabelError(
            f"y must contain only 0, 1, and NaN where not observed, but row {index[row] if index else row}, label "
            f"{name}, is {table[row, column]:g}"
        )
    return table.astype(np.float32), known


def _names(y: Any) -> list[str] | None:
    columns = getattr(y, "columns", None)
    if columns is None or not hasattr(y, "shape"):
        return None
    return [str(name) for name in columns]


def _numbers(y: Any) -> NDArray[np.float64]:
    if hasattr(y, "toarray"):
        y = y.toarray()
    elif hasattr(y, "to_numpy"):
        y = y.to_numpy()
    try:
        array = np.asarray(y)
        if array.dtype == object:
            array = np.array([np.nan if is_absent(v) else v for v in array.flat], np.float64).reshape(array.shape)
        table = array.astype(np.float64)
    except (TypeError, ValueError):
        raise LabelError("y must be a table of 0, 1 and NaN, with one column per label") from None
    if table.ndim != 2:
        raise LabelError(f"y must have shape [rows, labels], not {list(table.shape)}")
    return table


def by_name(model: nn.Module, rows: Any) -> Any:
    """Rows (x, y, …) with y and given as tensors, in the order of the labels and inputs of the model's layer.

    Columns of y that are left out and missing entries become NaN (not observed). Rows without names are returned
    unchanged.

    Args:
        model: the network; if anything is given by name, it must have exactly one constraint.
    """
    if not isinstance(rows, tuple | list) or not any(is_named(part) for part in rows[1:3]):
        return rows
    circuit = _circuit(model)
    x, y, *others = rows
    like = torch.zeros(0)
    y = as_rows(y, circuit.labels, "y", like, missing=float("nan"))
    if others:
        others[0] = as_rows(others[0], circuit.given, "given", like)
    return (x, y, *others)


def outer_modules(model: nn.Module) -> list[nn.Module]:
    """The modules of a model without the members of pools, which are layers of their own."""
    inner = {member for module in model.modules() if isinstance(module, PooledLayer) for member in module.members}
    return [module for module in model.modules() if module not in inner]


def _circuit(model: nn.Module) -> Circuit:
    own = [getattr(module, "circuit", None) for module in outer_modules(model)]
    found = {circuit for circuit in own if isinstance(circuit, Circuit)}
    if len(found) != 1:
        count = "no layer" if not found else f"{len(found)} layers"
        raise LabelError(f"labels by name need a model with one constraint, and this one has {count}: pass tensors")
    return found.pop()
