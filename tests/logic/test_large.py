"""Formulas of tens of thousands of nodes, wide and deep: nothing recurses, nothing is slow."""

from __future__ import annotations

import copy
import gc
import pickle

import numpy as np
import pytest

from semprola.logic import And, Bool, Formula, exactly, parse
from semprola.logic.formula import _interned

N = 10_000  # ten times as deep as Python lets calls nest; what is quadratic would take a minute


def conjunction_chain() -> Formula:
    formula = Bool("x0")
    for i in range(1, N // 2):
        formula = formula & Bool(f"x{i}")
    return formula


def mixed_chain() -> Formula:
    formula = Bool("x0")
    for i in range(1, N // 4):
        formula = ~(Bool(f"x{i % 50}") >> (formula | Bool("y")))
    return formula


def negations() -> Formula:
    formula = Bool("x0")
    for _ in range(N):
        formula = ~formula
    return formula


def wide() -> Formula:
    return And(Bool(f"x{i}") | ~Bool(f"x{i + 1}") for i in range(N // 3))


def cardinality() -> Formula:
    return exactly(N // 4, [f"x{i}" for i in range(N // 2)])


def _count_interned() -> int:
    gc.collect()
    return len(_interned)


@pytest.mark.parametrize("build", [conjunction_chain, mixed_chain, negations, wide, cardinality])
def test_every_operation(build) -> None:
    before = _count_interned()
    formula = build()
    labels = formula.labels
    rows = np.random.default_rng(0).integers(0, 2, (2, len(labels)))
    truth = formula.evaluate(rows)
    again = parse(str(formula))
    assert (again.evaluate(rows, labels=labels) == truth).all()
    assert len(repr(formula)) < 2_100
    assert pickle.loads(pickle.dumps(formula)) is formula
    assert copy.deepcopy(formula) is formula
    flipped = formula.substitute({labels[0]: ~Bool(labels[0])})
    rows[:, 0] = 1 - rows[:, 0]
    assert (flipped.evaluate(rows, labels=labels) == truth).all()
    simple = formula.simplify()
    rows[:, 0] = 1 - rows[:, 0]
    assert (simple.evaluate(rows, labels=labels) == truth).all()
    del formula, again, flipped, simple
    assert _count_interned() <= before


@pytest.mark.parametrize("opening", ["(", "~(", "one_hot(", "a & (", "a -> ("])
def test_deep_text(opening: str) -> None:
    depth = N // 2
    formula = parse(opening * depth + "a" + ")" * depth)
    assert formula.labels == ("a",)


def test_nested_doubling_is_linear_work() -> None:
    formula = Bool("a")
    for _ in range(N // 5):
        formula = formula ^ formula
    assert formula.evaluate({"a": 1}) is False
    assert formula.size == N // 5 + 1
