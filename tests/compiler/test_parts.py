"""A single counting constraint is built directly."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import semprola as sp
from semprola.compiler.parts import counted_literals
from semprola.logic import count


@pytest.mark.parametrize(("lo", "hi"), [(0, 2), (1, 1), (2, 4), (3, 5), (4, 5), (0, 4), (5, 5), (1, 5)])
def test_all_bounds(lo: int, hi: int) -> None:
    labels = list("abcde")
    formula = count(lo, hi, ["a", ~sp.Bool("b"), "c", ~sp.Bool("d"), "e"])
    circuit = sp.compile(formula, labels=labels, cache=False)
    rows = np.array(list(itertools.product([0, 1], repeat=5)))
    np.testing.assert_array_equal(circuit.satisfied(rows), formula.evaluate(rows, labels=labels))
    assert circuit.model_count() == formula.evaluate(rows, labels=labels).sum()
    assert circuit.is_deterministic
    assert circuit.is_structured


def test_a_thousand_labels() -> None:
    labels = [f"x{i}" for i in range(1000)]
    assert sp.compile(sp.one_hot(labels), cache=False).num_nodes < 6000
    circuit = sp.compile(sp.at_most(20, labels), cache=False)
    assert circuit.info["backend"] == "direct"
    assert circuit.model_count() == sum(math.comb(1000, k) for k in range(21))
    with pytest.raises(sp.CompilationBudgetError, match="nodes"):
        sp.compile(sp.exactly(500, labels), max_nodes=10_000, cache=False)
    with pytest.raises(sp.CompilationBudgetError, match="memory"):
        sp.compile(sp.exactly(500, labels), memory="1MB", cache=False)


def test_what_is_not_one() -> None:
    a, b = sp.Bools("a b")
    assert counted_literals(sp.exactly(1, [a, a, b])) is None
    assert counted_literals(sp.exactly(1, [a & b, b])) is None
    assert counted_literals(a | b) is None


def test_a_file_without_variables_has_one_model() -> None:
    assert sp.rules.model_count(sp.from_dimacs("p cnf 0 0\n")) == 1
