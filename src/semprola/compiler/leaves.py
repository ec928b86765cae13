"""The circuits of families inside a formula, built within the rest of the budget."""

from __future__ import annotations

from collections.abc import Iterable

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.errors import UnsatisfiableError
from semprola.logic import Cnf, Formula, Leaf


def leaf_circuit(leaf: Leaf, budget: Budget) -> Circuit | None:
    """The circuit of a family; None if it has no model.

    Args:
        leaf: the family.
        budget: what may be used.

    Raises:
        CompilationBudgetError: the construction ran out of its budget.
        TypeError: the family returned something other than a circuit over its own labels.
    """
    try:
        circuit = leaf.circuit_within(budget)
    except UnsatisfiableError:
        return None
    if not isinstance(circuit, Circuit) or set(circuit.variables) != set(leaf.labels):
        raise TypeError(f"{type(leaf).__name__}.to_circuit() must return a Circuit over the leaf's own labels")
    return circuit


def leaf_circuits(conjuncts: Iterable[Formula], budget: Budget) -> dict[Formula, Circuit | None]:
    """The circuit of every family inside these formulas; None for a family without a model."""
    circuits: dict[Formula, Circuit | None] = {}
    for conjunct in conjuncts:
        for node in conjunct.nodes():
            if isinstance(node, Leaf) and not isinstance(node, Cnf) and node not in circuits:
                circuits[node] = leaf_circuit(node, budget)
    return circuits
