"""Values of whole variables in and out: ``{"n": 3}`` stands for the labels ``"n=0"``, ``"n=1"``, …"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from semprola._names import is_absent
from semprola.circuit.whole import WholeVariable, values_of, whole_variables
from semprola.errors import LabelError
from semprola.logic.messages import brief

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


def spelled_out(value: Any, names: Sequence[str]) -> Any:
    """Named values with each variable replaced by its labels: 1 for the one it has, 0 for the others.

    Args:
        value: a mapping or a data frame; keys that are names of labels stay as they are.
        names: the labels.

    Raises:
        LabelError: a variable does not have the value, or one of its labels is also given.

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
    """The place of each value among those of the variable, -1 where it is missing: an array, or for a tensor a tensor.

    Raises:
        LabelError: the variable does not have a value.
    """
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
