"""Weighted counts against the sum over all models."""

from __future__ import annotations

import itertools
import math
import random
from fractions import Fraction
from typing import Any

import pytest
from zoo import names, random_cnf

import semprola as sp
from semprola.circuit import CircuitBuilder
from semprola.circuit.weighted import weighted_count


def brute_force(formula: Any, labels: list[str], weights: dict[str, tuple[Any, Any]]) -> Fraction:
    total = Fraction(0)
    for bits in itertools.product([0, 1], repeat=len(labels)):
        if formula.evaluate(dict(zip(labels, bits, strict=True))):
            product = Fraction(1)
            for name, bit in zip(labels, bits, strict=True):
                product *= Fraction(weights.get(name, (1, 1))[bit])
            total += product
    return total


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("family", [False, True])
def test_against_all_models(seed: int, family: bool) -> None:
    rng = random.Random(seed)
    labels = names(6)
    formula: Any = sp.constraints.hierarchy([("a", "b"), ("c", "b"), ("d", "a")]) if family else random_cnf(seed, 6, 8)
    pool = [Fraction(k, 7) for k in range(-7, 8)]
    weights = {name: (rng.choice(pool), rng.choice(pool)) for name in rng.sample(labels, 4)}
    weights["e"] = (Fraction(1), Fraction(-1))  # sums to zero: cannot be divided out
    weights["a"] = (Fraction(0), Fraction(1, 3))
    circuit = sp.compile(formula, labels=labels)
    expected = brute_force(formula, labels, weights)
    assert weighted_count(circuit, weights) == expected
    assert weighted_count(circuit, weights, exact=False) == pytest.approx(float(expected), rel=1e-9, abs=1e-12)


def test_no_weights_is_the_count() -> None:
    circuit = sp.compile(sp.exactly(20, [f"x{i}" for i in range(60)]))
    assert weighted_count(circuit, {}) == circuit.model_count()
    assert weighted_count(circuit, {}, exact=False) == pytest.approx(circuit.model_count())


def test_tiny_and_huge_weights() -> None:
    labels = [f"x{i}" for i in range(300)]
    circuit = sp.compile(sp.constraints.cardinality(labels, at_most=299))
    weights = {name: (Fraction(1, 10**9), Fraction(10**9)) for name in labels}
    exact = weighted_count(circuit, weights)
    assert exact == (Fraction(1, 10**9) + 10**9) ** 300 - Fraction(10**9) ** 300
    probabilities = dict.fromkeys(labels, (0.999, 0.001))
    assert weighted_count(circuit, probabilities, exact=False) == pytest.approx(1)


def test_unknown_name() -> None:
    builder = CircuitBuilder(["a"])
    with pytest.raises(sp.LabelError, match="'b' is not a variable"):
        weighted_count(builder.build(builder.literal(0, True)), {"b": (1, 1)})


@pytest.mark.parametrize("power", [-705, -330, 400])
def test_beyond_the_range_of_floats(power: int) -> None:
    labels = [f"x{i}" for i in range(5)]
    circuit = sp.compile(sp.And(sp.Bool(name) for name in labels))
    weight = Fraction(10) ** (power // 5)
    about = weighted_count(circuit, dict.fromkeys(labels, (Fraction(1), weight)), exact=False)
    exact = weighted_count(circuit, dict.fromkeys(labels, (Fraction(1), weight)))
    assert exact == weight**5
    assert abs(Fraction(about) / exact - 1) < Fraction(1, 10**12)


def test_weights_that_no_float_holds() -> None:
    circuit = sp.compile(sp.parse("a | b"))
    tiny = Fraction(1, 10**500)
    about = weighted_count(circuit, {"a": (1, tiny), "b": (1, tiny)}, exact=False)
    assert abs(Fraction(about) / (2 * tiny + tiny**2) - 1) < Fraction(1, 10**12)


@pytest.mark.parametrize("weights", [(math.nan, 1), (1, math.inf), (1,), None])
def test_weights_that_are_not_two_numbers(weights: Any) -> None:
    with pytest.raises(sp.LabelError, match="the weights of 'a' must be two finite numbers"):
        weighted_count(sp.compile("a | b"), {"a": weights})
