"""A circuit rebuilt along a vtree or a variable order that it does not respect."""

from __future__ import annotations

import numpy as np

from semprola.circuit import Circuit, Vtree
from semprola.circuit.sdd_bridge import Program, run
from semprola.compile.join import join_circuits


def restructure(circuit: Circuit, *, linear: bool) -> Circuit:
    """An equivalent circuit that respects a vtree, for queries that need a structured one.

    Args:
        circuit: any circuit.
        linear: whether the vtree is to be a variable order.

    Returns:
        A circuit with the same labels and given variables, in the same order. Its variable order is that of the
        circuit's own vtree if it has one, else the order in which its literals first appear.
    """
    program = Program()
    identity = np.arange(circuit.num_variables)
    root = program.add_circuit(circuit, identity)
    order = circuit.vtree.order if circuit.vtree is not None else _appearance(circuit)
    vtree = Vtree.right_linear(order) if linear else (circuit.vtree or Vtree.right_linear(order))
    rebuilt = run(program, [root], vtree, circuit.variables)
    shape = "a variable order" if linear else "a vtree"
    info = {**circuit.info, "restructured": f"rebuilt by PySDD along {shape}, which the circuit did not respect"}
    return join_circuits([rebuilt], {}, circuit.labels, circuit.given, info)


def _appearance(circuit: Circuit) -> list[int]:
    named = (np.abs(circuit.literal[circuit.literal != 0]) - 1).tolist()
    return list(dict.fromkeys([*named, *range(circuit.num_variables)]))
