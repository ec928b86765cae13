"""Variables with several values: groups of labels ``"name=value"`` of which every model has exactly one on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from semprola.circuit.fold import fold_arrays

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

_KEPT = "_whole_variables"
_MOST_NUMBERS = 1 << 27
"""A circuit with more nodes times groups is not searched for variables."""


@dataclass(frozen=True)
class WholeVariable:
    """A variable of a circuit.

    Attributes:
        name: its name.
        values: its values: whole numbers if all are, else texts.
        places: the places of its labels among those of the circuit.
    """

    name: str
    values: tuple[Any, ...]
    places: tuple[int, ...]

    @cached_property
    def place_of(self) -> Mapping[str, int]:
        """The place of each value among the values, by its text."""
        return {str(value): place for place, value in enumerate(self.values)}

    @cached_property
    def first(self) -> int | None:
        """The first value, if the values are consecutive numbers."""
        low = self.values[0]
        consecutive = isinstance(low, int) and self.values == tuple(range(low, low + len(self.values)))
        return low if consecutive else None


def whole_variables(circuit: Circuit) -> dict[str, WholeVariable]:
    """The variables of a circuit by name, in the order of their first labels; it is proved that each has one value.

    Example:
        >>> import semprola as sp
        >>> n = sp.Integer("n", 0, 2)
        >>> list(whole_variables(sp.compile((n >= 1) | sp.Bool("other=1"))))
        ['n']
    """
    found: dict[str, WholeVariable] | None = circuit.__dict__.get(_KEPT)
    if found is None:
        found = circuit.__dict__[_KEPT] = _found(circuit)
    return found


def label_groups(labels: Iterable[str]) -> dict[str, list[int]]:
    """The places of labels of the form ``"name=value"``, by name.

    Example:
        >>> label_groups(["n=0", "x", "n=1"])
        {'n': [0, 2]}
    """
    groups: dict[str, list[int]] = {}
    for place, label in enumerate(labels):
        name, equals, value = label.partition("=")
        if name and equals and value:
            groups.setdefault(name, []).append(place)
    return groups


def values_of(labels: Iterable[str], name: str) -> tuple[Any, ...]:
    """The values in labels ``"name=value"``: numbers if all are written like whole numbers, else texts."""
    texts = [label[len(name) + 1 :] for label in labels]
    numbers = [int(text) for text in texts if text.removeprefix("-").isdecimal()]
    return tuple(numbers) if list(map(str, numbers)) == texts else tuple(texts)


def _found(circuit: Circuit) -> dict[str, WholeVariable]:
    groups = label_groups(circuit.labels)
    if not groups or circuit.num_nodes * len(groups) > _MOST_NUMBERS:
        return {}
    proved = _always_one(circuit, list(groups.values()))
    return {
        name: WholeVariable(name, values_of([circuit.labels[v] for v in places], name), tuple(places))
        for (name, places), one in zip(groups.items(), proved.tolist(), strict=True)
        if one
    }


def _always_one(circuit: Circuit, groups: list[list[int]]) -> npt.NDArray[np.bool_]:
    """For each group of labels, whether exactly one is on in every model."""
    group = np.full(circuit.num_variables, -1)
    for number, places in enumerate(groups):
        group[places] = number
    leaves = np.flatnonzero(circuit.literal)
    variable = np.abs(circuit.literal[leaves]) - 1
    inside = group[variable] >= 0
    leaves, variable = leaves[inside], variable[inside]
    on = np.zeros((circuit.num_nodes, len(groups)), np.int32)
    on[leaves, group[variable]] = circuit.literal[leaves] > 0
    least = fold_arrays(circuit, on.copy(), np.add, np.minimum)[-1]
    most = fold_arrays(circuit, on, np.add, np.maximum)[-1]
    # a label that a branch does not mention is off if zero-suppressed; any other must be mentioned by every branch
    named = np.zeros_like(on)
    plain = ~circuit.zero_suppressed[variable]
    named[leaves[plain], group[variable[plain]]] = 1
    mentioned = fold_arrays(circuit, named, np.add, np.minimum)[-1]
    wanted = np.array([int((~circuit.zero_suppressed[places]).sum()) for places in groups])
    proved: npt.NDArray[np.bool_] = (least == 1) & (most == 1) & (mentioned == wanted)
    return proved
