"""Structural properties against their definitions on circuits of every kind."""

from __future__ import annotations

import random

import pytest
from circuit_cases import Referee, diagram, names, random_circuit, random_models

from semprola.circuit import LITERAL, PRODUCT, SUM, Circuit, CircuitBuilder, Vtree
from semprola.circuit.properties import swept


@pytest.mark.parametrize("suppress", [False, True])
def test_random_graphs(suppress: bool) -> None:
    rng = random.Random(0)
    seen = {"decomposable": 0, "proven": 0, "deterministic": 0, "smooth": 0}
    for _ in range(1500):
        circuit = random_circuit(rng, rng.randint(1, 4), rng.randint(1, 5), suppress=suppress)
        referee = Referee(circuit)
        assert circuit.is_smooth == referee.smooth
        assert circuit.is_decomposable == referee.decomposable
        seen["smooth"] += referee.smooth
        if not referee.decomposable:
            continue
        seen["decomposable"] += 1
        seen["deterministic"] += not referee.overlapping
        if circuit.is_deterministic:
            seen["proven"] += 1
            assert referee.deterministic
            assert circuit.model_count() == len(referee.rows())
    assert seen["decomposable"] > 200
    assert seen["smooth"] > 5
    assert seen["proven"] > 0.95 * seen["deterministic"] > 50


@pytest.mark.parametrize("suppress", [False, True])
def test_diagrams_are_proven(suppress: bool) -> None:
    rng = random.Random(1)
    for _ in range(40):
        circuit = diagram(random_models(rng, 6), 6, given=rng.randint(0, 2), suppress=suppress)
        assert circuit.is_decomposable
        assert circuit.is_deterministic
        smooth = circuit.smooth()
        assert smooth.is_smooth
        assert smooth.is_decomposable
        assert smooth.is_deterministic


def test_repeated_children() -> None:
    twice = Circuit(["a"], [], [LITERAL, SUM], [1, 0], [0, 0, 2], [0, 0])
    assert not twice.is_deterministic
    squared = Circuit(["a"], [], [LITERAL, PRODUCT], [1, 0], [0, 0, 2], [0, 0])
    assert not squared.is_decomposable
    mixed = Circuit(["a"], [], [LITERAL, PRODUCT, SUM], [1, 0, 0], [0, 0, 2, 4], [0, 0, 0, 1])
    assert not mixed.is_deterministic


def test_one_branch_within_part_of_another() -> None:
    """(a xor b) c and a b exclude each other, though no factor of one excludes a factor of the other."""
    b = CircuitBuilder(list("abc"))
    a, c = b.literal(0, True), b.literal(1, True)
    xor = b.decision(0, c, b.literal(1, False))
    for other in (b.product([a, c]), b.decision(0, b.literal(1, False), c)):
        assert b.build(b.sum([b.product([xor, b.literal(2, True)]), other])).is_deterministic
    overlapping = b.build(b.sum([b.product([xor, b.literal(2, True)]), a]))
    assert not overlapping.is_deterministic


def test_branches_that_smoothing_makes_equal() -> None:
    """y, with z absent and hence false, and y with z false are the same model counted twice."""
    b = CircuitBuilder(["y", "z"])
    y, z = b.literal(0, True), b.literal(1, True)
    root = b.sum([y, b.product([y, b.literal(1, False)]), b.product([z, b.literal(0, False)])])
    assert not b.build(root, zero_suppressed=[True, True]).is_deterministic
    assert not b.build(root).is_deterministic


def test_a_choice_between_sets_of_labels() -> None:
    """Some of a and b is on, and c and d are free; or a and b are not mentioned, so off, and some of c and d is on."""
    b = CircuitBuilder(list("abcd"))

    def some(first: int) -> int:
        on, next_on = b.literal(first, True), b.literal(first + 1, True)
        return b.sum([next_on, b.product([on, b.sum([b.true(), next_on])])])

    free = b.product([b.sum([b.true(), b.literal(v, True)]) for v in (2, 3)])
    circuit = b.build(b.sum([b.product([some(0), free]), some(2)]), zero_suppressed=[True] * 4)
    assert swept(circuit) == (True, True)
    assert circuit.model_count() == 15 == len(Referee(circuit).rows())
    # a part that may be empty tells nothing apart: all labels off is in both branches
    both = b.build(b.sum([b.product([free]), b.sum([b.true(), b.literal(0, True)])]), zero_suppressed=[True] * 4)
    assert swept(both) == (True, False)
    assert not both.is_deterministic


def test_wide_sums() -> None:
    b = CircuitBuilder(names(12))
    rows = [b.product([b.literal(v, bool(i >> v & 1)) for v in range(12)]) for i in range(4096)]
    assert b.build(b.sum(rows)).is_deterministic
    assert not b.build(b.sum([*rows[:-1], b.product([b.literal(v, True) for v in range(1, 12)])])).is_deterministic
    literals = CircuitBuilder(names(5000))
    assert not literals.build(literals.sum([literals.literal(v, True) for v in range(5000)])).is_deterministic


def test_structured() -> None:
    b = CircuitBuilder(list("abcd"))
    pairs = [b.decision(u, b.literal(v, True), b.literal(v, False)) for u, v in ((0, 1), (2, 3))]
    root = b.product(pairs)
    assert b.build(root, vtree=Vtree.balanced([0, 1, 2, 3])).is_structured
    assert b.build(root, vtree=Vtree.balanced([3, 2, 1, 0])).is_structured
    assert not b.build(root, vtree=Vtree.balanced([0, 2, 1, 3])).is_structured
    assert not b.build(root, vtree=Vtree.right_linear([0, 1, 2, 3])).is_structured
    assert not b.build(root).is_structured
    literals = b.product([b.literal(v, True) for v in range(4)])
    assert b.build(literals, vtree=Vtree.right_linear([2, 0, 3, 1])).is_structured
    assert b.build(b.true(), vtree=Vtree.right_linear([0, 1, 2, 3])).is_structured


def test_decision_diagrams_respect_their_order() -> None:
    rng = random.Random(2)
    for _ in range(20):
        circuit = diagram(random_models(rng, 5), 5)
        ordered = Circuit(
            circuit.labels,
            [],
            circuit.kind,
            circuit.literal,
            circuit.child_start,
            circuit.children,
            vtree=Vtree.right_linear(range(5)),
        )
        assert ordered.is_structured
