"""Permutations and rankings: every item has one position and, unless ties are allowed, every position has one item."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.constraints.family import Family, label_names, renamed, whole_number
from semprola.errors import LabelError
from semprola.logic import Formula, count
from semprola.logic.messages import brief


def permutation(n: int, labels: Iterable[str] | Mapping[str, str] | None = None) -> Permutation:
    """Permutation matrices: an n × n matrix of labels with exactly one 1 in every row and in every column.

    The diagram has n 2^(n - 1) nodes: n = 14 is fine, n = 20 is not.

    Args:
        n: number of rows.
        labels: names of the n² entries, row by row, or a dict that renames some of them; by default ``"y[i,j]"`` with
            i and j from 0.

    Raises:
        ValueError: n is not a whole number of at least 1.
        LabelError: there are not n² distinct labels.
        CompilationBudgetError: n is above 1,000.

    Example:
        >>> permutation(4).to_circuit().model_count()
        24
    """
    size = whole_number(n, "n", "permutation", 1)

    def own() -> list[str]:
        return [f"y[{i},{j}]" for i in range(size) for j in range(size)]

    names = renamed(own, size * size, labels, f"permutation({size})")
    return Permutation("permutation", size, names, (), False)


def ranking(
    items: Sequence[str],
    *,
    before: Iterable[tuple[str, str]] = (),
    ties: bool = False,
    labels: Iterable[str] | Mapping[str, str] | None = None,
) -> Permutation:
    """Rankings of items: label ``"item=r"`` says that the item has rank r, from 1 (first) to n.

    The states are the sets of items already ranked: at most 2^n, and fewer if more is known in advance. The diagram has
    at most n times as many nodes as there are such sets.

    Args:
        items: names of the items. Labels are in order of items, then ranks.
        before: pairs (a, b) of items; a must have the better (smaller) rank.
        ties: whether several items may share a rank; the ranks in use are then 1, 2, … without gaps.
        labels: other names for the n² labels, in order, or a dict that renames some of them.

    Raises:
        LabelError: an item is listed twice or unknown, or the pairs have a cycle.

    Example:
        >>> ranking(["cake", "soup", "fish"], before=[("soup", "cake")]).to_circuit().model_count()
        3
    """
    names = label_names(items, "ranking")
    number = {name: i for i, name in enumerate(names)}
    pairs: dict[tuple[int, int], None] = {}
    for pair in before:
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
            raise LabelError(f"ranking: before must contain pairs of items, not {brief(pair)}")
        for item in pair:
            if not isinstance(item, str) or item not in number:
                raise LabelError(f"ranking: {brief(item)} in before= is not one of the items")
        pairs[number[pair[0]], number[pair[1]]] = None
    _refuse_cycle(names, list(pairs))

    def own() -> list[str]:
        return [f"{name}={rank}" for name in names for rank in range(1, len(names) + 1)]

    chosen = renamed(own, len(names) ** 2, labels, "ranking")
    return Permutation("ranking", len(names), chosen, tuple(sorted(pairs)), bool(ties))


class Permutation(Family):
    """Each of n items has one of n positions; see :func:`permutation` and :func:`ranking`."""

    advice = "state more of the order in advance"

    def __init__(
        self, family: str, count: int, names: tuple[str, ...], before: tuple[tuple[int, int], ...], ties: bool
    ) -> None:
        self.family, self.count, self.names, self.before, self.ties = family, count, names, before, ties

    def key(self) -> Hashable:
        return self.family, self.names, self.before, self.ties

    def describe(self) -> str:
        pairs = f", {len(self.before)} pairs in order" if self.before else ""
        return f"{self.family}({self.count}{pairs}{', ties' * self.ties})"

    def as_rules(self) -> tuple[Formula, ...] | None:
        if self.before or self.ties:
            return None
        n = self.count
        rows = [self.names[item * n : item * n + n] for item in range(n)]
        return tuple(count(1, 1, group) for group in (*rows, *zip(*rows, strict=True)))

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        n = self.count
        matrix = np.stack([columns[name] for name in self.names], axis=1).reshape(rows, n, n)
        holds = (matrix.sum(axis=2) == 1).all(axis=1)
        on_rank = matrix.sum(axis=1)
        if self.ties:
            holds &= ((on_rank[:, 1:] == 0) | (on_rank[:, :-1] > 0)).all(axis=1) & (on_rank[:, 0] > 0)
        else:
            holds &= (on_rank == 1).all(axis=1)
        rank = matrix.argmax(axis=2)
        for a, b in self.before:
            holds &= rank[:, a] < rank[:, b]
        return np.asarray(holds, bool)

    def _build(self, budget: Budget) -> Circuit:
        n, order = self.count, self._items_in_order()
        full = (1 << n) - 1
        needs = [0] * n
        for a, b in self.before:
            needs[b] |= 1 << a
        reading = [item * n + rank for rank in range(n) for item in order]
        if not self.before and not self.ties:
            reading = list(range(n * n))  # rows and columns are interchangeable: read the labels as listed
        ties = self.ties

        # A state is the set of items that have a rank, and whether some item has the current rank.
        def step(state: tuple[int, bool], position: int, value: int) -> tuple[int, bool] | None:
            placed, taken = state
            i = position % n
            if value:
                item = order[i]
                bit = 1 << item
                if placed & bit or (taken and not ties) or placed & needs[item] != needs[item]:
                    return None
                placed, taken = placed | bit, True
            if i < n - 1:
                return placed, taken
            return (placed, False) if taken or (ties and placed == full) else None

        return decision_diagram(
            self.names, (0, False), step, lambda state: state[0] == full, order=reading, budget=budget
        )

    def _items_in_order(self) -> list[int]:
        """Items in an order in which b precedes a if a must be ranked before b, so b sees only earlier ranks."""
        graph = nx.DiGraph((b, a) for a, b in self.before)
        graph.add_nodes_from(range(self.count))
        return list(nx.lexicographical_topological_sort(graph))


def _refuse_cycle(names: tuple[str, ...], pairs: list[tuple[int, int]]) -> None:
    try:
        found = nx.find_cycle(nx.DiGraph(pairs))
    except nx.NetworkXNoCycle:
        return
    cycle = [names[a] for a, _ in [*found, found[0]]]
    raise LabelError(f"ranking: before= has a cycle: {' before '.join(cycle)}")
