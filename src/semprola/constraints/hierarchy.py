"""Hierarchies: a label that is on has its parents on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit, CircuitBuilder
from semprola.constraints.budget import Budget
from semprola.constraints.family import Family
from semprola.constraints.hierarchy_dag import dag_circuit
from semprola.constraints.layout import VtreeBuilder
from semprola.errors import LabelError
from semprola.logic.messages import brief


def hierarchy(
    edges: Iterable[tuple[str, str]] | Any,
    *,
    mandatory_leaf: bool = False,
    exclusive_siblings: bool = False,
) -> Hierarchy:
    """Every label that is on has all its parents on.

    The circuit of a tree or forest has at most 3 nodes a label: each label is one sum, on or off given its parent.
    A graph with several parents a label is compiled along a tree decomposition of it.

    The roots are treated as the children of one more label that is always on. With `mandatory_leaf` a label that is
    on has a child on unless it is a leaf, so some root is on; with `exclusive_siblings` at most one child of a label is
    on, so at most one root is. Both together leave exactly the paths from a root to a leaf.

    Args:
        edges: (child, parent) pairs, or a networkx ``DiGraph`` with edges child → parent. Labels are in order of first
            appearance in the pairs; those of a graph in the order of its nodes.
        mandatory_leaf: whether predictions must go down to a leaf.
        exclusive_siblings: whether at most one child of every label can be on.

    Raises:
        LabelError: the edges have a cycle (it is printed), or a label is not a string.
        ValueError: an option is asked for a hierarchy in which some label has several parents.

    Example:
        >>> pets = hierarchy([("cat", "animal"), ("dog", "animal")])
        >>> pets.to_circuit().model_count()
        5
        >>> pets.evaluate({"cat": 1, "animal": 0, "dog": 0})
        False
    """
    names, pairs = _read(edges)
    _refuse_cycle(names, pairs)
    made = Hierarchy(names, pairs, bool(mandatory_leaf), bool(exclusive_siblings))
    if not made.is_forest and (mandatory_leaf or exclusive_siblings):
        option = "mandatory_leaf" if mandatory_leaf else "exclusive_siblings"
        child = next(names[v] for v in range(len(names)) if len(made.parents_of[v]) > 1)
        raise ValueError(f"hierarchy: {option} needs a tree or forest, but {child!r} has several parents")
    return made


class Hierarchy(Family):
    """Every label that is on has its parents on; see :func:`hierarchy`."""

    advice = "compile the constraint of a part of the labels"

    def __init__(
        self,
        names: tuple[str, ...],
        pairs: tuple[tuple[int, int], ...],
        mandatory_leaf: bool,
        exclusive_siblings: bool,
    ) -> None:
        self.names, self.pairs = names, pairs
        self.mandatory_leaf, self.exclusive_siblings = mandatory_leaf, exclusive_siblings
        self.parents_of: list[list[int]] = [[] for _ in names]
        self.children_of: list[list[int]] = [[] for _ in names]
        for child, parent in pairs:
            self.parents_of[child].append(parent)
            self.children_of[parent].append(child)

    @property
    def is_forest(self) -> bool:
        """Whether no label has several parents."""
        return all(len(parents) <= 1 for parents in self.parents_of)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The distinct (child, parent) pairs."""
        return tuple((self.names[child], self.names[parent]) for child, parent in self.pairs)

    def labels(self) -> tuple[str, ...]:
        return self.names

    def key(self) -> Hashable:
        return self.names, self.pairs, self.mandatory_leaf, self.exclusive_siblings

    def describe(self) -> str:
        options = ", mandatory_leaf" * self.mandatory_leaf + ", exclusive_siblings" * self.exclusive_siblings
        return f"hierarchy({len(self.names)} labels, {len(self.pairs)} edges{options})"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        holds = np.ones(rows, bool)
        for name, above in self.edges:
            holds &= columns[above] | ~columns[name]
        everywhere = np.ones(rows, bool)
        groups = [(columns[name], below) for name, below in zip(self.names, self.children_of, strict=True) if below]
        for parent_on, below in [*groups, (everywhere, self._roots())]:
            on = np.zeros(rows, np.int64)
            for child in below:
                on += columns[self.names[child]]
            if self.mandatory_leaf:
                holds &= ~parent_on | (on > 0)
            if self.exclusive_siblings:
                holds &= on <= 1
        return holds

    def _roots(self) -> list[int]:
        return [v for v, parents in enumerate(self.parents_of) if not parents]

    def _build(self, budget: Budget) -> Circuit:
        if not self.is_forest:
            return dag_circuit(self.names, self.parents_of, budget)
        builder, tree = CircuitBuilder(self.names), VtreeBuilder(len(self.names))
        on: list[int] = [0] * len(self.names)  # the label is on, and what follows below it
        home: list[int] = [0] * len(self.names)
        for v in self._children_first():
            children = self.children_of[v]
            body = self._siblings(builder, [on[c] for c in children])
            on[v] = builder.product([builder.literal(v, True), body])
            home[v] = tree.pair(v, self._join(tree, [home[c] for c in children])) if children else v
            budget.check(len(builder), f"below label {self.names[v]!r}")
        roots = self._roots()
        root = self._siblings(builder, [on[r] for r in roots])
        vtree = tree.build(self._join(tree, [home[r] for r in roots]))
        check = budget.checker(len(builder), "the finished circuit")
        return builder.build(root, zero_suppressed=[True] * len(self.names), vtree=vtree, check=check)

    def _siblings(self, builder: CircuitBuilder, on: list[int]) -> int:
        """What may hold of the children of a label that is on; a child that is not mentioned is off."""
        if not on:
            return builder.true()
        if self.exclusive_siblings:
            return builder.sum(on if self.mandatory_leaf else [builder.true(), *on])
        either = [builder.sum([builder.true(), child]) for child in on]
        if not self.mandatory_leaf:
            return builder.product(either)
        some, rest = on[-1], either[-1]
        for child, maybe in zip(on[-2::-1], either[-2::-1], strict=True):
            # the first of these children that is on decides
            some = builder.sum([builder.product([child, rest]), some])
            rest = builder.product([maybe, rest])
        return some

    def _join(self, tree: VtreeBuilder, homes: list[int]) -> int:
        return tree.chain(homes) if self.mandatory_leaf else tree.balanced(homes)

    def _children_first(self) -> list[int]:
        order: list[int] = []
        stack = self._roots()
        while stack:
            v = stack.pop()
            order.append(v)
            stack.extend(self.children_of[v])
        return order[::-1]


