"""Scopes are the same whether they are computed all at once or a few words at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import semprola as sp
from semprola.circuit.fold import members, root_scope, scope_blocks, scopes
from semprola.circuit.properties import swept
from semprola.circuit.queries import model_count

C = sp.constraints
CONSTRAINTS = [
    C.hierarchy([(f"x{i}", f"x{i // 2}") for i in range(1, 200)]),
    C.hierarchy([(f"x{i}", f"x{j}") for i in range(3, 90) for j in {i // 2, i // 3}]),
    sp.And([sp.one_hot([f"a{g}{k}" for k in range(4)]) for g in range(30)]),
    sp.parse("(a -> b) & (b | c)"),
]


@pytest.mark.parametrize("constraint", CONSTRAINTS, ids=lambda constraint: constraint.labels[-1])
def test_a_few_words_at_a_time(constraint: sp.Formula, monkeypatch: pytest.MonkeyPatch) -> None:
    circuit = sp.compile(constraint, cache=False)
    whole, properties, count = scopes(circuit), swept(circuit), model_count(circuit)
    monkeypatch.setattr("semprola.circuit.fold._BLOCK_WORDS", 1)
    blocks = list(scope_blocks(circuit))
    assert [first for first, _ in blocks] == list(range(whole.shape[1]))
    assert np.array_equal(np.concatenate([block for _, block in blocks], axis=1), whole)
    assert swept(circuit) == properties
    assert properties[0]
    assert model_count(circuit) == count
    expected = np.zeros(circuit.num_variables, bool)
    expected[members(whole[circuit.root][None, :])[1]] = True
    assert np.array_equal(root_scope(circuit), expected)


def test_members_are_listed_in_row_order() -> None:
    rows = np.random.default_rng(0).random((50, 192)) < 0.05
    sets = np.packbits(rows, axis=1, bitorder="little").view(np.uint64)
    found = list(zip(*(part.tolist() for part in members(sets)), strict=True))
    assert found == [pair for pair in itertools.product(range(50), range(192)) if rows[pair]]
    assert [len(part) for part in members(np.zeros((3, 2), np.uint64))] == [0, 0]
