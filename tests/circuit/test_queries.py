"""Counting, membership and listing against models listed by definition."""

from __future__ import annotations

import random
from itertools import product

import numpy as np
import pytest
import torch
from circuit_cases import Model, diagram, names, random_models

import semprola as sp
from semprola.circuit import Circuit, CircuitBuilder
from semprola.errors import IntractableError, LabelError


def cases() -> list[tuple[Circuit, set[Model]]]:
    rng = random.Random(0)
    found = []
    for trial in range(40):
        variables = rng.randint(1, 7)
        models = random_models(rng, variables, rng.choice((0.05, 0.3, 0.8, 1.0)))
        given = rng.randint(0, variables - 1) if trial % 2 else 0
        found.append((diagram(models, variables, given=given, suppress=trial % 4 < 2), models))
    return found


@pytest.mark.parametrize(("circuit", "models"), cases())
def test_against_the_list_of_models(circuit: Circuit, models: set[Model]) -> None:
    outputs = circuit.num_labels
    rows = np.array(list(product((0, 1), repeat=circuit.num_variables)))
    wanted = [tuple(row) in models for row in rows.tolist()]
    assert circuit.model_count() == len(models)
    assert circuit.satisfied(rows[:, :outputs], given=rows[:, outputs:]).tolist() == wanted
    listed = circuit.enumerate()
    assert listed.dtype == np.uint8
    assert sorted(map(tuple, listed.tolist())) == sorted(models)
    for limit in (0, 1, 3):
        some = list(map(tuple, circuit.enumerate(limit).tolist()))
        assert len(some) == len(set(some)) == min(limit, len(models))
        assert set(some) <= models
    if circuit.given:
        for value in product((0, 1), repeat=len(circuit.given)):
            chosen = {model[:outputs] for model in models if model[outputs:] == value}
            given = dict(zip(circuit.given, value, strict=True))
            if chosen:
                assert circuit.model_count(given=given) == len(chosen)
                assert set(map(tuple, circuit.enumerate(given=given).tolist())) == chosen


def at_least_one(labels: int) -> Circuit:
    b = CircuitBuilder(names(labels))
    node = b.literal(labels - 1, True)
    for v in range(labels - 2, -1, -1):
        node = b.decision(v, node, b.true())
    return b.build(node)


def test_counts_of_any_size() -> None:
    assert at_least_one(1000).model_count() == 2**1000 - 1


def test_satisfied_shapes_and_kinds() -> None:
    circuit = at_least_one(3)
    assert circuit.satisfied([0, 0, 1]) is True
    assert circuit.satisfied(np.zeros((2, 5, 3))).shape == (2, 5)
    assert circuit.satisfied(np.zeros((0, 3))).shape == (0,)
    assert Circuit([], [], [1], [0], [0, 0], []).satisfied(np.zeros((4, 0))).tolist() == [True] * 4
    for dtype in (torch.float32, torch.bool, torch.int64, torch.float16):
        result = circuit.satisfied(torch.eye(3).to(dtype))
        assert isinstance(result, torch.Tensor)
        assert result.tolist() == [True] * 3
    many = np.random.default_rng(0).integers(0, 2, (1000, 3))
    assert circuit.satisfied(many).tolist() == many.any(axis=1).tolist()


def test_satisfied_with_many_violated_suppressed_literals() -> None:
    b = CircuitBuilder(names(8))
    circuit = b.build(b.product([b.literal(v, True) for v in range(8)]), zero_suppressed=[True] * 8)
    rows = np.array(list(product((0, 1), repeat=8)))
    assert circuit.satisfied(rows).sum() == 1


@pytest.mark.parametrize("bad", [[0, 1], 1, [[0, 1, 1, 0]]])
def test_wrong_width(bad: object) -> None:
    with pytest.raises(LabelError, match=r"expected \[\*batch, 3\]: columns 'v0'"):
        at_least_one(3).satisfied(bad)


@pytest.mark.parametrize("bad", [[0, 1, 2], [0, 1, float("nan")], [0, 0.5, 1]])
def test_wrong_values(bad: object) -> None:
    with pytest.raises(ValueError, match="must contain only 0 and 1"):
        at_least_one(3).satisfied(bad)


def test_given_is_needed_and_checked() -> None:
    circuit = diagram({(0, 1), (1, 1)}, 2, given=1)
    with pytest.raises(LabelError, match="pass given="):
        circuit.satisfied([0])
    with pytest.raises(LabelError, match="no value for the given variable 'v1'"):
        circuit.model_count(given={})
    with pytest.raises(LabelError, match="'x' is not a given variable"):
        circuit.model_count(given={"v1": 1, "x": 1})
    assert circuit.satisfied([[0], [1]], given=[1]).tolist() == [True, True]
    with pytest.raises(ValueError, match="given has rows of shape"):
        circuit.satisfied([[0], [1]], given=[[1], [1], [1]])


def test_too_many_models_to_list() -> None:
    with pytest.raises(IntractableError, match=r"about 10\^301 models: pass limit="):
        at_least_one(1000).enumerate()
    b = CircuitBuilder(names(20_000))
    with pytest.raises(IntractableError, match=r"about 10\^60"):
        b.build(b.literal(0, True)).enumerate()


def test_limited_listing_of_a_product_is_cheap() -> None:
    """Two factors of 2^14 models each: a limit of 2^14 must not join all pairs first."""
    b = CircuitBuilder(names(30))
    halves = []
    for first in (0, 15):
        node = b.literal(first + 14, True)
        for v in range(first + 13, first - 1, -1):
            node = b.decision(v, node, b.true())
        halves.append(node)
    circuit = b.build(b.product(halves))
    rows = circuit.enumerate(limit=2**14)
    assert len(np.unique(rows, axis=0)) == 2**14
    assert circuit.satisfied(rows).all()


@pytest.mark.parametrize("limit", [-1, 1.5, True, "3"])
def test_bad_limit(limit: object) -> None:
    with pytest.raises(ValueError, match="limit must be a whole number"):
        at_least_one(3).enumerate(limit)  # type: ignore[arg-type]


def test_inputs_that_leave_no_model_count_zero() -> None:
    circuit = sp.compile("(x -> a) & (x -> ~a)", labels=["a"], given=["x"])
    assert circuit.model_count(given={"x": 1}) == 0
    assert circuit.model_count(given={"x": 0}) == 2
    assert circuit.enumerate(given={"x": 1}).shape == (0, 1)


def test_a_limit_may_be_larger_than_the_number_of_models_but_not_than_the_memory() -> None:
    free = sp.compile(sp.logic.TRUE, labels=[f"x{i}" for i in range(60)])
    with pytest.raises(IntractableError, match=r"about 10\^18 models: pass a smaller limit="):
        free.enumerate(10**12)
    assert len(sp.compile("a | b").enumerate(10**12)) == 3
    assert len(free.enumerate(np.int64(3))) == 3
