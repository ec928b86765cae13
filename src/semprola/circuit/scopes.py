"""Which variables each node of a circuit mentions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from semprola.circuit.fold import fold_arrays

if TYPE_CHECKING:
    from semprola.circuit.circuit import Circuit


def scopes(circuit: Circuit) -> npt.NDArray[np.uint64]:
    """The variables mentioned below each node, as bit sets of shape [nodes, ceil(variables / 64)]."""
    words = max(1, -(-circuit.num_variables // 64))
    scope = np.zeros((circuit.num_nodes, words), dtype=np.uint64)
    leaves = np.flatnonzero(circuit.literal)
    variable = np.abs(circuit.literal[leaves]) - 1
    scope[leaves, variable // 64] = np.uint64(1) << (variable % 64).astype(np.uint64)
    return fold_arrays(circuit, scope, np.bitwise_or, np.bitwise_or)
