"""One pass over a circuit, children first: every query and transform is a choice of what flows upwards.

`fold` passes any Python values node by node; `fold_arrays` passes numbers, a whole level of nodes at a time. `scopes`,
the variables that each node mentions, are such a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit


Value = TypeVar("Value")
Index = npt.NDArray[np.int64]

_PRODUCT, _SUM = 1, 2
_CHECK_EVERY = 1024
_WORDS_AT_ONCE = 1 << 18
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
        product: the value of a product, from its number and its children's values; without children it is "true".
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
        values: [nodes, …] with the rows of literals and empty products set; the other rows are overwritten.
        least: a lower bound for results, so that sums of "impossible" values do not overflow the number type.

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


# levels ------------------------------------------------------------------------------------------------------------


class Level(NamedTuple):
    """Inner nodes whose children all lie on earlier levels; the children of ``nodes[i]`` start at ``starts[i]``."""

    nodes: Index
    children: Index
    starts: Index


def heights(child_start: npt.NDArray[np.int64], children: npt.NDArray[np.int32]) -> Index:
    """The longest distance from each node down to a node without children."""
    n = len(child_start) - 1
    counts = np.diff(child_start)
    height = np.zeros(n, dtype=np.int64)
    remaining = counts.copy()
    by_child = np.argsort(children, kind="stable")
    # 32 bits are enough, and there may be many millions of edges
    parent_of = np.repeat(np.arange(n, dtype=np.int32 if n < 2**31 else np.int64), counts)[by_child]
    del by_child
    parent_start = np.concatenate([[0], np.cumsum(np.bincount(children, minlength=n))])
    frontier = np.flatnonzero(counts == 0)
    level = 0
    while len(frontier):
        height[frontier] = level
        above = parent_of[spans(parent_start, frontier)]
        above, arrived = np.unique(above, return_counts=True)
        remaining[above] -= arrived
        frontier = above[remaining[above] == 0]
        level += 1
    return height


def below_root(child_start: npt.NDArray[np.int64], children: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
    """Which nodes lie below the last one, the root, or are the root itself; children come before their parents."""
    parents = np.bincount(children, minlength=len(child_start) - 1)
    parents[-1] += 1
    dead = np.flatnonzero(parents == 0)
    while len(dead):
        orphans, lost = np.unique(children[spans(child_start, dead)], return_counts=True)
        parents[orphans] -= lost
        dead = orphans[parents[orphans] == 0]
    alive: npt.NDArray[np.bool_] = parents > 0
    return alive


def pruned(
    kind: npt.NDArray[np.int8], literal: npt.NDArray[np.int32], child_start: Index, children: Index
) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32], Index, Index]:
    """The arrays of a circuit without the nodes that do not lie below the last one."""
    kept = below_root(child_start, children)
    counts = np.diff(child_start)
    number = np.cumsum(kept) - 1
    start = np.concatenate([[0], np.cumsum(counts[kept])])
    return kind[kept], literal[kept], start, number[children[np.repeat(kept, counts)]]


def levels(circuit: Circuit) -> Iterator[Level]:
    """The inner nodes with children, lowest level first."""
    height = heights(circuit.child_start, circuit.children)
    order = np.argsort(height, kind="stable")
    bounds = np.searchsorted(height[order], np.arange(1, int(height.max(initial=0)) + 2))
    for first, last in pairwise(bounds.tolist()):
        nodes = order[first:last]
        counts = circuit.child_start[nodes + 1] - circuit.child_start[nodes]
        children = circuit.children[spans(circuit.child_start, nodes)].astype(np.int64)
        yield Level(nodes, children, np.concatenate([[0], np.cumsum(counts)[:-1]]))


def spans(start: npt.NDArray[np.int64], rows: npt.NDArray[np.integer]) -> Index:
    """The concatenated ranges start[r] … start[r + 1] - 1 of some rows of a CSR array."""
    counts = start[rows + 1] - start[rows]
    total = int(counts.sum())
    ends = np.cumsum(counts)
    index: Index = np.arange(total) + np.repeat(start[rows] - (ends - counts), counts)
    return index


def bits(variables: npt.NDArray[np.bool_]) -> npt.NDArray[np.uint64]:
    """Convert a set of variables from one bool per variable to a bit set like those of `scopes`."""
    padded = np.zeros(max(1, -(-len(variables) // 64)) * 64, dtype=bool)
    padded[: len(variables)] = variables
    return np.packbits(padded, bitorder="little").view(np.uint64)


def members(sets: npt.NDArray[np.uint64]) -> tuple[Index, Index]:
    """The (row, variable) pairs of bit sets of shape [rows, words], in row order."""
    row, word = np.nonzero(sets)  # most words are empty
    filled = sets[row, word]
    rows, variables = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
    for first in range(0, len(filled), _WORDS_AT_ONCE):
        part = slice(first, first + _WORDS_AT_ONCE)
        place, bit = np.nonzero(np.unpackbits(filled[part, None].view(np.uint8), axis=1, bitorder="little"))
        rows.append(row[part][place])
        variables.append(64 * word[part][place] + bit)
    return np.concatenate(rows), np.concatenate(variables)


# which variables each node mentions ---------------------------------------------------------------------------------

_BLOCK_WORDS = 1 << 24
"""Words of bit sets held at a time: all sets of a large circuit with many labels would take gigabytes."""


def scopes(circuit: Circuit) -> npt.NDArray[np.uint64]:
    """The variables mentioned below each node, as bit sets of shape [nodes, ceil(variables / 64)]."""
    words = max(1, -(-circuit.num_variables // 64))
    return fold_arrays(circuit, _of_leaves(circuit, 0, words), np.bitwise_or, np.bitwise_or)


def scope_blocks(circuit: Circuit) -> Iterator[tuple[int, npt.NDArray[np.uint64]]]:
    """The same bit sets a few words at a time: the index of the first word, and the sets [nodes, some words]."""
    words = max(1, -(-circuit.num_variables // 64))
    step = max(1, min(words, _BLOCK_WORDS // max(1, circuit.num_nodes)))
    listed = list(levels(circuit)) if step < words else None
    for first in range(0, words, step):
        leaves = _of_leaves(circuit, first, min(step, words - first))
        yield first, fold_arrays(circuit, leaves, np.bitwise_or, np.bitwise_or, listed=listed)


def root_scope(circuit: Circuit) -> npt.NDArray[np.bool_]:
    """The variables mentioned below the root, one bool each."""
    mentioned = np.zeros(circuit.num_variables, dtype=bool)
    mentioned[np.abs(circuit.literal[circuit.literal != 0]) - 1] = True
    return mentioned


def _of_leaves(circuit: Circuit, first: int, words: int) -> npt.NDArray[np.uint64]:
    """Some words of the bit sets of the literals; those of other nodes are empty."""
    scope = np.zeros((circuit.num_nodes, words), dtype=np.uint64)
    leaves = np.flatnonzero(circuit.literal)
    variable = np.abs(circuit.literal[leaves]).astype(np.int64) - 1
    inside = (variable >= 64 * first) & (variable < 64 * (first + words))
    leaves, variable = leaves[inside], variable[inside]
    scope[leaves, variable // 64 - first] = np.uint64(1) << (variable % 64).astype(np.uint64)
    return scope
