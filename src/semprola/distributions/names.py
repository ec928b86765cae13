"""Values by name for distributions: dicts and data frames become tensors, results become dicts and data frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from semprola._names import is_absent, is_named, named_columns
from semprola.circuit.whole import WholeVariable, values_of, whole_variables
from semprola.errors import LabelError, SemprolaError
from semprola.logic.messages import brief

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


def spelled_out(value: Any, names: Sequence[str]) -> Any:
    """Named values with each variable replaced by its labels: 1 for the one it has, 0 for the others.

    Args:
        value: a mapping or a data frame; keys that are names of labels stay as they are.

    Example:
        >>> spelled_out({"n": [1, 2], "x": 0}, ["n=1", "n=2", "x"])
        {'n=1': array([1., 0.]), 'n=2': array([0., 1.]), 'x': 0}
    """
    if not isinstance(value, Mapping) and not hasattr(value, "columns"):
        return value
    known = set(names)
    keys = list(value) if isinstance(value, Mapping) else list(value.columns)
    unknown = [key for key in keys if isinstance(key, str) and key not in known]
    wanted = {key: labels for key in unknown if (labels := [name for name in names if name.startswith(key + "=")])}
    if not wanted:
        return value
    found: dict[Any, Any] = {}
    columns: Any
    for key in keys:
        if key not in wanted:
            found[key] = value[key]
            continue
        labels = wanted[key]
        clash = next((label for label in labels if label in keys), None)
        if clash is not None:
            raise LabelError(f"variable {key!r} and its label {clash!r} are both given: leave out one of them")
        variable = WholeVariable(key, values_of(labels, key), tuple(range(len(labels))))
        place = places_in(variable, value[key])
        if isinstance(place, Tensor):
            columns = torch.nn.functional.one_hot(place.clamp(min=0), len(labels)).double()
            columns = columns.masked_fill((place < 0)[..., None], float("nan")).unbind(-1)
        else:
            table = np.where((place < 0)[..., None], np.nan, place[..., None] == np.arange(len(labels)))
            columns = tuple(np.moveaxis(table, -1, 0))
        found.update(zip(labels, columns, strict=True))
    return found


def places_in(variable: WholeVariable, value: Any) -> Any:
    """The place of each value among those of the variable, -1 where missing: an array, or a tensor for a tensor."""
    if isinstance(value, Tensor):
        return _places_in_tensor(variable, value)
    entries = np.asarray(value, dtype=object)
    found = np.empty(entries.shape, np.int64)
    for index, entry in np.ndenumerate(entries):
        missing = is_absent(entry) or entry != entry
        found[index] = -1 if missing else variable.place_of.get(_text(entry), -2)
        if found[index] == -2:
            raise _refused(variable, entry, index)
    return found


def _places_in_tensor(variable: WholeVariable, value: Tensor) -> Tensor:
    numbers = value.detach()
    if numbers.is_complex() or numbers.dtype == torch.bool or not isinstance(variable.values[0], int):
        raise LabelError(f"variable {variable.name!r} has no values of type {numbers.dtype}")
    missing = numbers.isnan() if numbers.is_floating_point() else torch.zeros_like(numbers, dtype=torch.bool)
    if variable.first is not None:
        place = numbers - variable.first
        wrong = (place < 0) | (place >= len(variable.values))
        if numbers.is_floating_point():
            place = place.nan_to_num()
            wrong = (wrong | (place != place.round())) & ~missing
        place = place.long()
    else:
        known = torch.tensor(variable.values, device=numbers.device)
        equal = numbers[..., None] == known
        place, wrong = equal.to(torch.int64).argmax(-1), ~equal.any(-1) & ~missing
    if bool(wrong.any()):
        index = tuple(torch.nonzero(wrong)[0].tolist())
        raise _refused(variable, numbers[index].item(), index)
    return place.masked_fill(missing, -1)


def _text(entry: Any) -> str:
    if isinstance(entry, float | np.floating) and float(entry).is_integer():
        entry = int(entry)
    return str(entry)


def _refused(variable: WholeVariable, entry: Any, index: Sequence[int]) -> LabelError:
    where = f"row {', '.join(map(str, index))}: " if len(index) else ""
    values = variable.values
    if variable.first is not None and len(values) > 2:
        shown = f"{values[0]} to {values[-1]}"
    else:
        shown = ", ".join(repr(each) for each in values[:6]) + (", …" if len(values) > 6 else "")
    return LabelError(f"{where}variable {variable.name!r} has no value {brief(entry)}, only {shown}")


def columns_of(p: ConstrainedDistribution, table: Tensor, what: str) -> dict[str, Any]:
    """The columns of a table [..., labels] by variable: values, or for marginals a dict from values to columns."""
    variables = whole_variables(p.circuit)
    home = {place: variable for variable in variables.values() for place in variable.places}
    found: dict[str, Any] = {}
    for place, label in enumerate(p.labels):
        variable = home.get(place)
        if variable is None:
            found[label] = table[..., place].tolist()
        elif variable.name not in found:
            part = table[..., list(variable.places)]
            if what in ("marginals", "mean"):
                columns = part.movedim(-1, 0).tolist()
                found[variable.name] = dict(zip(variable.values, columns, strict=True))
            else:
                found[variable.name] = _chosen(part.argmax(-1).tolist(), variable.values)
    return found


def _chosen(places: Any, values: Sequence[Any]) -> Any:
    return [_chosen(place, values) for place in places] if isinstance(places, list) else values[places]


_WHAT = ("mode", "marginals", "top_k")


def as_rows(value: Any, names: Sequence[str], what: str, like: Tensor, *, missing: float | None = None) -> Any:
    """A tensor [*batch, names] from values by name; anything else is returned as it is.

    Args:
        value: a mapping, a data frame or a series, by label or by variable (``{"n": 3}``); see
            :func:`semprola._names.named_columns`.
        missing: the value for names that are left out; None if every name is required.

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
