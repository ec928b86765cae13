"""Which variables each node of a circuit mentions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from semprola.circuit.fold import fold_arrays
from semprola.circuit.levels import levels

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit

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
