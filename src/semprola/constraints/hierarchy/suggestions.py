"""Finds the options of a hierarchy that every row of some data obeys."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import binary_rows
from semprola.constraints.hierarchy.family import OPTIONS, Hierarchy, hierarchy
from semprola.errors import LabelError


class Suggestion(Mapping[str, bool]):
    """Options for :func:`hierarchy`, true if every row obeys them; a mapping that you can pass on with ``**``.

    Attributes:
        rows: how many rows there were.
        exceptions: how many rows break "edges" (a label is on but one of its parents is off) and each option.
        examples: the numbers of the first few rows that break each of these.
    """

    def __init__(self, rows: int, broken: Mapping[str, NDArray[np.bool_]], shown: int = 5) -> None:
        self.rows = rows
        self.exceptions = MappingProxyType({name: int(bad.sum()) for name, bad in broken.items()})
        self.examples = MappingProxyType({name: np.flatnonzero(bad)[:shown].tolist() for name, bad in broken.items()})

    def __getitem__(self, option: str) -> bool:
        if option not in OPTIONS:
            raise KeyError(option)
        return self.exceptions[option] == 0

    def __iter__(self) -> Iterator[str]:
        return iter(OPTIONS)

    def __len__(self) -> int:
        return len(OPTIONS)

    def __repr__(self) -> str:
        options = ", ".join(f"{name}={value}" for name, value in self.items())
        broken = ", ".join(f"{name} in {count}" for name, count in self.exceptions.items() if count)
        return f"Suggestion({options}; {self.rows} rows{f', broken: {broken}' if broken else ''})"


def suggest(y: Any, source: Any, /, **reading: Any) -> Suggestion:
    """Which options of :func:`hierarchy` every row of y obeys.

    An option that all training rows obey makes the set of allowed predictions smaller, and usually makes predictions
    better. Whether unseen rows will obey it, too, is for you to judge; the numbers of exceptions help.

    Args:
        y: rows of 0/1, an array or tensor [rows, labels] with columns in the order of the hierarchy's labels, or a
            data frame with a column per label.
        source: a hierarchy, or whatever :func:`hierarchy` takes.
        reading: ``edges=`` and ``labels=`` of :func:`hierarchy`, if `source` is not yet a hierarchy.

    Returns:
        The options, and how many rows break each of them and the hierarchy itself.

    Raises:
        LabelError: the columns of y do not match the labels of the hierarchy, or y has no rows.
        ValueError: a value of y is not 0 or 1.

    Example:
        >>> pets = [("cat", "animal"), ("dog", "animal")]
        >>> found = suggest([[1, 1, 0], [0, 1, 1], [0, 1, 0]], pets)
        >>> found
        Suggestion(nonempty=True, exclusive_siblings=True, mandatory_leaf=False; 3 rows, broken: mandatory_leaf in 1)
        >>> hierarchy(pets, **found).to_circuit().model_count()
        3
    """
    rule = source if isinstance(source, Hierarchy) and not reading else hierarchy(source, **reading)
    rows = _rows(y, rule.names)
    return Suggestion(len(rows), {name: rule.broken(name, rows) for name in ("edges", *OPTIONS)})


def _rows(y: Any, names: tuple[str, ...]) -> NDArray[np.bool_]:
    """The rows as truth values [rows, labels], after checks; columns of a data frame are found by name."""
    if hasattr(y, "columns") and hasattr(y, "to_numpy"):
        place = {str(name): column for column, name in enumerate(y.columns)}
        missing = [name for name in names if name not in place]
        if missing:
            raise LabelError(f"suggest: y has no column for label {missing[0]!r}")
        values = y.to_numpy()[:, [place[name] for name in names]]
    else:
        values = y
    rows = binary_rows(values, names, "suggest: y")
    if rows.ndim != 2 or not len(rows):
        raise LabelError(f"suggest: y must be [rows, {len(names)} labels] with at least one row, not {rows.shape}")
    return np.asarray(rows == 1)