def _read(edges: Any) -> tuple[tuple[str, ...], tuple[tuple[int, int], ...]]:
    """Names in order of first appearance, and distinct (child, parent) pairs of their numbers."""
    number: dict[str, int] = {}

    def place(name: Any) -> int:
        if not isinstance(name, str) or not name:
            raise LabelError(f"hierarchy: a label must be a non-empty string, not {brief(name)}")
        return number.setdefault(name, len(number))

    if hasattr(edges, "nodes") and hasattr(edges, "is_directed"):
        if not edges.is_directed():
            raise LabelError("hierarchy: the graph must be directed, with edges from child to parent")
        for node in edges.nodes:
            place(node)
        edges = list(edges.edges())
    if isinstance(edges, str | bytes):
        raise LabelError(f"hierarchy: edges must be (child, parent) pairs, not the string {brief(edges)}")
    pairs: dict[tuple[int, int], None] = {}
    for edge in edges:
        if isinstance(edge, str) or not hasattr(edge, "__len__") or len(edge) != 2:
            raise LabelError(f"hierarchy: an edge must be a (child, parent) pair, not {brief(edge)}")
        pairs[place(edge[0]), place(edge[1])] = None
    if not number:
        raise LabelError("hierarchy: there must be at least one label")
    return tuple(number), tuple(pairs)


def _refuse_cycle(names: tuple[str, ...], pairs: tuple[tuple[int, int], ...]) -> None:
    """Take labels away whose parents are all gone; what stays lies on or below a cycle."""
    parents: list[list[int]] = [[] for _ in names]
    children: list[list[int]] = [[] for _ in names]
    for child, parent in pairs:
        parents[child].append(parent)
        children[parent].append(child)
    left = [len(above) for above in parents]
    ready = [v for v, count in enumerate(left) if not count]
    while ready:
        for child in children[ready.pop()]:
            left[child] -= 1
            if not left[child]:
                ready.append(child)
    stuck = next((v for v, count in enumerate(left) if count), None)
    if stuck is None:
        return
    place: dict[int, int] = {}
    walk: list[int] = []
    while stuck not in place:
        place[stuck] = len(walk)
        walk.append(stuck)
        stuck = next(parent for parent in parents[stuck] if left[parent])
    cycle = [names[v] for v in walk[place[stuck] :]]
    shown = cycle if len(cycle) <= 12 else [*cycle[:10], "…", cycle[-1]]
    raise LabelError(f"hierarchy: the edges have a cycle: {' -> '.join([*shown, cycle[0]])}")
