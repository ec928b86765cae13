"""Transforms of circuits: smoothing and conditioning."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.circuit.builder import FALSE, CircuitBuilder
from semprola.circuit.circuit import SUM, Circuit
from semprola.circuit.fold import bits, fold, members, root_scope, scopes
from semprola.errors import LabelError, UnsatisfiableError


def smooth(circuit: Circuit, variables: npt.NDArray[np.bool_] | None = None) -> Circuit:
    """An equivalent circuit in which all branches of each sum mention the same labels, and the root all labels.

    A branch that leaves a label free gets ``(v or not v)``; one in which a zero-suppressed label is false gets
    ``not v``. The smoothed variables are no longer zero-suppressed.

    Args:
        variables: one bool per variable, whether to smooth it; by default all labels are smoothed.
    """
    chosen = np.arange(circuit.num_variables) < circuit.num_labels if variables is None else variables
    gap_start, gap_variables, root_gap = gaps(circuit, chosen)
    builder = CircuitBuilder(circuit.labels, circuit.given)
    suppressed = circuit.zero_suppressed.tolist()

    def fill(v: int) -> int:
        negative = builder.literal(v, False)
        return negative if suppressed[v] else builder.sum([negative, builder.literal(v, True)])

    start, offsets, missing = circuit.child_start.tolist(), gap_start.tolist(), gap_variables.tolist()

    def filled(node: int, parts: list[int]) -> int:
        edges = range(start[node], start[node + 1])
        gaps_of = ([fill(v) for v in missing[offsets[e] : offsets[e + 1]]] for e in edges)
        return builder.sum(builder.product([part, *gap]) for part, gap in zip(parts, gaps_of, strict=True))

    top = fold(
        circuit,
        lambda signed: builder.literal(abs(signed) - 1, signed > 0),
        lambda _, parts: builder.product(parts),
        filled,
    )
    root = builder.product([top, *(fill(v) for v in root_gap.tolist())])
    return builder.build(
        root, zero_suppressed=circuit.zero_suppressed & ~chosen, vtree=circuit.vtree, info=circuit.info
    )


_GAP_WORDS = 1 << 23
"""Words of bit sets held at a time during the search for gaps."""


def gaps(
    circuit: Circuit, variables: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The variables that each branch of a sum does not mention although a sibling does.

    Returns:
        offsets [edges + 1] and variables, a CSR list over all edges (empty for edges of products), and the
        variables that the root does not mention.
    """
    if not np.any(variables):
        return np.zeros(circuit.num_edges + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.int64)
    scope = scopes(circuit)
    chosen = bits(variables)
    parents = np.repeat(np.arange(circuit.num_nodes), np.diff(circuit.child_start))
    edges = np.flatnonzero(circuit.kind[parents] == SUM)
    counts = np.zeros(circuit.num_edges + 1, dtype=np.int64)
    found = [np.zeros(0, np.int64)]
    step = max(1, _GAP_WORDS // scope.shape[1])
    for begin in range(0, len(edges), step):  # all edges at once would take more memory than the circuit
        part = edges[begin : begin + step]
        missing = scope[parents[part]] & ~scope[circuit.children[part]] & chosen
        touched = np.flatnonzero(missing.any(axis=1))
        row, variable = members(missing[touched])
        counts[1:][part[touched]] = np.bincount(row, minlength=len(touched))
        found.append(variable)
    variable = np.concatenate(found)
    root_gap = members((chosen & ~scope[circuit.root])[None, :])[1]
    return np.cumsum(counts), variable, root_gap


def mentions_all(circuit: Circuit, variables: npt.NDArray[np.bool_]) -> bool:
    """Whether the root mentions all of these variables."""
    return not np.any(variables & ~root_scope(circuit))


def condition(circuit: Circuit, values: Mapping[str, Any]) -> Circuit:
    """See :meth:`Circuit.condition`."""
    fixed = _fixed(circuit, values)
    ones = np.zeros(circuit.num_variables, dtype=bool)
    ones[[v for v, value in fixed.items() if value]] = True
    if np.any(ones & circuit.zero_suppressed):
        circuit = smooth(circuit, ones & circuit.zero_suppressed)
    kept = [v for v in range(circuit.num_variables) if v < circuit.num_labels or v not in fixed]
    rename = {v: i for i, v in enumerate(kept)}
    builder = CircuitBuilder(circuit.labels, [circuit.variables[v] for v in kept if v >= circuit.num_labels])

    def literal(signed: int) -> int:
        v = abs(signed) - 1
        if v in fixed:
            return builder.true() if fixed[v] == (signed > 0) else FALSE
        return builder.literal(rename[v], signed > 0)

    root = fold(circuit, literal, lambda _, parts: builder.product(parts), lambda _, parts: builder.sum(parts))
    if root == FALSE:
        shown = ", ".join(f"{name!r}: {int(bool(value))}" for name, value in list(values.items())[:4])
        raise UnsatisfiableError(f"no model has {{{shown}{', …' if len(values) > 4 else ''}}}")
    labels = [builder.literal(v, value) for v, value in fixed.items() if v < circuit.num_labels]
    return builder.build(
        builder.product([root, *labels]),
        zero_suppressed=circuit.zero_suppressed[kept],
        vtree=circuit.vtree.restrict(rename) if circuit.vtree is not None else None,
        info=circuit.info,
    )


def _fixed(circuit: Circuit, values: Mapping[str, Any]) -> dict[int, bool]:
    index = {name: v for v, name in enumerate(circuit.variables)}
    fixed: dict[int, bool] = {}
    for name, value in values.items():
        if name not in index:
            raise LabelError(f"{name!r} is not a label or given variable of the circuit")
        if value not in (0, 1):
            raise ValueError(f"{name!r} must be 0 or 1, not {value!r}")
        fixed[index[name]] = bool(value)
    return fixed
