"""Variables with several values in tables and reports: a column "n" with the value 3 in place of ten labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import is_absent
from semprola.constraints.relations import name_of
from semprola.logic.messages import brief


class Variables:
    """The variables of some rules."""

    def __init__(self, groups: Iterable[Sequence[str]]) -> None:
        self.labels = {name_of(tuple(group)): tuple(group) for group in groups}
        self.home = {label: name for name, group in self.labels.items() for label in group}

    def given(self, columns: Iterable[Any]) -> Variables:
        """Those that a table names as a whole."""
        names = {*columns}
        return Variables(group for name, group in self.labels.items() if name in names and names.isdisjoint(group))

    def spelled(self, values: Mapping[str, Any], fail: Callable[[str, int], Any]) -> dict[str, Any]:
        """Values or columns with one entry per label, 0, 1, or NaN, in place of those of variables."""
        found: dict[str, Any] = {}
        for name, value in values.items():
            if name in self.given(values).labels:
                found.update(self._labels(name, value, fail))
            else:
                found[name] = value
        return found

    def together(self, label: str) -> tuple[str, ...]:
        """All labels of the variable of a label, or the label alone."""
        home = self.home.get(label)
        return (label,) if home is None else self.labels[home]

    def whole(self, values: Mapping[str, int]) -> dict[str, Any]:
        """Values of labels, with the value of a variable in place of its labels where one of these is 1."""
        ones: dict[str, list[str]] = {}
        for label, on in values.items():
            if on and label in self.home:
                ones.setdefault(self.home[label], []).append(label)
        found: dict[str, Any] = {}
        for label, on in values.items():
            name = self.home.get(label, "")
            if len(ones.get(name, ())) == 1:
                found[name] = self.value(ones[name][0])
            elif on or name not in ones:
                found[label] = on
        return found

    def without_others(self, values: Mapping[str, int]) -> dict[str, int]:
        """Values of labels, without the zeros of variables whose value is known: a change of it is one change."""
        known = {self.home[label] for label, on in values.items() if on and label in self.home}
        return {label: on for label, on in values.items() if on or self.home.get(label) not in known}

    def changed(self, changes: Mapping[str, int], model: Mapping[str, int]) -> dict[str, Any]:
        """Changes of labels as changes of variables, with their values in a model."""
        names = dict.fromkeys(self.home[label] for label in changes if label in self.home)
        rest = {label: on for label, on in changes.items() if label not in self.home}
        return {**rest, **{n: self.value(next(label for label in self.labels[n] if model[label])) for n in names}}

    def value(self, label: str) -> Any:
        """The value that a label stands for: a whole number if it is one, else a text."""
        text = label[len(self.home[label]) + 1 :]
        is_whole = text.removeprefix("-").isdecimal() and str(int(text)) == text
        return int(text) if is_whole else text

    def _labels(self, name: str, column: Any, fail: Callable[[str, int], Any]) -> dict[str, Any]:
        entries = [column] if np.ndim(column) == 0 else list(column)
        texts = [None if is_absent(entry) else _text(entry) for entry in entries]
        known = {label[len(name) + 1 :] for label in self.labels[name]}
        for row, text in enumerate(texts):
            if text is not None and text not in known:
                fail(f"variable {name!r} has no value {brief(entries[row])}", row)
        found: dict[str, Any] = {}
        for label in self.labels[name]:
            own = label[len(name) + 1 :]
            values: NDArray[np.float64] = np.array([np.nan if text is None else text == own for text in texts], float)
            found[label] = values if np.ndim(column) else values.item()
        return found


def quoted(name: str) -> str:
    """A label or a variable for messages: the label "n=2" is quoted, so that its value can follow."""
    return f'"{name}"' if "=" in name else name


def told(values: Mapping[str, Any], most: int | None = None) -> str:
    """Values as text, or the first so many of them."""
    shown = [f"{quoted(name)}={value}" for name, value in values.items()]
    return ", ".join(shown if most is None or len(shown) <= most else [*shown[:most], "…"])


def _text(value: Any) -> str:
    """A value as labels write it; whole numbers of a table are often floats, because another cell is empty."""
    is_whole = isinstance(value, float | np.floating) and float(value).is_integer()
    return str(int(value)) if is_whole else str(value).strip()
