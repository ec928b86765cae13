"""Folding arrays over a circuit: wide levels are reduced in a different way, with the same result."""

from __future__ import annotations

import numpy as np
import pytest

from semprola.circuit import fold as folding
from semprola.constraints import table


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.float32])
def test_wide_levels_have_the_same_values(dtype: type, monkeypatch: pytest.MonkeyPatch) -> None:
    """This also holds if a sum of several "impossible" values does not fit into the number type."""
    draw = np.random.default_rng(0)
    circuit = table(draw.random((5_000, 24)) < 0.1, labels=[f"x{i}" for i in range(24)]).to_circuit()
    impossible = -(2**30)
    start = np.where(draw.random((circuit.num_nodes, 3)) < 0.5, impossible, 1).astype(dtype)
    monkeypatch.setattr(folding, "_WIDE_LEVEL", 1)
    found = folding.fold_arrays(circuit, start.copy(), np.add, np.maximum, least=impossible)
    monkeypatch.setattr(folding, "_WIDE_LEVEL", 1 << 60)
    plain = folding.fold_arrays(circuit, start.copy(), np.add, np.maximum, least=impossible)
    assert np.array_equal(found, plain)
