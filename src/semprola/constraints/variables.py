"""Variables with more than two values, as groups of labels of which exactly one is on."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import is_named
from semprola.constraints.expressions import Arithmetic, Expression, between
from semprola.constraints.family import as_whole, label_names, whole_number
from semprola.constraints.terms import Lookup, Total
from semprola.errors import LabelError
from semprola.logic import And, Formula, Kind, Or, one_hot
from semprola.logic.arithmetic import MAKERS
from semprola.logic.formula import intern_node
from semprola.logic.messages import brief


class Categorical(Arithmetic):
    """A variable with one of several values; label ``"name=value"`` says that it has this value.

    Comparisons give formulas over the labels. That the variable has exactly one value, its `rule`, need not be said:
    wherever a formula is compiled, evaluated or written out, the rules of its variables hold as well. (A comparison
    itself does not include the rule, because its negation would then have another meaning.)

    Args:
        name: the variable.
        values: its values; labels use their text.

    Raises:
        LabelError: the name is empty, there are no values, one is listed twice, or two compare equal (1 and True).

    Example:
        >>> colour = Categorical("colour", ["red", "green", "blue"])
        >>> colour.labels
        ('colour=red', 'colour=green', 'colour=blue')
        >>> colour != "red"
        ~"colour=red"
        >>> colour.isin(["red", "blue"])
        "colour=red" | "colour=blue"
        >>> import semprola as sp
        >>> sp.compile((colour == "red") >> sp.Bool("ripe")).model_count()
        5
        >>> colour.decode({"colour=red": 0, "colour=green": 1, "colour=blue": 0})
        'green'
    """

    def __init__(self, name: str, values: Iterable[Any]) -> None:
        if not isinstance(name, str) or not name:
            raise LabelError(f"the name of a variable must be a non-empty string, not {brief(name)}")
        if isinstance(values, str):
            raise LabelError(f"variable {name!r}: values must be a list, not the string {brief(values)}")
        self.name = name
        self.values: tuple[Any, ...] = tuple(values)
        self.labels: tuple[str, ...] = label_names([f"{name}={value}" for value in self.values], f"variable {name!r}")
        self._label = self._by_value()

    def total(self) -> Total:
        """The value as a sum, for arithmetic.

        Raises:
            LabelError: the values are not whole numbers.
        """
        numbers = tuple(number for number in map(as_whole, self.values) if number is not None)
        if len(numbers) < len(self.values):
            raise LabelError(
                f"variable {self.name!r} has values that are not whole numbers: it cannot be computed with"
            )
        return Total(((1, Lookup(self.labels, numbers)),), 0)

    @property
    def rule(self) -> Formula:
        """The variable has exactly one value; it comes along with every formula that mentions the variable."""
        return one_hot(self.labels)

    def isin(self, values: Iterable[Any]) -> Formula:
        """The variable has one of these values."""
        wanted = [self._is(value) for value in values]
        # even a formula that is always false mentions the variable, so that its rule is not lost
        return Or(*wanted) if wanted else ~self.isin(self.values)

    def decode(self, assignment: Any, labels: Sequence[str] | None = None) -> Any:
        """The value of the variable in an assignment of its labels; for a batch, a list of values.

        Args:
            assignment: ``p.to_dict()``, a data frame, or other columns by name: one per label, or one of values of the
                variable; or a table [*batch, labels], such as ``p.mode``.
            labels: names of the columns of a table, such as ``p.labels``; by default the labels of this variable.

        Raises:
            LabelError: a label is missing, or the number of labels that are on is not one.

        Example:
            >>> n = Integer("n", 1, 3)
            >>> n.decode({"n=1": [1, 0], "n=2": [0, 0], "n=3": [0, 1]})
            [1, 3]
            >>> n.decode([[1, 1, 0, 0]], labels=["a", *n.labels])
            [1]
        """
        if is_named(assignment) and self.name in assignment and not any(label in assignment for label in self.labels):
            return self._known(np.asarray(assignment[self.name], dtype=object).tolist())
        on = self._on(assignment, labels)
        counts = on.sum(-1)
        wrong = np.argwhere(counts != 1)
        if len(wrong):
            place = ", ".join(map(str, wrong[0]))
            where = f"in row {place} of the assignment" if place else "in the assignment"
            raise LabelError(f"variable {self.name!r} has {counts[tuple(wrong[0])]} values {where} instead of one")
        return self._values_at(on.argmax(-1).tolist())

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        if isinstance(other, Categorical):
            shared = [self._is(v) & other._is(v) for v in self.values if v in other._label]
            return Or(*shared) if shared else self.isin([]) | other.isin([])
        return between(self, other, "==") if isinstance(other, Expression) else self._is(other)

    def __ne__(self, other: object) -> Formula:  # type: ignore[override]
        return ~(self == other)

    def __hash__(self) -> int:
        return hash((self.name, self.labels))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {list(self.values)!r})"

    def _on(self, assignment: Any, labels: Sequence[str] | None) -> NDArray[np.bool_]:
        """Which values the variable has [*batch, values]."""
        if not is_named(assignment):
            table, names = _nonzero(assignment), list(self.labels if labels is None else labels)
            if table.shape[-1:] != (len(names),):
                expected = f"expected [*batch, {len(names)}]" + (": pass labels=" if labels is None else "")
                raise LabelError(f"variable {self.name!r}: the assignment has shape {list(table.shape)}, {expected}")
            assignment = dict(zip(names, np.moveaxis(table, -1, 0), strict=True))
        for label in self.labels:
            if label not in assignment:
                raise LabelError(f"variable {self.name!r}: the assignment has no value for label {label!r}")
        columns = [_nonzero(assignment[label]) for label in self.labels]
        if len({column.shape for column in columns}) > 1:
            raise LabelError(f"variable {self.name!r}: the columns of the assignment have different shapes")
        return np.stack(columns, axis=-1)

    def _values_at(self, places: Any) -> Any:
        return [self._values_at(place) for place in places] if isinstance(places, list) else self.values[places]

    def _known(self, values: Any) -> Any:
        """Values as those of the variable, which were read from their texts."""
        if isinstance(values, list):
            return [self._known(value) for value in values]
        label = f"{self.name}={values}"
        if label not in self.labels:
            raise LabelError(f"variable {self.name!r} has no value {brief(values)}")
        return self.values[self.labels.index(label)]

    def _by_value(self) -> dict[Any, str]:
        """The label of each value; values that compare equal are refused: ``variable == value`` would be ambiguous."""
        found: dict[Any, tuple[Any, str]] = {}
        for value, label in zip(self.values, self.labels, strict=True):
            try:
                known = found.setdefault(value, (value, label))
            except TypeError:
                raise LabelError(f"variable {self.name!r}: the value {brief(value)} cannot be hashed") from None
            if known[1] != label:
                raise LabelError(
                    f"variable {self.name!r}: the values {brief(known[0])} and {brief(value)} compare equal; keep one"
                )
            if value != value:
                raise LabelError(f"variable {self.name!r}: the value {brief(value)} does not equal itself")
        return dict(found.values())

    def _is(self, value: Any) -> Formula:
        try:
            return self._atom(self._label[value])
        except (KeyError, TypeError):
            shown = ", ".join(repr(v) for v in self.values[:6]) + (", …" if len(self.values) > 6 else "")
            raise LabelError(f"variable {self.name!r} has no value {brief(value)}, only {shown}") from None

    def _atom(self, label: str) -> Formula:
        return intern_node(Kind.ATOM, name=label, group=self.labels)


def _nonzero(values: Any) -> NDArray[np.bool_]:
    """Where values are not zero; tensors may be on any device."""
    array: NDArray[np.bool_] = np.asarray(values.detach().cpu() != 0 if hasattr(values, "detach") else values) != 0
    return array


class Integer(Categorical):
    """A whole number from `low` to `high`, with ``< <= > >=``; label ``"name=3"`` says that it is 3.

    As for `Categorical`, the rule that it has exactly one value comes along by itself.

    Args:
        name: the variable.
        low, high: the smallest and the largest value.

    Raises:
        ValueError: the bounds are not whole numbers, or low is above high.

    Example:
        >>> n = Integer("n", 0, 3)
        >>> n >= 2
        "n=2" | "n=3"
        >>> import semprola as sp
        >>> sp.compile(n >= 2).model_count()
        2
    """

    def __init__(self, name: str, low: int, high: int) -> None:
        least = whole_number(low, "low", "Integer", -(10**9))
        most = whole_number(high, "high", "Integer", -(10**9))
        if most < least:
            raise ValueError(f"Integer {name!r}: low={low} is above high={high}")
        if most - least >= 10**6:
            raise ValueError(
                f"Integer {name!r}: one label per value makes {most - least + 1:,} labels: use a smaller range"
            )
        super().__init__(name, range(least, most + 1))

    def __lt__(self, other: Arithmetic | int) -> Formula:
        return self._compare(other, "<", operator.lt)

    def __le__(self, other: Arithmetic | int) -> Formula:
        return self._compare(other, "<=", operator.le)

    def __gt__(self, other: Arithmetic | int) -> Formula:
        return self._compare(other, ">", operator.gt)

    def __ge__(self, other: Arithmetic | int) -> Formula:
        return self._compare(other, ">=", operator.ge)

    def _compare(self, other: Arithmetic | int, op: str, holds: Callable[[int, int], bool]) -> Formula:
        if isinstance(other, Arithmetic) and not isinstance(other, Integer):
            return between(self, other, op)
        if isinstance(other, Integer):
            return And(*(self._is(a) >> other.isin(b for b in other.values if holds(a, b)) for a in self.values))
        number = self._whole(other)
        return self.isin(value for value in self.values if holds(value, number))

    def _is(self, value: Any) -> Formula:
        number = self._whole(value)
        if number not in self._label:
            raise LabelError(
                f"variable {self.name!r} has no value {number}, only {self.values[0]} to {self.values[-1]}"
            )
        return self._atom(self._label[number])

    def _whole(self, value: Any) -> int:
        number = as_whole(value)
        if number is None:
            raise LabelError(f"variable {self.name!r} is a whole number and cannot be compared with {brief(value)}")
        return number

    def __eq__(self, other: object) -> Formula:  # type: ignore[override]
        return super().__eq__(other)

    def __hash__(self) -> int:
        return super().__hash__()

    def __repr__(self) -> str:
        return f"Integer({self.name!r}, {self.values[0]}, {self.values[-1]})"


MAKERS.update(integer=Integer, categorical=Categorical)
