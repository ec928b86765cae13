"""Values by name for distributions: dicts and data frames become tensors, results become dicts and data frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from semprola._names import is_named, named_columns
from semprola.circuit.whole import whole_variables
from semprola.distributions.whole import columns_of, spelled_out
from semprola.errors import LabelError, SemprolaError

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution

_WHAT = ("mode", "marginals", "top_k")


def as_rows(value: Any, names: Sequence[str], what: str, like: Tensor, *, missing: float | None = None) -> Any:
    """A tensor [*batch, names] from values by name; anything else is returned as it is.

    Args:
        value: a mapping, a data frame or a series, by label or by variable (``{"n": 3}``); see
            :func:`semprola._names.named_columns`.
        names: the wanted columns, in order.
        what: what errors call the value.
        like: a tensor with the device and type of the result.
        missing: the value for names that are left out; None if every name is required.

    Raises:
        LabelError: if a name is unknown, appears twice, or is missing.

    Example:
        >>> as_rows({"b": 1.0}, ["a", "b"], "evidence", torch.zeros(0), missing=float("nan"))
        tensor([nan, 1.])
    """
    if isinstance(value, Tensor) or not is_named(value):
        return value
    value = spelled_out(value, names)
    columns = [
        torch.as_tensor(column, dtype=like.dtype, device=like.device)
        for column in named_columns(value, names, what, missing=missing)
    ]
    try:
        return torch.stack(torch.broadcast_tensors(*columns), dim=-1)
    except RuntimeError:
        shapes = sorted({tuple(column.shape) for column in columns if column.dim()})
        raise LabelError(f"the columns of {what} have different shapes: {', '.join(map(str, shapes))}") from None


def to_dict(p: ConstrainedDistribution, what: str, k: int) -> dict[str, Any]:
    """See :meth:`ConstrainedDistribution.to_dict`."""
    values, log_probs = _values(p, what, k)
    columns = columns_of(p, values, what)
    if log_probs is not None:
        columns[_unused("log_prob", p.labels)] = log_probs.tolist()
    return columns


def to_frame(p: ConstrainedDistribution, what: str, k: int) -> Any:
    """See :meth:`ConstrainedDistribution.to_frame`."""
    try:
        import pandas
    except ModuleNotFoundError:
        raise SemprolaError("to_frame needs pandas: install the extra with pip install 'semprola[pandas]'") from None
    values, log_probs = _values(p, what, k)
    table = values.reshape(-1, len(p.labels)).cpu()
    index = _index(pandas, p.batch_shape, k, log_probs)
    if what in ("marginals", "mean") or not whole_variables(p.circuit):
        frame = pandas.DataFrame(table.numpy(), columns=list(p.labels), index=index)
    else:
        frame = pandas.DataFrame(columns_of(p, table, what), index=index)
    if log_probs is not None:
        frame[_unused("log_prob", p.labels)] = log_probs.reshape(-1).cpu().numpy()
    return frame


def _values(p: ConstrainedDistribution, what: str, k: int) -> tuple[Tensor, Tensor | None]:
    """States or marginals [*batch, (k,) labels] and, for the k best, log-probabilities [*batch, k]."""
    with torch.no_grad():
        if what == "mode":
            return p.mode.to(torch.int64), None
        if what in ("marginals", "mean"):
            return p.mean, None
        if what == "top_k":
            states, log_probs = p.top_k(k)
            return states.to(torch.int64), log_probs
    raise ValueError(f"expected one of {', '.join(map(repr, _WHAT))}, not {what!r}")


def _index(pandas: Any, batch_shape: Sequence[int], k: int, log_probs: Tensor | None) -> Any:
    sizes = [*batch_shape] if log_probs is None else [*batch_shape, k]
    rows = [f"row {i}" for i in range(len(batch_shape))] if len(batch_shape) > 1 else ["row"] * len(batch_shape)
    names = rows if log_probs is None else [*rows, "rank"]
    if not sizes:
        return None
    if len(sizes) == 1:
        return pandas.RangeIndex(sizes[0], name=names[0])
    return pandas.MultiIndex.from_product([range(size) for size in sizes], names=names)


def _unused(name: str, labels: Sequence[str]) -> str:
    while name in labels:
        name += "_"
    return name
