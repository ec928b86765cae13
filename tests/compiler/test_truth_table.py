"""The short way for small rules: right, no larger than the long way, and short to read."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import semprola as sp
from semprola.compiler import Budget
from semprola.compiler.truth_table import is_small, table_circuit
from semprola.logic import Formula
from tests.support.walk import parse_and_compile, walk


def small_formula(seed: int) -> Formula:
    """Clauses, implications and counts over at most nine labels."""
    rng = random.Random(seed)
    names = [f"x{i}" for i in range(rng.randint(1, 9))]
    rules: list[Formula] = []
    for _ in range(rng.randint(1, 6)):
        some = rng.sample(names, rng.randint(1, min(4, len(names))))
        signed = [sp.Bool(name) if rng.random() < 0.5 else ~sp.Bool(name) for name in some]
        made = (sp.Or(signed), sp.And(signed[1:]) >> signed[0], sp.at_most(1, some), sp.Xor(signed))
        rules.append(rng.choice(made))
    return sp.And(rules)


@pytest.mark.parametrize("seed", range(60))
def test_agrees_with_the_definition(seed: int) -> None:
    formula = small_formula(seed)
    names = [*formula.labels, "unmentioned"]
    random.Random(seed).shuffle(names)
    given = names[: seed % 3]
    rows = np.array(list(itertools.product([0, 1], repeat=len(names))))
    truth = formula.evaluate(rows, labels=names)
    if not truth.any():
        with pytest.raises(sp.errors.UnsatisfiableError):
            sp.compile(formula, labels=names[len(given) :], given=given, cache=False)
        return
    circuit = sp.compile(formula, labels=names[len(given) :], given=given, cache=False)
    if formula.labels and is_small(formula):
        assert circuit.info["backend"] == "table"
    np.testing.assert_array_equal(
        circuit.satisfied(rows[:, len(given) :], rows[:, : len(given)] if given else None), truth
    )
    assert circuit.model_count() == truth.sum()
    assert circuit.is_deterministic
    assert circuit.is_decomposable
    assert circuit.is_structured


def test_no_larger_than_the_long_way() -> None:
    """In total, and nowhere by more than a fifth."""
    short = long = 0
    for seed in range(100, 140):
        formula = small_formula(seed)
        if not is_small(formula):
            continue
        try:
            searched = sp.compile(formula, backend="automata", cache=False)
        except sp.errors.UnsatisfiableError:
            continue
        circuit = table_circuit(formula, searched.labels, [], Budget())
        assert circuit.num_nodes <= 1.2 * searched.num_nodes + 1
        short, long = short + circuit.num_nodes, long + searched.num_nodes
    assert short <= long


def test_what_is_small() -> None:
    assert is_small(sp.parse("a & (b | ~c)"))
    assert not is_small(sp.And([sp.Bool(f"x{i}") >> sp.Bool(f"x{i + 1}") for i in range(12)]))
    assert not is_small(sp.constraints.hierarchy([("cat", "animal")]) & sp.Bool("dog"))
    assert not is_small(sp.exactly(1, ["a", "b"])), "a count has a construction of its own"


def test_a_short_walk() -> None:
    """`docs/design.md` walks two implications file by file; a reader should not have to open more."""
    files, changes = walk(parse_and_compile)
    assert len(files) <= 18, files
    assert changes <= 180
