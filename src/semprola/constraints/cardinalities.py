"""Counts of labels that are on: bounds, and one-hot groups."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.constraints.family import Family, label_names, whole_number
from semprola.constraints.layout import VtreeBuilder
from semprola.errors import LabelError, UnsatisfiableError
from semprola.logic import Formula, count


def cardinality(
    labels: Iterable[str],
    *,
    at_least: int | None = None,
    at_most: int | None = None,
    exactly: int | None = None,
    balanced: bool = False,
) -> Cardinality:
    """Bounds on how many labels are on.

    The diagram has at most (n + 1)(k + 1) nodes for n labels and upper bound k (or lower bound, if there is no upper
    one). Its depth is n; the balanced layout has a depth of about log n and at most n² / 2 products.

    Args:
        labels: names of the labels.
        at_least: the fewest labels that may be on.
        at_most: the most labels that may be on.
        exactly: the number of labels that must be on, in place of both bounds.
        balanced: whether to split the labels into halves instead of reading them one by one.

    Raises:
        LabelError: a label is listed twice, or there are no labels.
        ValueError: a bound is not a whole number, there is no bound, or `exactly` is combined with another.

    Example:
        >>> two = cardinality(["a", "b", "c", "d"], exactly=2)
        >>> two.to_circuit().model_count()
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
    return Cardinality(names, lowest, highest, bool(balanced))


def one_hot(*groups: Iterable[str]) -> OneHot:
    """Exactly one label of each group is on. Each group is one flat sum, so there are about as many nodes as labels.

    Args:
        *groups: names of the labels of each group; groups share no label.

    Raises:
        LabelError: a label is listed twice, or a group is empty.

    Example:
        >>> one_hot(["red", "green", "blue"], ["small", "large"]).to_circuit().model_count()
        6
    """
    if not groups:
        raise LabelError("one_hot: there must be at least one group of labels")
    checked = tuple(label_names(group, f"one_hot group {i}") for i, group in enumerate(groups, start=1))
    seen: dict[str, int] = {}
    for i, group in enumerate(checked, start=1):
        for name in group:
            if name in seen:
                raise LabelError(
                    f"one_hot: label {name!r} is in groups {seen[name]} and {i}: combine them with & instead"
                )
            seen[name] = i
    return OneHot(checked)


class Cardinality(Family):
    """At least `lowest` and at most `highest` of the labels are on; see :func:`cardinality`."""

    advice = "bound fewer labels"

    def __init__(self, names: tuple[str, ...], lowest: int, highest: int, balanced: bool) -> None:
        self.names, self.lowest, self.highest, self.balanced = names, lowest, highest, balanced

    def key(self) -> Hashable:
        return self.names, self.lowest, self.highest, self.balanced

    def describe(self) -> str:
        layout = ", balanced" if self.balanced else ""
        return f"cardinality({len(self.names)} labels, {self.lowest} to {self.highest}{layout})"

    def as_rules(self) -> tuple[Formula, ...]:
        if self.lowest <= self.highest:
            return (count(self.lowest, self.highest, self.names),)
        # bounds that cannot hold, as rules that mention the labels
        return count(1, len(self.names), self.names), count(0, 0, self.names)

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        total = np.zeros(rows, np.int64)
        for name in self.names:
            total += columns[name]
        return (total >= self.lowest) & (total <= self.highest)

    def _build(self, budget: Budget) -> Circuit:
        if self.lowest > self.highest:
            raise UnsatisfiableError(f"{self.describe()} has no model")
        if self.balanced:
            return _balanced(self.names, self.lowest, self.highest, budget)
        lowest, highest, count = self.lowest, self.highest, len(self.names)
        # An absent label costs nothing. It should be free if only a lower bound counts (once that is met, the rest is
        # free), and suppressed otherwise (once an upper bound is reached, the rest is off).
        if highest == count:

            def add(ones: int, position: int, value: int) -> int | None:
                ones = min(ones + value, lowest)
                return ones if ones + count - position - 1 >= lowest else None

        else:

            def add(ones: int, position: int, value: int) -> int | None:
                ones += value
                return ones if ones <= highest and ones + count - position - 1 >= lowest else None

        return decision_diagram(
            self.names, 0, add, lambda ones: ones >= lowest, zero_suppressed=highest < count, budget=budget
        )


