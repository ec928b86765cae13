"""The short way for small rules: their truth table, split label by label, is a decision diagram."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from semprola.circuit import FALSE, Circuit, CircuitBuilder, Vtree
from semprola.compiler.budget import Budget
from semprola.errors import UnsatisfiableError
from semprola.logic import Formula, Kind, Leaf
from semprola.logic.evaluate import evaluate_columns

_MOST_LABELS, _MOST_NODES = 12, 2_000
Split = tuple[int, list[tuple[int, int]]]
"""A label, and for each table above it the numbers of its two halves among the tables below."""


def is_small(formula: Formula) -> bool:
    """Whether a truth table is the shortest way: few labels, no family, and not just one count."""
    if formula.kind is Kind.CARDINALITY or not 0 < len(formula.labels) <= _MOST_LABELS:
        return False
    nodes = formula.nodes()
    return len(nodes) <= _MOST_NODES and not any(isinstance(node, Leaf) for node in nodes)


def table_circuit(formula: Formula, labels: Sequence[str], given: Sequence[str], budget: Budget) -> Circuit:
    """The circuit of a small formula: a decision diagram, whose labels are zero-suppressed if that makes it smaller.

    The truth table is split by one label after the other, always by the one that leaves the fewest different tables.

    Args:
        labels, given: the variables of the circuit; the formula may mention some of them.
    """
    budget.check("splitting the truth table")
    number = {name: v for v, name in enumerate((*labels, *given))}
    tables = _truth(formula)
    left = [number[name] for name in formula.labels]
    splits: list[Split] = []
    while left:
        halves = [np.moveaxis(tables, 1 + i, 1).reshape(2 * len(tables), -1) for i in range(len(left))]
        best = min(range(len(left)), key=lambda i: _different(halves[i]))
        tables, place = np.unique(halves[best], axis=0, return_inverse=True)
        splits.append((left.pop(best), [(low, high) for low, high in place.reshape(-1, 2).tolist()]))
        tables = tables.reshape(len(tables), *[2] * len(left))
    if not tables.any():
        raise UnsatisfiableError("the constraint has no model")
    made = [_diagram(splits, tables.tolist(), labels, given, suppressed) for suppressed in (False, True)]
    circuit = min(made, key=lambda circuit: (circuit.num_nodes, circuit.num_edges))
    about = {"backend": "table", "reason": f"table: {len(formula.labels)} labels", "nodes": circuit.num_nodes}
    return circuit.with_info({**about, "seconds": budget.seconds})


def _truth(formula: Formula) -> npt.NDArray[np.bool_]:
    """Whether the formula holds [1, 2, …, 2], with one axis per label."""
    names = formula.labels
    values = np.indices([2] * len(names), np.int8).reshape(len(names), -1).astype(bool)
    truth = evaluate_columns(formula, dict(zip(names, values, strict=True)), 2 ** len(names))
    return truth.reshape(1, *[2] * len(names))


def _different(tables: npt.NDArray[np.bool_]) -> int:
    """How many different tables there are, apart from the one that is false everywhere."""
    return len({table.tobytes() for table in np.packbits(tables[tables.any(1)], axis=1)})


def _diagram(
    splits: Sequence[Split], ends: Sequence[bool], labels: Sequence[str], given: Sequence[str], suppressed: bool
) -> Circuit:
    builder = CircuitBuilder(labels, given)
    suppress = [False] * (len(labels) + len(given))
    nodes = [builder.true() if end else FALSE for end in ends]
    for v, halves in reversed(splits):
        pairs = [(nodes[low], nodes[high]) for low, high in halves]
        # a label that does not matter stays free
        suppress[v] = suppressed and v < len(labels) and any(low != high for low, high in pairs)
        if suppress[v]:
            one = builder.literal(v, True)
            nodes = [builder.sum([low, builder.product([one, high])]) for low, high in pairs]
        else:
            nodes = [low if low == high else builder.decision(v, low, high) for low, high in pairs]
    order = [v for v, _ in splits]
    unordered = [v for v in range(len(suppress)) if v not in order]
    vtree = Vtree.right_linear([*unordered, *order]) if suppress else None
    return builder.build(nodes[0], zero_suppressed=suppress, vtree=vtree)
