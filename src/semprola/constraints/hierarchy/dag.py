"""Hierarchies in which a label has several parents, compiled along a tree decomposition.

The labels are decided along an elimination tree: everything below a label depends only on its bag, the few labels above
it to which an edge, or a fill edge, leads. A node is a label with the values of its bag. Values that no model can have
are left out: if one label of the bag is a direct or indirect ancestor of another, it is on whenever the other is. Every
assignment that respects this extends to a model, so no dead end is ever built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.circuit.builder import watched
from semprola.circuit.vtree import VtreeBuilder
from semprola.compiler.backends.topdown.backend import circuit_of, compile_clauses
from semprola.compiler.budget import Budget
from semprola.constraints.hierarchy.emission import Emission
from semprola.constraints.hierarchy.order import Poset, bags_of, best_elimination, peel
from semprola.constraints.hierarchy.states import expand

_STRUCTURED = 20_000
"""If all bags together have at most this many values, the circuit follows a vtree."""
Masks = npt.NDArray[np.int64]
Ids = npt.NDArray[np.int64]


def dag_circuit(
    names: tuple[str, ...],
    parents_of: Sequence[Sequence[int]],
    children_of: Sequence[Sequence[int]],
    nonempty: bool,
    budget: Budget,
) -> Circuit:
    """The circuit of "if a label is on, all its parents are on", for any acyclic graph.

    A small circuit respects a vtree. A large one, and one without the empty set, splits into parts as soon as they
    become independent, which makes it smaller.

    Args:
        names: the labels.
        parents_of, children_of: the parents and the children of each label.
        nonempty: whether some label must be on.
        budget: limits on nodes and seconds.

    Raises:
        CompilationBudgetError: there are too many states; the message names the label that has the most.
    """
    check = budget.checker("the search for an order")
    peeled = peel(parents_of, children_of)
    core = _parents_first(set(range(len(names))) - set(peeled), parents_of, children_of)
    number = {v: i for i, v in enumerate(core)}
    poset = Poset.of([[number[p] for p in parents_of[v]] for v in core])
    found = best_elimination(poset, check)
    if found.cost <= _STRUCTURED and not nonempty:
        return _structured(names, parents_of, [*peeled, *(core[v] for v in found.order)], budget)
    ideals = expand(poset, found, [names[v] for v in core], budget)
    emission = Emission(names, core, peeled, children_of, ideals)
    budget.check("the finished circuit", ideals.count)
    return emission.circuit([v for v in peeled if not parents_of[v]], nonempty)


def _parents_first(
    labels: set[int], parents_of: Sequence[Sequence[int]], children_of: Sequence[Sequence[int]]
) -> list[int]:
    """The labels in an order with parents first; every parent of these labels must be among them."""
    left = {v: len(parents_of[v]) for v in sorted(labels)}
    order = [v for v, count in left.items() if not count]
    for v in order:
        for c in children_of[v]:
            if c in left:
                left[c] -= 1
                if not left[c]:
                    order.append(c)
    return order


def _structured(
    names: tuple[str, ...], parents_of: Sequence[Sequence[int]], order: list[int], budget: Budget
) -> Circuit:
    """The circuit along the vtree of an elimination order, with a node per value of each bag."""
    bags = bags_of(parents_of, order)
    parent = [bag[0] if bag else -1 for bag in bags]
    below: list[list[int]] = [[] for _ in names]
    for v, above in enumerate(parent):
        if above >= 0:
            below[above].append(v)
    plan = _Plan(names, bags, [_groups(bags, children) for children in below], _ancestors(parents_of), budget)
    builder = CircuitBuilder(names)
    images = plan.emit(builder, order)
    roots = [v for v in order if parent[v] < 0]
    root = builder.product(int(images[v][0]) for v in roots)
    vtree = _vtree(order, plan.groups, roots)
    check = budget.checker("the finished circuit", plan.total + len(builder))
    return builder.build(root, zero_suppressed=[True] * len(names), vtree=vtree, check=check)


def clause_circuit(names: tuple[str, ...], clauses: Iterable[Sequence[int]], budget: Budget) -> Circuit:
    """The circuit of clauses over variables 1, 2, …, made by the top-down compiler.

    Args:
        names: the labels; label i is variable i + 1.
        clauses: DIMACS literals.
        budget: limits on nodes and seconds.
    """
    budget.check("writing clauses")
    return circuit_of(compile_clauses(len(names), [tuple(clause) for clause in clauses], budget), names)


class _Plan:
    """The nodes of every label: the possible values of its bag, as bit masks in the order of the bag."""

    def __init__(
        self,
        names: tuple[str, ...],
        bags: list[list[int]],
        groups: list[list[_Group]],
        ancestors: list[int],
        budget: Budget,
    ) -> None:
        self.names, self.bags, self.groups, self.ancestors, self.budget = names, bags, groups, ancestors, budget
        self.total = 0

    def emit(self, builder: CircuitBuilder, order: list[int]) -> dict[int, Ids]:
        """The circuit nodes of every label's masks: masks are found from the roots down, nodes from the leaves up."""
        masks: dict[int, Masks] = {v: np.zeros(1, np.int64) for v in order if not self.bags[v]}
        steps: dict[int, tuple[Masks, list[Masks]]] = {}
        for v in reversed(order):
            steps[v] = self._decide(v, masks.pop(v), masks)
        images: dict[int, Ids] = {}
        for v in order:
            allowed, links = steps.pop(v)
            check = self.budget.checker(self._where(v, len(allowed) // 2), self.total + len(builder))
            below = [
                _product(builder, group, images, check)[link] for group, link in zip(self.groups[v], links, strict=True)
            ]
            images[v] = self._nodes(builder, v, allowed, below)
            self.budget.check(self._where(v, len(allowed) // 2), self.total + len(builder))
        return images

    def _decide(self, v: int, masks: Masks, later: dict[int, Masks]) -> tuple[Masks, list[Masks]]:
        """Whether v can be 0, then 1, under each mask, and the index of the result among the masks of each group."""
        self.total += len(masks)
        self.budget.check(self._where(v, len(masks)), self.total)
        bag = self.bags[v]
        must = np.zeros(len(masks), bool)
        may = np.ones(len(masks), bool)
        for bit, other in enumerate(bag):
            on = (masks >> bit & 1).astype(bool)
            if self.ancestors[other] >> v & 1:
                must |= on
            elif self.ancestors[v] >> other & 1:
                may &= on
        both = np.concatenate([masks, masks | 1 << len(bag)])
        allowed = np.concatenate([~must, may])
        links = []
        for group in self.groups[v]:
            kept, inverse = np.unique(_project(both[allowed], (*bag, v), group.bag), return_inverse=True)
            link = np.full(len(both), -1, np.int64)
            link[allowed] = inverse
            links.append(link)
            group.spread(kept, later)
        return allowed, links

    def _nodes(self, builder: CircuitBuilder, v: int, allowed: Masks, children: list[Ids]) -> Ids:
        """One circuit node per mask; masks with the same continuation share a node."""
        half = len(allowed) // 2
        table = np.stack([allowed[:half], allowed[half:], *(part for c in children for part in (c[:half], c[half:]))])
        for row in range(2, len(table)):
            table[row][~allowed[:half] if row % 2 == 0 else ~allowed[half:]] = -1
        distinct, inverse = np.unique(table, axis=1, return_inverse=True)
        made = np.empty(distinct.shape[1], np.int64)
        literal = builder.literal(v, True)
        for i, (off, on, *parts) in enumerate(distinct.T.tolist()):
            if i % 4096 == 4095:
                self.budget.check(self._where(v, half), self.total + len(builder))
            branches = []
            if off:
                branches.append(builder.product(parts[0::2]))
            if on:
                branches.append(builder.product([literal, *parts[1::2]]))
            made[i] = builder.sum(branches)
        return made[inverse.reshape(-1)]

    def _where(self, v: int, states: int) -> str:
        bag = self.bags[v]
        shown = ", ".join(repr(self.names[u]) for u in bag[:4]) + (", …" if len(bag) > 4 else "")
        return f"label {self.names[v]!r} with the {len(bag)} labels {shown} ({states:,} states)"


@dataclass
class _Group:
    """Labels that are decided after the same label and depend on the same bag.

    Attributes:
        bag: the bag that they share.
        children: the labels.
        inner: groups whose bags are part of this one; they share products instead of listing all labels in each.
        masks: the possible values of the bag.
    """

    bag: tuple[int, ...]
    children: list[int]
    inner: list[_Group]
    masks: Masks

    def spread(self, masks: Masks, later: dict[int, Masks]) -> None:
        """Store the masks of this group, of its labels and of the groups inside."""
        self.masks = masks
        later.update(dict.fromkeys(self.children, masks))
        for group in self.inner:
            group.spread(np.unique(_project(masks, self.bag, group.bag)), later)


def _groups(bags: list[list[int]], children: list[int]) -> list[_Group]:
    """The labels decided after one label, grouped by their bags; returns the outermost groups."""
    alike: dict[tuple[int, ...], list[int]] = {}
    for child in children:
        alike.setdefault(tuple(bags[child]), []).append(child)
    outermost: list[_Group] = []
    for bag in sorted(alike, key=len, reverse=True):
        group = _Group(bag, alike[bag], [], np.zeros(0, np.int64))
        host = next((other for other in outermost if set(bag) < set(other.bag)), None)
        (outermost if host is None else host.inner).append(group)
    return outermost


def _product(builder: CircuitBuilder, group: _Group, images: dict[int, Ids], check: Callable[[], None]) -> Ids:
    """For each mask of a group, the circuit node of everything below all its labels."""
    parts = [images.pop(c) for c in group.children]
    for other in group.inner:
        place = np.searchsorted(other.masks, _project(group.masks, group.bag, other.bag))
        parts.append(_product(builder, other, images, check)[place])
    if len(parts) == 1:
        return parts[0]
    columns = zip(*(part.tolist() for part in parts), strict=True)
    return np.array([builder.product(column) for column in watched(columns, check)])


def _vtree(order: list[int], groups: list[list[_Group]], roots: list[int]) -> Vtree:
    """The tree that the products follow: a label, then its groups, each with the groups inside it."""
    tree = VtreeBuilder(range(len(order)))
    home = list(range(len(order)))

    def above(group: _Group) -> int:
        return tree.balanced([*(home[c] for c in group.children), *(above(other) for other in group.inner)])

    for v in order:
        if groups[v]:
            home[v] = tree.pair(v, tree.balanced([above(group) for group in groups[v]]))
    return tree.build(tree.balanced([home[r] for r in roots]))


def _project(masks: Masks, bag: Sequence[int], part: Sequence[int]) -> Masks:
    """Project masks of a bag to some of its labels."""
    place = {label: bit for bit, label in enumerate(bag)}
    projected = np.zeros(len(masks), np.int64)
    for bit, label in enumerate(part):
        projected |= (masks >> place[label] & 1) << bit
    return projected


def _ancestors(parents_of: Sequence[Sequence[int]]) -> list[int]:
    """All ancestors of each label, as the bits of an integer."""
    found: list[int | None] = [None] * len(parents_of)
    for start in range(len(parents_of)):
        stack = [start]
        while stack:
            v = stack[-1]
            unknown = [p for p in parents_of[v] if found[p] is None]
            if unknown:
                stack.extend(unknown)
                continue
            stack.pop()
            above = 0
            for p in parents_of[v]:
                above |= (found[p] or 0) | 1 << p
            found[v] = above
    return [above or 0 for above in found]
