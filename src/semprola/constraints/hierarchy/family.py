"""Hierarchies: if a label is on, its parents are on."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.constraints.family import Family
from semprola.constraints.hierarchy.dag import clause_circuit, dag_circuit
from semprola.constraints.hierarchy.edges import Direction, Labels, Pairs, neighbours, read_hierarchy
from semprola.constraints.hierarchy.forest import Siblings, forest_circuit
from semprola.errors import LabelError, PropertyError
from semprola.logic import Bool, Formula, Or, at_most
from semprola.logic.syntax import checked_names

OPTIONS = ("nonempty", "exclusive_siblings", "mandatory_leaf")
"""Conditions that :func:`hierarchy` can add to those of the edges."""


def hierarchy(
    source: Any,
    /,
    *,
    edges: Direction | None = None,
    nonempty: bool = False,
    mandatory_leaf: bool = False,
    exclusive_siblings: bool = False,
    labels: Labels | None = None,
) -> Hierarchy:
    """If a label is on, all its parents are on.

    The circuit of a tree or forest has at most 3 nodes per label: each label is one sum, on or off given its parent.
    If siblings exclude each other, they are one flat choice. A hierarchy in which labels have several parents is
    compiled along a tree decomposition.

    The roots count as children of one more label that is always on. With `mandatory_leaf`, a label that is on has a
    child that is on unless it is a leaf, so some root is on. With `exclusive_siblings`, at most one child of each label
    is on, so at most one root is on, and a label with several parents never is. Both together leave exactly the paths
    from a root to a leaf. :func:`suggest` says which options your data obey.

    Args:
        source: one of

            - (child, parent) pairs;
            - a dict from each child to its parent, or to a list of its parents; None or an empty list for a root;
            - a data frame with the columns "child" and "parent", or with two columns in this order;
            - a networkx ``DiGraph``.

            Labels are in order of first appearance; those of a graph are in the order of its nodes.
        edges: "child-parent" if an edge (or an entry of a dict) leads from child to parent, "parent-child" if it leads
            from parent to child, as is usual for networkx trees. The default is "child-parent", with a warning if the
            hierarchy then looks upside down.
        nonempty: whether at least one label must be on.
        mandatory_leaf: whether predictions must go down to a leaf.
        exclusive_siblings: whether at most one child of each label, and at most one root, may be on.
        labels: all labels in the column order you want; labels without an edge are separate roots. Or a dict from the
            names in `source` (any hashable values) to labels.

    Raises:
        LabelError: the edges have a cycle (it is printed), or a label is not a string or not in `labels`.

    Example:
        >>> pets = hierarchy([("cat", "animal"), ("dog", "animal")])
        >>> pets.to_circuit().model_count()
        5
        >>> pets.evaluate({"cat": 1, "animal": 0, "dog": 0})
        False
        >>> strict = hierarchy({"animal": ["cat", "dog"]}, edges="parent-child", nonempty=True, exclusive_siblings=True)
        >>> strict.to_circuit().model_count()
        3
    """
    names, pairs = read_hierarchy(source, edges, labels)
    return Hierarchy(names, pairs, bool(nonempty), bool(mandatory_leaf), bool(exclusive_siblings))


class Hierarchy(Family):
    """If a label is on, its parents are on; see :func:`hierarchy`."""

    advice = "use only a part of the labels"

    def __init__(
        self,
        names: tuple[str, ...],
        pairs: Pairs,
        nonempty: bool = False,
        mandatory_leaf: bool = False,
        exclusive_siblings: bool = False,
    ) -> None:
        self.names, self.pairs = names, pairs
        self.nonempty, self.mandatory_leaf, self.exclusive_siblings = nonempty, mandatory_leaf, exclusive_siblings
        self.parents_of, self.children_of = neighbours(len(names), pairs)

    @property
    def is_forest(self) -> bool:
        """Whether no label has several parents."""
        return all(len(parents) <= 1 for parents in self.parents_of)

    @property
    def edges(self) -> tuple[tuple[str, str], ...]:
        """The distinct (child, parent) pairs."""
        return tuple((self.names[child], self.names[parent]) for child, parent in self.pairs)

    @property
    def sibling_groups(self) -> list[tuple[int | None, list[int]]]:
        """Each label that has children, with its children; and None with the roots."""
        groups: list[tuple[int | None, list[int]]] = [(v, below) for v, below in enumerate(self.children_of) if below]
        return [*groups, (None, [v for v, parents in enumerate(self.parents_of) if not parents])]

    def restrict(self, terms: Iterable[str]) -> Hierarchy:
        """The hierarchy of some labels, with what they imply for each other through labels that are left out.

        Args:
            terms: labels, in the column order you want.

        Raises:
            LabelError: a label is unknown or listed twice.
            PropertyError: the hierarchy has `exclusive_siblings` or `mandatory_leaf`, which speak about all children.

        Example:
            >>> hierarchy([("cat", "pet"), ("pet", "animal")]).restrict(["cat", "animal"]).edges
            (('cat', 'animal'),)
        """
        if self.exclusive_siblings or self.mandatory_leaf:
            raise PropertyError(
                "a hierarchy with exclusive_siblings or mandatory_leaf cannot be restricted: condition it"
            )
        names = checked_names(terms, "terms")
        index = {name: v for v, name in enumerate(self.names)}
        unknown = [name for name in names if name not in index]
        if unknown:
            raise LabelError(f"{unknown[0]!r} is not a label of the hierarchy")
        chosen = {index[name]: i for i, name in enumerate(names)}
        pairs = []
        for child, at in chosen.items():
            nearest, further = self._chosen_above(child, chosen)
            pairs += [(at, chosen[parent]) for parent in nearest if parent not in further]
        # a root that is left out can be the one that is on
        nonempty = self.nonempty and all(v in chosen for v, parents in enumerate(self.parents_of) if not parents)
        return Hierarchy(names, tuple(sorted(pairs)), nonempty)

    def _chosen_above(self, child: int, chosen: Mapping[int, int]) -> tuple[set[int], set[int]]:
        """The first chosen labels on each way up, and all chosen labels further up."""
        nearest: set[int] = set()
        further: set[int] = set()
        seen: set[tuple[int, bool]] = set()
        pending = [(parent, False) for parent in self.parents_of[child]]
        while pending:
            label, is_further = pending.pop()
            if (label, is_further) in seen:
                continue
            seen.add((label, is_further))
            if label in chosen:
                (further if is_further else nearest).add(label)
            pending += [(parent, is_further or label in chosen) for parent in self.parents_of[label]]
        return nearest, further

    def key(self) -> Hashable:
        return self.names, self.pairs, self.nonempty, self.mandatory_leaf, self.exclusive_siblings

    def describe(self) -> str:
        options = [name for name in OPTIONS if getattr(self, name)]
        return f"hierarchy({', '.join([f'{len(self.names)} labels', f'{len(self.pairs)} edges', *options])})"

    def as_rules(self) -> tuple[Formula, ...]:
        label = [Bool(name) for name in self.names]
        found = [label[child] >> label[parent] for child, parent in self.pairs]
        if self.nonempty:
            found.append(Or(label[v] for v, parents in enumerate(self.parents_of) if not parents))
        for parent, below in self.sibling_groups:
            children = [label[v] for v in below]
            if self.mandatory_leaf:
                found.append(Or(children) if parent is None else label[parent] >> Or(children))
            if self.exclusive_siblings:
                found.append(at_most(1, children))
        return tuple(dict.fromkeys(found))

    def as_parts(self) -> tuple[Formula, ...] | None:
        """The first edge of every label, the second edges, and so on: each is a forest."""
        if self.nonempty or self.mandatory_leaf or self.exclusive_siblings:
            return None
        most = max(map(len, self.parents_of), default=0)
        levels = (
            tuple((v, parents[level]) for v, parents in enumerate(self.parents_of) if len(parents) > level)
            for level in range(most)
        )
        return tuple(self._forest(pairs) for pairs in levels) or None

    def _forest(self, pairs: Pairs) -> Hierarchy:
        """The hierarchy of some of the edges, over the labels that they mention."""
        used = sorted({v for pair in pairs for v in pair})
        place = {v: i for i, v in enumerate(used)}
        names = tuple(self.names[v] for v in used)
        return Hierarchy(names, tuple((place[child], place[parent]) for child, parent in pairs))

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        asked = [option for option in OPTIONS if getattr(self, option)]
        matrix = np.stack([columns[name] for name in self.names], axis=1)
        broken = [self.broken(rule, matrix) for rule in ("edges", *asked)]
        return np.asarray(~np.any(broken, axis=0), bool)

    def broken(self, rule: str, y: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Which rows break one rule, whether or not the hierarchy includes it.

        Args:
            rule: "edges" (a label is on but one of its parents is off), or the name of an option.
            y: truth values [rows, labels].

        Returns:
            One truth value per row.
        """
        bad = np.zeros(len(y), bool)
        if rule == "edges":
            for child, above in self.pairs:
                bad |= y[:, child] & ~y[:, above]
        elif rule == "nonempty":
            bad |= ~y.any(axis=1)
        else:
            for parent, below in self.sibling_groups:
                on = np.count_nonzero(y[:, below], axis=1)
                if rule == "exclusive_siblings":
                    bad |= on > 1
                else:
                    bad |= (on == 0) & (True if parent is None else y[:, parent])
        return bad

    def _build(self, budget: Budget) -> Circuit:
        rules = Siblings(self.nonempty, self.mandatory_leaf, self.exclusive_siblings)
        if self.is_forest or self.exclusive_siblings:
            return forest_circuit(self.names, self.parents_of, self.children_of, rules, budget)
        if self.mandatory_leaf:
            return clause_circuit(self.names, self._clauses(), budget)
        return dag_circuit(self.names, self.parents_of, self.children_of, self.nonempty, budget)

    def _clauses(self) -> list[list[int]]:
        """The edges and `mandatory_leaf` as clauses over variables 1, 2, …"""
        clauses = [[-child - 1, parent + 1] for child, parent in self.pairs]
        for parent, below in self.sibling_groups:
            clauses.append([*([] if parent is None else [-parent - 1]), *(child + 1 for child in below)])
        return clauses
