"""What people say about several numbers at once: all different, an element of a list, digits, the smallest, rows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.constraints.expressions import Arithmetic, Expression, applied, summed, total_of, totals_of
from semprola.constraints.family import whole_number
from semprola.constraints.relations import Relation, name_of
from semprola.constraints.terms import Choices, Group, State
from semprola.constraints.variables import Categorical
from semprola.errors import LabelError
from semprola.logic import TRUE, And, Formula, at_most
from semprola.logic.messages import brief


def number(digits: Iterable[Arithmetic | int], base: int = 10) -> Expression:
    """The number that digits make up, the most significant first.

    Comparisons of numbers of any length compile to circuits linear in the number of digits: what is remembered between
    two positions is a carry.

    Args:
        digits: variables, expressions or whole numbers.
        base: the base.

    Raises:
        LabelError: there are no digits, or one is not a number.
        ValueError: the base is not a whole number of at least 2.

    Example:
        >>> import semprola as sp
        >>> a = [sp.Integer(f"a{i}", 0, 9) for i in range(3)]
        >>> sp.rules.model_count(sp.constraints.number(a) < 250)
        250
    """
    factor = whole_number(base, "base", "number", least=2)
    totals = totals_of(list(digits), "number")
    return Expression(summed((factor**place, total) for place, total in enumerate(reversed(totals))))


def minimum(*values: Any) -> Expression:
    """The smallest of several expressions, given one by one or as one list.

    Example:
        >>> import semprola as sp
        >>> n, m = sp.Integer("n", 0, 9), sp.Integer("m", 0, 9)
        >>> sp.rules.model_count(sp.constraints.minimum(n, m) == 8)
        3
    """
    return _extreme("min", values)


def maximum(*values: Any) -> Expression:
    """The largest of several expressions; see :func:`minimum`."""
    return _extreme("max", values)


def element(items: Iterable[Any], place: Arithmetic | int) -> Expression:
    """The item of a list at a place that is an expression, counted from 0.

    Args:
        items: whole numbers, variables or expressions.
        place: the place; its values must all be places of the list.

    Raises:
        LabelError: the place can lie outside the list, or an item is not a number.

    Example:
        >>> import semprola as sp
        >>> n = sp.Integer("n", 0, 3)
        >>> sp.constraints.element([5, 7, 5, 6], n) == 5
        "n=0" | "n=2"
    """
    listed = list(items)
    totals = totals_of(listed, "element")
    index = total_of(place)
    if index is None:
        raise LabelError(f"element: the place must be a whole number or an expression, not {brief(place)}")
    low, high = index.bounds()
    if low < 0 or high >= len(totals):
        raise LabelError(f"element: the place goes from {low} to {high}, but the list only from 0 to {len(totals) - 1}")
    return Expression(applied("element", [index, *totals]) if index.parts else totals[index.constant])


def all_different(variables: Iterable[Categorical]) -> Formula:
    """No two of these variables have the same value.

    Args:
        variables: integers or categoricals, with the same values or not.

    Raises:
        LabelError: one is not a variable, or is listed twice.

    Example:
        >>> import semprola as sp
        >>> sp.rules.model_count(sp.constraints.all_different([sp.Integer(name, 1, 3) for name in "abc"]))
        6
    """
    listed = list(variables)
    values: dict[Any, list[Formula]] = {}
    for i, variable in enumerate(listed):
        if not isinstance(variable, Categorical):
            raise LabelError(f"all_different: {brief(variable)} is not a variable")
        if any(variable is other for other in listed[:i]):
            raise LabelError(f"all_different: variable {variable.name!r} is listed twice")
        for value in variable.values:
            values.setdefault(value, []).append(variable.isin([value]))
    return And([at_most(1, atoms) for atoms in values.values() if len(atoms) > 1]) if values else TRUE


def value_table(rows: Iterable[Sequence[Any]], variables: Iterable[Categorical]) -> Formula:
    """Exactly these rows of values are allowed; see ``table(rows, variables=...)``."""
    listed = list(variables)
    for variable in listed:
        if not isinstance(variable, Categorical):
            raise LabelError(f"table: {brief(variable)} is not a variable")
    if not listed or len({variable.labels for variable in listed}) < len(listed):
        raise LabelError("table: variables= must list at least one variable, and each only once")
    places = [{value: place for place, value in enumerate(variable.values)} for variable in listed]
    found: dict[tuple[int, ...], None] = {}
    for i, row in enumerate(rows):
        values = list(row.values()) if isinstance(row, dict) else list(row)
        if len(values) != len(listed):
            raise LabelError(f"table: row {i} has {len(values)} values for {len(listed)} variables")
        found[tuple(_place(i, value, place, v) for value, place, v in zip(values, places, listed, strict=True))] = None
    return ValueTable(tuple(variable.labels for variable in listed), tuple(sorted(found)))


class ValueTable(Relation):
    """Rows of values of whole variables; see :func:`value_table`."""

    def __init__(self, groups: tuple[Group, ...], rows: tuple[tuple[int, ...], ...]) -> None:
        super().__init__(groups)
        self.rows = rows
        self._prefixes = {row[:place] for row in rows for place in range(len(groups) + 1)}

    def key(self) -> Hashable:
        return self.groups, self.rows

    def describe(self) -> str:
        return f"table({len(self.rows)} rows of {', '.join(map(name_of, self.groups))})"

    def start(self) -> State:
        return () if self.rows else None

    def step(self, state: State, place: int, choice: int) -> State:
        longer = (*state, choice)
        return longer if longer in self._prefixes else None

    def holds(self, choices: Choices, rows: int) -> NDArray[np.bool_]:
        table = np.stack([choices[group] for group in self.groups], axis=1)
        allowed = set(self.rows)
        return np.fromiter((tuple(row) in allowed for row in table.tolist()), np.bool_, rows)


def _extreme(name: str, values: tuple[Any, ...]) -> Expression:
    listed = list(values[0]) if len(values) == 1 and not isinstance(values[0], Arithmetic | int) else list(values)
    totals = totals_of(listed, name)
    return Expression(totals[0] if len(totals) == 1 else applied(name, totals))


def _place(row: int, value: Any, places: dict[Any, int], variable: Categorical) -> int:
    try:
        return places[value.item() if isinstance(value, np.generic) else value]
    except (KeyError, TypeError):
        raise LabelError(f"table: row {row}: variable {variable.name!r} has no value {brief(value)}") from None


def _absolute(values: Sequence[Any]) -> Any:
    if len(values) != 1:
        raise LabelError(f"abs takes one number, not {len(values)}")
    return abs(values[0])


def _element(values: Sequence[Any]) -> Expression:
    return element(values[1:], values[0])


Arithmetic.functions.update(
    {
        "abs": _absolute,
        "min": minimum,
        "max": maximum,
        "element": _element,
        "all_different": all_different,
    }
)
