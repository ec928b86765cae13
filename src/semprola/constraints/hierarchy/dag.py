"""Hierarchies in which a label has several parents, compiled along a tree decomposition; see `states`.

A label is on whenever a direct or indirect descendant is. Every state extends to a model, so no dead end is ever built.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from semprola.circuit import Circuit
from semprola.compiler.backends.topdown.backend import circuit_of, compile_clauses
from semprola.compiler.budget import Budget
from semprola.constraints.hierarchy.emission import Emission
from semprola.constraints.hierarchy.order import Poset, best_elimination, peel
from semprola.constraints.hierarchy.states import expand


def dag_circuit(
    names: tuple[str, ...],
    parents_of: Sequence[Sequence[int]],
    children_of: Sequence[Sequence[int]],
    nonempty: bool,
    budget: Budget,
) -> Circuit:
    """The circuit of "if a label is on, all its parents are on", for any acyclic graph.

    It splits into parts as soon as they become independent, so it respects no vtree.
    """
    check = budget.checker("the search for an order")
    peeled = peel(parents_of, children_of)
    core = _parents_first(set(range(len(names))) - set(peeled), parents_of, children_of)
    number = {v: i for i, v in enumerate(core)}
    poset = Poset.of([[number[p] for p in parents_of[v]] for v in core])
    found = best_elimination(poset, check)
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


def clause_circuit(names: tuple[str, ...], clauses: Iterable[Sequence[int]], budget: Budget) -> Circuit:
    """The circuit of clauses over variables 1, 2, …, made by the top-down compiler."""
    budget.check("writing clauses")
    return circuit_of(compile_clauses(len(names), [tuple(clause) for clause in clauses], budget), names)
