"""Training rows whose labels or inputs are given by name: dicts and data frames."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from semprola._names import is_named
from semprola.circuit import Circuit
from semprola.distributions.names import as_rows
from semprola.errors import LabelError
from semprola.nn import PooledLayer


def by_name(model: nn.Module, rows: Any) -> Any:
    """Rows (x, y, …) with y and given as tensors, in the order of the labels and inputs of the model's layer.

    Columns of y that are left out and missing entries become NaN (not observed). Rows without names are returned
    unchanged.

    Args:
        model: the network; if anything is given by name, it must have exactly one constraint.
        rows: a tuple (x, y), (x, y, given) or (x, y, given, weight).

    Raises:
        LabelError: if a name is unknown, or the model does not say what the names are.

    Example:
        >>> import semprola as sp
        >>> by_name(sp.SPL(2, "cat -> animal"), (torch.zeros(1, 2), {"animal": [1.0], "cat": [0.0]}))[1]
        tensor([[0., 1.]])
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


def _circuit(model: nn.Module) -> Circuit:
    pools = [module for module in model.modules() if isinstance(module, PooledLayer)]
    inner = {member for pool in pools for member in pool.members}
    own = [getattr(module, "circuit", None) for module in model.modules() if module not in inner]
    found = {circuit for circuit in own if isinstance(circuit, Circuit)}
    if len(found) != 1:
        count = "no layer" if not found else f"{len(found)} layers"
        raise LabelError(f"labels by name need a model with one constraint, and this one has {count}: pass tensors")
    return found.pop()
