"""Rebuilds a circuit along a vtree or a variable order that it does not respect."""

from __future__ import annotations

import numpy as np

from semprola.circuit import Circuit, Vtree
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.sdd.program import Program
from semprola.compiler.budget import Budget
from semprola.compiler.join import join_circuits
from semprola.errors import CompilationBudgetError, PropertyError

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
        A circuit with the same labels and given variables, in the same order. Its variable order is that of the
        circuit's own vtree if it has one, otherwise the order in which its literals first appear.

    Raises:
        PropertyError: the budget runs out.
    """
    program = Program()
    identity = np.arange(circuit.num_variables)
    root = program.add_circuit(circuit, identity)
    order = circuit.vtree.order if circuit.vtree is not None else circuit.order_of_appearance()
    vtree = Vtree.right_linear(order) if linear else (circuit.vtree or Vtree.right_linear(order))
    shape = "a variable order" if linear else "a vtree"
    try:
        rebuilt = run(program, [root], vtree, circuit.variables, budget or Budget(_SECONDS, _NODES))
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


def are_equivalent(a: Circuit, b: Circuit) -> bool:
    """Whether two circuits are equal, or were rebuilt from equal ones; others may be equivalent without it."""
    return a == b or a.info.get(REBUILT_FROM, a.digest) == b.info.get(REBUILT_FROM, b.digest)
