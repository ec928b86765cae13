"""Labels in the forms that users have (arrays, sparse matrices, data frames, dicts) as tables of 0, 1 and NaN."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from semprola._names import binary_rows, is_named
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
    is_frame = hasattr(y, "columns") and hasattr(y, "shape")
    names = labels if labels is not None else [str(name) for name in y.columns] if is_frame else None
    y = y.toarray() if hasattr(y, "toarray") else y if is_frame else np.asarray(y)
    if len(y.shape) != 2:
        raise LabelError(f"y must have shape [rows, labels], not {list(y.shape)}")
    columns = [*map(str, range(y.shape[1]))] if names is None else names
    try:
        table = binary_rows(y, columns, "y", partial=True)
    except ValueError as error:
        raise LabelError(str(error)) from None
    return table, None if names is None else tuple(names)


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
