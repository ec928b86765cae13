"""The circuits of families inside a formula, built within what is left of the budget."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from typing import Any

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Leaf

_BYTES_A_NODE = 8
"""What a construction holds at the very least for each node; what it really holds is watched where that is known."""


def leaf_circuit(leaf: Leaf, budget: Budget) -> Circuit | None:
    """The circuit of a family; None if it has no model.

    Args:
        leaf: the family. If its ``to_circuit`` takes ``timeout``, ``max_nodes`` and ``progress``, it gets them.
        budget: what may be used.

    Raises:
        CompilationBudgetError: the construction ran out of its budget.
        TypeError: the family returned something other than a circuit over its own labels.
    """
    phase = f"building {leaf.describe()}"
    budget.check(phase)
    by_memory = None if budget.memory is None else max(1, budget.memory // _BYTES_A_NODE)
    bounds = [bound for bound in (budget.max_nodes, by_memory) if bound is not None]
    limits: dict[str, Any] = {
        "timeout": None if budget.seconds_left is None else max(budget.seconds_left, 1e-3),
        "max_nodes": min(bounds, default=None),
        "progress": lambda nodes, _: budget.watch(phase, nodes),
    }
    accepted = inspect.signature(leaf.to_circuit).parameters
    try:
        circuit = leaf.to_circuit(**{name: value for name, value in limits.items() if name in accepted})
    except UnsatisfiableError:
        return None
    except CompilationBudgetError as error:
        if budget.seconds_left == 0.0:
            # the family knows only what was left; the user knows what was there at the start
            left = f"its time budget of {limits['timeout']:.3g} s"
            raise CompilationBudgetError(str(error).replace(left, f"its time budget of {budget.timeout:g} s")) from None
        if by_memory is not None and limits["max_nodes"] == by_memory and by_memory != budget.max_nodes:
            raise CompilationBudgetError(f"{budget.error('memory')} ({error})") from None
        raise
    if not isinstance(circuit, Circuit) or set(circuit.variables) != set(leaf.labels()):
        raise TypeError(f"{type(leaf).__name__}.to_circuit() must return a Circuit over the leaf's own labels")
    return circuit


def leaf_circuits(conjuncts: Iterable[Formula], budget: Budget) -> dict[Formula, Circuit | None]:
    """The circuit of every family among the parts of some formulas; None for one that has no model."""
    circuits: dict[Formula, Circuit | None] = {}
    for conjunct in conjuncts:
        for node in conjunct.nodes():
            if isinstance(node, Leaf) and not isinstance(node, Cnf) and node not in circuits:
                circuits[node] = leaf_circuit(node, budget)
    return circuits