class OneHot(Family):
    """Exactly one label of every group is on; see :func:`one_hot`."""

    def __init__(self, groups: tuple[tuple[str, ...], ...]) -> None:
        self.groups = groups
        self.names = tuple(name for group in groups for name in group)

    def key(self) -> Hashable:
        return self.groups

    def describe(self) -> str:
        shown = "1 group" if len(self.groups) == 1 else f"{len(self.groups)} groups"
        return f"one_hot({shown}, {len(self.names)} labels)"

    def as_rules(self) -> tuple[Formula, ...]:
        return tuple(count(1, 1, group) for group in self.groups)

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        holds = np.ones(rows, bool)
        for group in self.groups:
            holds &= np.sum([columns[name] for name in group], axis=0) == 1
        return holds

    def _build(self, budget: Budget) -> Circuit:
        labels = self.names
        builder, tree = CircuitBuilder(labels), VtreeBuilder(len(labels))
        sums, homes, first = [], [], 0
        for group in self.groups:
            members = range(first, first + len(group))
            sums.append(builder.sum(builder.literal(v, True) for v in members))
            homes.append(tree.chain(members))
            first += len(group)
        budget.check("the groups", len(builder))
        vtree = tree.build(tree.balanced(homes))
        check = budget.checker("the groups", len(builder))
        return builder.build(builder.product(sums), zero_suppressed=[True] * len(labels), vtree=vtree, check=check)


def _balanced(names: tuple[str, ...], lowest: int, highest: int, budget: Budget) -> Circuit:
    """Count by halves: "from a to b labels below this vtree node" is a sum over the count in its left half."""
    vtree = Vtree.balanced(range(len(names)))
    builder = CircuitBuilder(names)
    size = (vtree.last - vtree.first + 1).tolist()
    left, right, variable = vtree.left.tolist(), vtree.right.tolist(), vtree.variable.tolist()
    planning = budget.checker("the plan of the counts")
    wanted = _wanted(vtree.root, (max(lowest, 0), highest), size, left, right, planning)
    known: dict[tuple[int, int, int], int] = {}
    for node in range(len(vtree)):
        for a, b in wanted.get(node, ()):
            budget.check(f"the vtree node above {size[node]} labels", len(builder))
            if (a, b) == (0, size[node]):
                known[node, a, b] = builder.true()
            elif variable[node] >= 0:
                known[node, a, b] = builder.literal(variable[node], a == 1)
            else:
                known[node, a, b] = builder.sum(
                    builder.product([known[left[node], ones[0], ones[1]], known[right[node], rest[0], rest[1]]])
                    for ones, rest in _splits(a, b, size[left[node]], size[right[node]])
                )
    root = known[vtree.root, max(lowest, 0), highest]
    return builder.build(root, vtree=vtree, check=budget.checker("the finished circuit", len(builder)))


Range = tuple[int, int]


def _wanted(
    root: int, bounds: Range, size: list[int], left: list[int], right: list[int], check: Callable[[], None]
) -> dict[int, list[Range]]:
    """The ranges of counts needed at each vtree node, from the root down."""
    wanted: dict[int, dict[Range, None]] = {root: {bounds: None}}
    for node in range(root, -1, -1):
        if size[node] == 1:
            continue
        check()
        for a, b in wanted.get(node, ()):
            if (a, b) == (0, size[node]):
                continue
            for ones, rest in _splits(a, b, size[left[node]], size[right[node]]):
                wanted.setdefault(left[node], {})[ones] = None
                wanted.setdefault(right[node], {})[rest] = None
    return {node: list(ranges) for node, ranges in wanted.items()}


def _splits(a: int, b: int, left: int, right: int) -> list[tuple[Range, Range]]:
    """The ranges of the left and the right count that give a total from a to b; left ranges are disjoint."""
    splits: list[tuple[Range, Range]] = []
    for ones in range(max(0, a - right), min(left, b) + 1):
        rest = max(0, a - ones), min(right, b - ones)
        if splits and splits[-1][1] == rest:
            splits[-1] = ((splits[-1][0][0], ones), rest)
        else:
            splits.append(((ones, ones), rest))
    return splits
