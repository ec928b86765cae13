"""Contradictions of numbers: rules that the flow names have no model; if it sees everything, it misses nothing."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

import semprola as sp
from semprola.compiler.tallies import overdemand, tallies
from semprola.logic import And, Bool, Formula, count, parse


def has_model(rules: list[Formula], labels: list[str]) -> bool:
    rows = np.array(list(itertools.product([0, 1], repeat=len(labels))))
    return bool(And(rules).evaluate(rows, labels=labels).any())


@pytest.mark.parametrize("seed", range(60))
def test_what_is_named_has_no_model(seed: int) -> None:
    rng = random.Random(seed)
    labels = [f"x{i}" for i in range(9)]
    rules: list[Formula] = []
    for _ in range(rng.randint(3, 8)):
        some = rng.sample(labels, rng.randint(1, 6))
        lowest = rng.randint(0, len(some))
        rules.append(count(lowest, rng.randint(lowest, len(some)), [Bool(name) for name in some]))
    rules = [rule for rule in rules if rule.labels]
    core = overdemand(tallies(rules))
    if core is not None:
        assert not has_model([rules[i] for i in core], labels)


@pytest.mark.parametrize("seed", range(40))
def test_disjoint_demands_and_nested_limits_are_decided(seed: int) -> None:
    """Rows demand, columns and parts of columns limit: there is a model exactly if the flow finds no shortage."""
    rng = random.Random(seed)
    rows, columns = 3, 4
    at = {(r, c): f"x{r}{c}" for r in range(rows) for c in range(columns)}
    rules = [sp.at_least(rng.randint(1, 4), [at[r, c] for c in range(columns)]) for r in range(rows)]
    rules += [sp.at_most(rng.randint(0, 3), [at[r, c] for r in range(rows)]) for c in range(columns)]
    rules += [sp.at_most(1, [at[0, c], at[1, c]]) for c in range(columns) if rng.random() < 0.4]
    rules = [rule for rule in rules if rule.labels]
    core = overdemand(tallies(rules))
    assert (core is None) == has_model(rules, list(at.values()))
    if core is not None:
        assert not has_model([rules[i] for i in core], list(at.values()))


def test_what_is_read_as_a_number() -> None:
    rules = [parse("~a"), parse("~(a & b)"), parse("a | ~b"), parse("at_most(1, ~a, ~b)"), parse("a -> b")]
    assert [(t.rule, t.lowest, t.highest) for t in tallies(rules)] == [(0, 0, 0), (1, 0, 1), (3, 1, 2)]
    assert [t.rule for t in tallies([sp.constraints.one_hot(["a", "b"], ["c", "d"])])] == [0, 0]


def test_a_large_roster_is_refused_at_once() -> None:
    """60 shifts, 20 nurses, at most two shifts each: hopeless for clauses."""
    one = [sp.one_hot([f"n{n}d{d}" for n in range(20)]) for d in range(60)]
    few = [sp.constraints.cardinality([f"n{n}d{d}" for d in range(60)], at_most=2) for n in range(20)]
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(And([*one, *few]), cache=False)
    assert len(caught.value.rules) == 41 + 20
