"""Constraints over few variables, by trying all of their values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.constraints.variables import Integer
from semprola.errors import FormatError
from semprola.logic import FALSE, TRUE, And, Formula, Or
from semprola.logic.messages import brief

_MOST_CASES = 20_000


def all_cases(expr: Any, variables: Sequence[tuple[Any, Formula | Integer]], where: str) -> Formula:
    """The values of its variables for which CPMpy says that a constraint holds."""
    from cpmpy.expressions.utils import argval

    values = [known.values if isinstance(known, Integer) else (False, True) for _, known in variables]
    count = math.prod(map(len, values))
    if count > _MOST_CASES:
        raise FormatError(
            f"{where}: {brief(str(expr))} has {count:,} combinations of values, more than {_MOST_CASES:,}: "
            "write it with sums, comparisons and all_different, or with narrower bounds"
        )
    holds = np.zeros([len(each) for each in values], dtype=bool)
    kept = [variable._value for variable, _ in variables]
    try:
        for place, row in zip(np.ndindex(*holds.shape), itertools.product(*values), strict=True):
            for (variable, _), value in zip(variables, row, strict=True):
                variable._value = value
            found = argval(expr)
            if found is None:
                raise FormatError(f"{where}: CPMpy cannot evaluate {brief(str(expr))}")
            holds[place] = found
    finally:
        for (variable, _), value in zip(variables, kept, strict=True):
            variable._value = value
    return _formula(holds, [known for _, known in variables])


def _formula(holds: NDArray[np.bool_], variables: Sequence[Formula | Integer]) -> Formula:
    """Values of the first variable that leave the same choice of the others are taken together."""
    if holds.all() or not holds.any():
        return TRUE if holds.all() else FALSE
    first, rest = variables[0], variables[1:]
    alike: dict[bytes, list[int]] = {}
    for place, part in enumerate(holds):
        alike.setdefault(part.tobytes(), []).append(place)
    if len(alike) == 1:
        return _formula(holds[0], rest)
    parts = []
    for places in alike.values():
        below = _formula(holds[places[0]], rest)
        if isinstance(first, Integer):
            parts.append(And(first.isin([first.values[place] for place in places]), below))
        else:
            parts.append(And(first if places == [1] else ~first, below))
    return Or(parts)
