from __future__ import annotations

import itertools
import math
import random
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

import semprola as sp
from semprola.constraints import linear
from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError

OPERATORS = ["<=", ">=", "==", "<", ">", "!="]


@pytest.mark.parametrize("op", OPERATORS)
def test_random_constraints(agrees, op):
    chance = random.Random(6)
    for _ in range(60):
        most = chance.choice([2, 5, 30])
        draws = [lambda m=most: chance.randint(-m, m), lambda m=most: chance.randint(0, m) / 4]
        weights = {f"x{i}": chance.choice(draws)() for i in range(chance.randint(1, 8))}
        bound = chance.choice([chance.randint(-most, 2 * most), Fraction(chance.randint(0, 3 * most), 3)])
        agrees(linear(weights, op, bound))


def test_numbers_are_exact(agrees):
    tenths = {"a": 0.1, "b": 0.2}
    assert agrees(linear(tenths, "<=", 0.3)).model_count() == 4
    assert agrees(linear(tenths, "==", 0.3)).model_count() == 1
    huge = {"a": 10**40, "b": 10**40 + 1, "c": Fraction(1, 10**40)}
    assert agrees(linear(huge, "<", 2 * 10**40 + 1)).model_count() == 6
    same = linear({"a": Decimal("0.5"), "b": np.float32(0.5)}, ">=", np.int64(1))
    assert agrees(same).model_count() == 1


def test_equal_behaviour_is_one_node():
    """Weights and a bound that allow the same sets give the same diagram, whatever the numbers are."""
    ones = linear({f"x{i}": 1 for i in range(60)}, "<=", 20).to_circuit()
    scaled = linear({f"x{i}": 1000 + i % 3 for i in range(60)}, "<=", 20_500).to_circuit()
    assert ones.model_count() == scaled.model_count() == sum(math.comb(60, k) for k in range(21))
    assert ones.info["diagram_nodes"] == scaled.info["diagram_nodes"]


def test_knapsack():
    chance = random.Random(8)
    weights = [chance.randint(1, 50) for _ in range(60)]
    reached = [1] + [0] * sum(weights)
    for weight in weights:
        for total in range(len(reached) - 1, weight - 1, -1):
            reached[total] += reached[total - weight]
    named = {f"x{i}": weight for i, weight in enumerate(weights)}
    for bound in (100, 700):
        assert linear(named, "<=", bound).to_circuit().model_count() == sum(reached[: bound + 1])
        assert linear(named, "==", bound).to_circuit().model_count() == reached[bound]
        assert linear(named, "!=", bound).to_circuit().model_count() == 2**60 - reached[bound]


def test_budget():
    chance = random.Random(9)
    weights = {f"x{i}": chance.randint(10**15, 10**16) for i in range(60)}
    with pytest.raises(CompilationBudgetError, match=r"widest part is label 'x\d+' .* different sums.*fewer digits"):
        linear(weights, "<=", sum(weights.values()) // 2).to_circuit(max_nodes=20_000)


def test_no_model():
    with pytest.raises(UnsatisfiableError, match="no model"):
        linear({"a": 1}, ">", 1).to_circuit()
    with pytest.raises(UnsatisfiableError, match="no model"):
        linear({"a": 2, "b": 4}, "==", 3).to_circuit()


@pytest.mark.parametrize(
    ("weights", "op", "bound", "error", "words"),
    [
        ({"a": 1}, "=", 1, ValueError, "must be one of <= >= == < > !=, not '='"),
        ({"a": "1"}, "<=", 1, ValueError, "coefficient of 'a' must be a number"),
        ({"a": float("inf")}, "<=", 1, ValueError, "coefficient of 'a' must be a finite number"),
        ({"a": True}, "<=", 1, ValueError, "coefficient of 'a' must be a number"),
        ({"a": 1}, "<=", float("nan"), ValueError, "bound must be a finite number"),
        ({}, "<=", 1, LabelError, "at least one label"),
        ({1: 1}, "<=", 1, LabelError, "non-empty string"),
        ([("a", 1)], "<=", 1, LabelError, "must map labels to numbers"),
    ],
)
def test_errors(weights, op, bound, error, words):
    with pytest.raises(error, match=words) as caught:
        linear(weights, op, bound)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("op", ["<=", ">=", "==", "<", ">"])
def test_short_clauses_say_the_same(op):
    rng = random.Random(op)
    rows = np.array(list(itertools.product([0, 1], repeat=5)), bool)
    written = 0
    for _ in range(40):
        weights = {f"x{i}": Fraction(rng.randint(-5, 6), rng.choice((1, 1, 2))) for i in range(5)}
        rule = linear(weights, op, Fraction(rng.randint(-8, 10), rng.choice((1, 3))))
        clauses = rule.as_clauses()
        if clauses is not None:
            written += 1
            holds = [all(any(row[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses) for row in rows]
            assert holds == rule.evaluate(rows).tolist()
    assert written > 20
    assert linear({f"x{i}": 1 for i in range(30)}, "<=", 9).as_clauses() is None


def test_a_number_of_less_precision_is_what_it_prints_as():
    assert sp.constraints.linear({"a": np.float32(0.1)}, "<=", 0.1).evaluate({"a": 1})
    assert sp.constraints.linear({"a": np.float16(0.1)}, "==", np.float64(0.1)).evaluate({"a": 1})
