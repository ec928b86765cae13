"""Rebuilds a circuit along a vtree or a variable order that it does not respect."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from semprola.circuit import Circuit, Vtree
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.sdd.program import Program
from semprola.compiler.budget import Budget
from semprola.compiler.join import join_circuits
from semprola.compiler.vtree_choice import choose_vtree
from semprola.errors import CompilationBudgetError, PropertyError
from semprola.logic import Formula, Leaf
from semprola.logic.rules import conjuncts, unstated

_SECONDS, _NODES = 300.0, 2_000_000
REBUILT_FROM = "rebuilt_from"
"""The entry of `Circuit.info` with the digest of the circuit that this one was rebuilt from."""


def restructure(circuit: Circuit, *, linear: bool, budget: Budget | None = None) -> Circuit:
    """An equivalent circuit that respects a vtree, for queries that need a structured one.

    Args:
        circuit: any circuit.
        linear: whether the vtree is to be a variable order.
        budget: what may be used; by default five minutes and two million nodes: nobody asked for a compilation, so it
            must not take forever.

    Returns:
        A circuit with the same labels and given variables, in the same order, over the circuit's own vtree (or the
        order of that), if it has one. Otherwise the vtree is chosen for its rules, if these are known, or else it is
        the order in which literals first appear.

    Raises:
        PropertyError: the budget runs out.
    """
    budget = budget or Budget(_SECONDS, _NODES)
    program = Program()
    root = program.add_circuit(circuit, np.arange(circuit.num_variables))
    shape = "a variable order" if linear else "a vtree"
    try:
        vtree = circuit.vtree or _vtree_of(circuit, budget.checker("choosing a variable order"))
        vtree = Vtree.right_linear(vtree.order) if linear else vtree
        rebuilt = run(program, [root], vtree, circuit.variables, budget)
    except CompilationBudgetError as exceeded:
        raise PropertyError(
            f"the circuit does not respect {shape}, and rebuilding it along one ran out of {exceeded.resource}: "
            "compile the constraint with backend='sdd', or use q='factorized'"
        ) from None
    info = {
        **circuit.info,
        "restructured": f"rebuilt by PySDD along {shape}, which the circuit did not respect",
        REBUILT_FROM: circuit.info.get(REBUILT_FROM, circuit.digest),
    }
    return join_circuits([rebuilt], {}, circuit.labels, circuit.given, info).with_source(circuit.source)


def _vtree_of(circuit: Circuit, check: Callable[[], None]) -> Vtree:
    """A vtree for the rules of a circuit, if they are known and mention no other variables."""
    rules: list[Formula] = []
    for rule in conjuncts(unstated(circuit.source)) if isinstance(circuit.source, Formula) else ():
        spelled = rule.as_rules() if isinstance(rule, Leaf) else None
        rules += (rule,) if spelled is None else spelled
    if not rules or not {name for rule in rules for name in rule.labels} <= {*circuit.variables}:
        return Vtree.right_linear(circuit.order_of_appearance())
    return choose_vtree(rules, circuit.variables, check=check)


def are_equivalent(a: Circuit, b: Circuit) -> bool:
    """Whether two circuits are equal, or were rebuilt from equal ones; others may be equivalent without it."""
    return a == b or a.info.get(REBUILT_FROM, a.digest) == b.info.get(REBUILT_FROM, b.digest)
