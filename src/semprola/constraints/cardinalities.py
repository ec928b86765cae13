"""Counts of labels that are on, with all arguments checked: formulas such as `semprola.exactly` makes them."""

from __future__ import annotations

from collections.abc import Iterable

from semprola.constraints.family import label_names, whole_number
from semprola.errors import LabelError
from semprola.logic import And, Formula, count
from semprola.logic import one_hot as exactly_one


def cardinality(
    labels: Iterable[str],
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    exactly: int | None = None,
) -> Formula:
    """Bounds on how many labels are on; a formula, as made by :func:`semprola.at_least` and the like.

    Alone, it becomes a diagram with at most (n + 1)(k + 1) nodes for n labels and upper bound k (or lower bound, if
    there is no upper one).

    Args:
        labels: names of the labels.
        at_least: the fewest labels that may be on.
        at_most: the most labels that may be on.
        exactly: the number of labels that must be on, in place of both bounds.

    Raises:
        LabelError: a label is listed twice, or there are no labels.
        ValueError: a bound is not a whole number, there is no bound, or `exactly` is combined with another.

    Example:
        >>> import semprola as sp
        >>> two = cardinality(["a", "b", "c", "d"], exactly=2)
        >>> sp.compile(two).model_count()
        6
        >>> two.evaluate({"a": 1, "b": 0, "c": 1, "d": 1})
        False
    """
    names = label_names(labels, "cardinality")
    bounds = [
        None if value is None else whole_number(value, name, "cardinality")
        for name, value in (("at_least", at_least), ("at_most", at_most), ("exactly", exactly))
    ]
    if all(bound is None for bound in bounds):
        raise ValueError("cardinality: give at_least=, at_most= or exactly=")
    if bounds[2] is not None:
        if bounds[0] is not None or bounds[1] is not None:
            raise ValueError("cardinality: give either exactly= or the bounds at_least= and at_most=, not both")
        bounds[0] = bounds[1] = bounds[2]
    lowest = bounds[0] or 0
    highest = len(names) if bounds[1] is None else min(bounds[1], len(names))
    if lowest <= highest:
        return count(lowest, highest, names)
    # bounds that cannot hold, as rules that mention the labels
    return count(1, len(names), names) & count(0, 0, names)


def one_hot(*groups: Iterable[str]) -> Formula:
    """Exactly one label of each group is on; a formula, as made by :func:`semprola.one_hot`.

    Args:
        *groups: names of the labels of each group; groups share no label.

    Raises:
        LabelError: a label is listed twice, or a group is empty.

    Example:
        >>> import semprola as sp
        >>> sp.compile(one_hot(["red", "green", "blue"], ["small", "large"])).model_count()
        6
    """
    if not groups:
        raise LabelError("one_hot: there must be at least one group of labels")
    checked = [label_names(group, f"one_hot group {i}") for i, group in enumerate(groups, start=1)]
    seen: dict[str, int] = {}
    for i, group in enumerate(checked, start=1):
        for name in group:
            if name in seen:
                raise LabelError(
                    f"one_hot: label {name!r} is in groups {seen[name]} and {i}: combine them with & instead"
                )
            seen[name] = i
    return And([exactly_one(group) for group in checked])
