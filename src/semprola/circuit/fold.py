"""One pass over a circuit, children first: every query and transform is a choice of what flows upwards.

`fold` passes any Python values node by node; `fold_arrays` passes numbers, a whole level of nodes at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt

from semprola.circuit.levels import Level, levels

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

Value = TypeVar("Value")

_PRODUCT, _SUM = 1, 2
_CHECK_EVERY = 1024
_WIDE_LEVEL, _FEW_CHILDREN = 256, 16
"""If at least this many nodes of a level have at most this many children, they are reduced child by child."""


def fold(
    circuit: Circuit,
    literal: Callable[[int], Value],
    product: Callable[[int, list[Value]], Value],
    sum_: Callable[[int, list[Value]], Value],
    check: Callable[[], None] | None = None,
) -> Value:
    """The value of the root, computed from those of the literals; values that no later node needs are dropped.

    Args:
        circuit: any circuit.
        literal: the value of a signed literal, ``+(v + 1)`` or ``-(v + 1)``.
        product: the value of a product, from its number and its children's values; without children it is "true".
        sum_: the value of a sum, likewise.
        check: called from time to time; may raise an exception to stop.

    Example:
        >>> from semprola.circuit import CircuitBuilder
        >>> b = CircuitBuilder(["a", "b"])
        >>> circuit = b.build(b.decision(0, b.literal(1, True), b.literal(1, False)))
        >>> fold(circuit, str, lambda _, parts: "(" + " & ".join(parts) + ")", lambda _, parts: " | ".join(parts))
        '(-1 & 2) | (1 & -2)'
    """
    start, children = circuit.child_start.tolist(), circuit.children.tolist()
    uses = np.bincount(circuit.children, minlength=circuit.num_nodes).tolist()
    values: list[Any] = []
    for node, (kind, signed) in enumerate(zip(circuit.kind.tolist(), circuit.literal.tolist(), strict=True)):
        if check is not None and node % _CHECK_EVERY == 0:
            check()
        if signed:
            values.append(literal(signed))
            continue
        below = children[start[node] : start[node + 1]]
        parts = [values[child] for child in below]
        values.append(product(node, parts) if kind == _PRODUCT else sum_(node, parts))
        for child in below:
            uses[child] -= 1
            if not uses[child]:
                values[child] = None
    root: Value = values[-1]
    return root


def fold_arrays(
    circuit: Circuit,
    values: npt.NDArray[Any],
    product: np.ufunc,
    sum_: np.ufunc,
    least: int | None = None,
    listed: Sequence[Level] | None = None,
) -> npt.NDArray[Any]:
    """Fill in the values of all nodes with children, level by level.

    Args:
        circuit: any circuit.
        values: [nodes, …] with the rows of literals and empty products set; the other rows are overwritten.
        product: the reduction over the children of a product.
        sum_: the reduction over the children of a sum.
        least: a lower bound for results, so that sums of "impossible" values do not overflow the number type.
        listed: the levels of the circuit, if the caller already has them.

    Returns:
        `values`, for convenience.
    """
    for level in levels(circuit) if listed is None else listed:
        for kind, reduce in ((_PRODUCT, product), (_SUM, sum_)):
            nodes, result = _reduced(circuit, level, kind, values, reduce)
            values[nodes] = result if least is None else np.maximum(result, least)
    return values


def _reduced(
    circuit: Circuit, level: Level, kind: int, values: npt.NDArray[Any], reduce: np.ufunc
) -> tuple[npt.NDArray[np.int64], npt.NDArray[Any]]:
    chosen = circuit.kind[level.nodes] == kind
    if not np.any(chosen):
        return level.nodes[:0], values[:0]
    counts = np.diff(np.append(level.starts, len(level.children)))
    children = level.children[np.repeat(chosen, counts)]
    counts = counts[chosen]
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    nodes = level.nodes[chosen]
    few = counts <= _FEW_CHILDREN
    if values.ndim == 1 or int(few.sum()) < _WIDE_LEVEL:
        return nodes, reduce.reduceat(values[children], starts, axis=0)
    # numpy's reductions return sums of small integers in a wider type: do the same
    wide = reduce.reduceat(values[:1], [0], axis=0).dtype
    result = np.empty((len(nodes), *values.shape[1:]), wide)
    result[few] = _child_by_child(values, children, starts[few], counts[few], reduce, wide)
    if not few.all():
        many = children[np.repeat(~few, counts)]
        starts = np.concatenate([[0], np.cumsum(counts[~few])[:-1]])
        result[~few] = reduce.reduceat(values[many], starts, axis=0)
    return nodes, result


def _child_by_child(
    values: npt.NDArray[Any],
    children: npt.NDArray[np.int64],
    starts: npt.NDArray[np.int64],
    counts: npt.NDArray[np.int64],
    reduce: np.ufunc,
    wide: np.dtype[Any],
) -> npt.NDArray[Any]:
    """Reduce the first children of all nodes, then the second, and so on: this takes less time and memory."""
    result = values[children[starts]].astype(wide, copy=False)
    for k in range(1, int(counts.max())):
        more = np.flatnonzero(counts > k)
        if len(more) == len(counts):
            reduce(result, values[children[starts + k]], out=result)
        else:
            result[more] = reduce(result[more], values[children[starts[more] + k]])
    return result
