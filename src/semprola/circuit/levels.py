"""The nodes of a circuit level by level: a pass takes only a few array operations per level."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

Index = npt.NDArray[np.int64]

_WORDS_AT_ONCE = 1 << 18


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
