"""The builder: shares, folds, drops what is not needed, and keeps the meaning."""

from __future__ import annotations

import pytest
from circuit_cases import Referee, names

from semprola.circuit import FALSE, CircuitBuilder
from semprola.errors import UnsatisfiableError


def test_equal_nodes_are_shared() -> None:
    b = CircuitBuilder(["a", "b"])
    a, c = b.literal(0, True), b.literal(1, False)
    assert b.literal(0, True) == a
    assert b.product([a, c]) == b.product([c, a])
    assert b.sum([a, c]) == b.sum([c, a])
    assert b.sum([a, c]) != b.product([a, c])
    assert len(b) == 4


def test_constants_fold() -> None:
    b = CircuitBuilder(["a", "b"])
    a, true = b.literal(0, True), b.true()
    assert b.product([]) == true
    assert b.product([a, true]) == a
    assert b.product([a, FALSE]) == FALSE
    assert b.product([a, a]) == a
    assert b.sum([]) == FALSE
    assert b.sum([a, FALSE]) == a
    assert b.sum([a, a]) == a
    assert b.sum([FALSE]) == FALSE
    assert b.decision(1, FALSE, a) == b.product([b.literal(1, True), a])
    assert b.decision(1, FALSE, FALSE) == FALSE


def test_false_is_refused() -> None:
    with pytest.raises(UnsatisfiableError, match="no model"):
        CircuitBuilder(["a"]).build(FALSE)


def test_unreachable_nodes_are_dropped_and_products_merged() -> None:
    b = CircuitBuilder(list("abcd"))
    a, c, d, e = (b.literal(v, True) for v in range(4))
    b.sum([a, c])
    circuit = b.build(b.product([a, b.product([c, b.product([d, e])])]))
    assert (circuit.num_nodes, circuit.num_edges) == (5, 4)
    assert circuit.model_count() == 1


def test_shared_products_stay() -> None:
    b = CircuitBuilder(list("abc"))
    shared = b.product([b.literal(1, True), b.literal(2, True)])
    circuit = b.build(b.decision(0, shared, b.product([shared])))
    assert Referee(circuit).rows() == {(0, 1, 1), (1, 1, 1)}
    assert circuit.num_nodes == 8


def test_deep_product_chain() -> None:
    b = CircuitBuilder(names(3000))
    node = b.literal(0, True)
    for v in range(1, 3000):
        node = b.product([node, b.literal(v, True)])
    circuit = b.build(node)
    assert (circuit.num_nodes, circuit.num_edges) == (3001, 3000)
