"""Shared by the tests of all families: compares the circuit with the definition on every assignment."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable

import numpy as np
import pytest

from semprola.circuit import Circuit
from semprola.constraints import Family
from semprola.errors import UnsatisfiableError


@pytest.fixture
def agrees() -> Callable[..., Circuit | None]:
    """Check a family on all assignments of its labels; return its circuit, or None if it has no model.

    ``structured=False`` allows a circuit without a vtree.
    """
    return _agrees


def _agrees(family: Family, structured: bool = True) -> Circuit | None:
    names = family.labels
    rows = np.array(list(itertools.product([0, 1], repeat=len(names))), np.uint8)
    expected = family.evaluate(rows)
    again = pickle.loads(pickle.dumps(family))
    assert again == family
    assert hash(again) == hash(family)
    try:
        circuit = family.to_circuit()
    except UnsatisfiableError:
        assert not expected.any(), family
        return None
    assert set(circuit.variables) == set(names)
    assert circuit.given == family.given
    columns = [names.index(name) for name in circuit.variables]
    rows, split = rows[:, columns], len(circuit.labels)
    given = rows[:, split:] if circuit.given else None
    np.testing.assert_array_equal(circuit.satisfied(rows[:, :split], given), expected, err_msg=repr(family))
    assert circuit.model_count() == expected.sum()
    assert circuit.is_decomposable, family
    assert circuit.is_deterministic, family
    assert circuit.is_structured or not structured, family
    assert circuit.info["backend"] == "direct"
    return circuit
