"""Rules learnt from rows: planted ones are found, noise gives none; the statistics against brute force."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import semprola as sp
from semprola.compiler.budget import Budget
from semprola.errors import LabelError, UnsatisfiableError
from semprola.rules.chance import log_chance, q_values
from semprola.rules.mining import candidates, evidence, literals_of

PLANTED = ["exactly(1, k0, k1, k2, k3)", "f <-> g", "at_most(2, t0, t1, t2, t3, t4)", "a -> b", "c -> a", "d & e -> f"]


def _planted(seed: int, rows: int = 1000) -> dict[str, np.ndarray]:
    chance = np.random.default_rng(seed)
    a, d, e = (chance.random((3, rows)) < [[0.3], [0.5], [0.5]]).astype(np.float32)
    kinds = np.eye(4, dtype=np.float32)[chance.integers(0, 4, rows)]
    two = chance.permuted(np.tile(np.float32([1, 1, 0, 0, 0]), (rows, 1)), axis=1)
    f = np.maximum(d * e, chance.random(rows) < 0.4).astype(np.float32)
    found = {"a": a, "b": np.maximum(a, chance.random(rows) < 0.3), "c": a * (chance.random(rows) < 0.5)}
    found |= {"d": d, "e": e, "f": f, "g": f.copy(), "noise": (chance.random(rows) < 0.5).astype(np.float32)}
    return found | {f"k{i}": kinds[:, i] for i in range(4)} | {f"t{i}": two[:, i] for i in range(5)}


@pytest.mark.parametrize("seed", range(3))
def test_planted_rules_are_found_and_nothing_else(seed: int) -> None:
    learnt = sp.rules.learn(_planted(seed))
    assert {str(rule.formula) for rule in learnt.rules} == {*PLANTED}
    assert sp.rules.compare(learnt.formula, "\n".join(PLANTED)).relation == "equal"
    sizes = [rule.excludes for rule in learnt.rules]
    assert sizes == sorted(sizes, reverse=True)
    assert all(rule.exceptions == 0 for rule in learnt.rules)
    assert learnt.rules[0].kind == "cardinality"
    assert "6 rules hold in 1,000 rows" in str(learnt)


def test_known_rules_and_what_they_imply_are_left_out() -> None:
    data = _planted(0)
    learnt = sp.rules.learn(data, known="c -> b & a\nexactly(1, k0, k1, k2, k3)\nf <-> g")
    assert [str(rule.formula) for rule in learnt.rules] == ["at_most(2, t0, t1, t2, t3, t4)", "a -> b", "d & e -> f"]
    assert not sp.rules.learn(data, known=sp.rules.learn(data).formula).rules
    chosen = learnt.accept([1])
    assert sp.rules.compare(chosen, "a -> b").relation == "equal"
    with pytest.raises(UnsatisfiableError, match="known rules contradict"):
        sp.rules.learn(data, known="a\n~a")


@pytest.mark.parametrize("seed", range(12))
def test_noise_gives_nothing(seed: int) -> None:
    chance = np.random.default_rng(seed)
    rows = chance.random((300, 25)) < chance.uniform(0.02, 0.95, 25)
    assert not sp.rules.learn(rows.astype(int), labels=[f"x{i}" for i in range(25)]).rules


def test_exceptions_and_empty_cells() -> None:
    data = _planted(1)
    wrong = np.flatnonzero(data["c"])[:5]
    data["a"][wrong] = 0
    strict = {str(rule.formula) for rule in sp.rules.learn(data).rules}
    rules = {str(rule.formula): rule for rule in sp.rules.learn(data, exceptions=0.06).rules}
    assert "c -> a" not in strict
    assert rules["c -> a"].exceptions == 5
    data = _planted(1)
    hidden = np.random.default_rng(0)
    for column in data.values():
        column[hidden.random(len(column)) < 0.1] = np.nan
    assert {str(rule.formula) for rule in sp.rules.learn(data).rules} == {*PLANTED}


def test_evidence_is_that_of_counting() -> None:
    chance = np.random.default_rng(3)
    values = (chance.random((40, 5)) < 0.5).astype(np.float32)
    values[:, 4] = values[:, 0] * values[:, 1]
    values[chance.random(values.shape) < 0.1] = np.nan
    patterns = [
        tuple(2 * v + s for v, s in zip(labels, signs, strict=True))
        for size in (2, 3, 4)
        for labels in itertools.combinations(range(5), size)
        for signs in itertools.product((0, 1), repeat=size)
    ]
    found = evidence(patterns, literals_of(values), Budget())
    for at, pattern in enumerate(patterns):
        seen = values[~np.isnan(values[:, [p // 2 for p in pattern]]).any(1)]
        holds = np.array([seen[:, p // 2] == 1 - p % 2 for p in pattern])
        rest = [np.delete(holds, i, 0).all(0).sum() for i in range(len(pattern))]
        p = [
            _fisher(int(holds.all(0).sum()), int(h.sum()), int(r), len(seen)) for h, r in zip(holds, rest, strict=True)
        ]
        assert found.exceptions[at] == holds.all(0).sum()
        assert found.support[at] == min(rest)
        assert math.exp(found.log_p[at]) == pytest.approx(max(p), abs=1e-12)


def _fisher(seen: int, first: int, second: int, rows: int) -> float:
    ways = sum(math.comb(first, k) * math.comb(rows - first, second - k) for k in range(min(seen, second) + 1))
    return ways / math.comb(rows, second)


def test_candidates_are_all_that_the_screen_lets_through() -> None:
    chance = np.random.default_rng(5)
    values = (chance.random((120, 6)) < 0.5).astype(np.float32)
    values[:, 3], values[:, 5] = np.maximum(values[:, 0], values[:, 1]), values[:, 2] * values[:, 4]
    held = literals_of(values)
    every = [
        tuple(2 * v + s for v, s in zip(labels, signs, strict=True))
        for size in (2, 3)
        for labels in itertools.combinations(range(6), size)
        for signs in itertools.product((0, 1), repeat=size)
    ]
    for rate in (0.0, 0.1):
        found = evidence(every, held, Budget())
        limit = np.log(1e-3)
        expected = {p for p, ok in zip(every, found.holds(rate) & (found.log_p <= limit), strict=True) if ok}
        assert {p for p in candidates(held, 3, rate, Budget()) if len(p) < 4} == expected != set()


def test_false_discovery_rates() -> None:
    p = np.array([0.01, 0.02, 0.03, 0.5, 0.039])
    kept = q_values(np.log(p)) <= 0.05
    largest = max(k for k in range(1, 6) if sorted(p)[k - 1] <= 0.05 * k / 5)
    assert kept.tolist() == (p <= sorted(p)[largest - 1]).tolist()
    nothing = np.zeros(0, np.int64)
    assert log_chance(nothing, nothing, nothing, nothing).size == 0


def test_bad_input_and_edges() -> None:
    assert not sp.rules.learn(np.zeros((0, 2)), labels=["a", "b"]).rules
    assert not sp.rules.learn({"a": [1]}).rules
    assert not sp.rules.learn(np.zeros((5, 0)), labels=[]).rules
    learnt = sp.rules.learn(np.ones((5, 2)), labels=["a", "b"])
    assert learnt.constant == {"a": 1, "b": 1}
    assert "one value in all rows: a=1, b=1" in str(learnt)
    with pytest.raises(LabelError, match="and labels= to name its columns"):
        sp.rules.learn(np.ones((5, 2)))
    with pytest.raises(LabelError, match="has no columns"):
        sp.rules.learn({})
    with pytest.raises(IndexError, match="no rule 1 among 1 rule, counted from 0"):
        sp.rules.learn({"a": [0, 1] * 50, "b": [0, 1] * 50}).accept([0, 1])
    with pytest.raises(LabelError, match="distinct"):
        sp.rules.learn(np.ones((5, 2)), labels=["a", "a"])
    with pytest.raises(ValueError, match="must contain only 0, 1, and NaN"):
        sp.rules.learn(np.full((5, 1), 2), labels=["a"])
    with pytest.raises(ValueError, match="literals=2 or 3"):
        sp.rules.learn({"a": [1]}, literals=4)
