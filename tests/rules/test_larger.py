"""Reviews, explanations and comparisons of a hundred rules, compared with answers of python-sat."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import semprola as sp

pytest.importorskip("pysat")
from pysat.examples.rc2 import RC2
from pysat.formula import WCNF
from pysat.solvers import Cadical153

SEEDS = [0, *(pytest.param(seed, marks=pytest.mark.extensive) for seed in range(1, 8))]
Clauses = list[list[int]]


class Large:
    """Random rules over `x1`, `x2`, …, each as a text and as clauses that are written here by hand."""

    def __init__(self, seed: int, *, labels: int = 60, rules: int = 100, contradictory: bool) -> None:
        self.chance = random.Random(seed)
        self.names = [f"x{i + 1}" for i in range(labels)]
        self.texts: list[str] = []
        self.clauses: list[Clauses] = []
        hidden = [self.chance.random() < 0.4 for _ in self.names]  # one state that all rules allow
        while len(self.texts) < rules:
            text, clauses = self._rule()
            if contradictory or all(any(hidden[abs(v) - 1] == (v > 0) for v in clause) for clause in clauses):
                self.texts.append(text)
                self.clauses.append(clauses)
        used = {abs(v) for clauses in self.clauses for clause in clauses for v in clause}
        self.used = [name for i, name in enumerate(self.names) if i + 1 in used]

    def _rule(self) -> tuple[str, Clauses]:
        a, b, c = self.chance.sample(range(1, len(self.names) + 1), 3)
        return self.chance.choice(
            [
                (f"x{a} -> x{b}", [[-a, b]]),
                (f"x{a} -> x{b}", [[-a, b]]),
                (f"x{a} & x{b} -> x{c}", [[-a, -b, c]]),
                (f"x{a} -> x{b} | x{c}", [[-a, b, c]]),
                (f"~(x{a} & x{b})", [[-a, -b]]),
                (f"x{a} | x{b} | x{c}", [[a, b, c]]),
                (f"x{a} <-> x{b}", [[-a, b], [a, -b]]),
                (f"at_most(1, x{a}, x{b}, x{c})", [[-a, -b], [-a, -c], [-b, -c]]),
            ]
        )

    def number(self, name: str) -> int:
        return self.names.index(name) + 1

    def literals(self, values: dict[str, int]) -> list[int]:
        return [self.number(name) * (1 if value else -1) for name, value in values.items()]

    def places(self, rules: Iterable[Any], of: Sequence[Any]) -> list[int]:
        at = {id(rule): place for place, rule in enumerate(of)}
        return [at[id(rule)] for rule in rules]

    def possible(self, rules: Iterable[int], assumptions: Sequence[int] = ()) -> bool:
        """Whether these rules have a model with these literals."""
        with Cadical153(bootstrap_with=[clause for rule in rules for clause in self.clauses[rule]]) as solver:
            return bool(solver.solve(assumptions=list(assumptions)))

    def implied(self, rule: int, by: Iterable[int]) -> bool:
        by = [*by]
        return all(not self.possible(by, [-v for v in clause]) for clause in self.clauses[rule])

    def fewest(self, hard: Clauses, soft: Iterable[tuple[Clauses, int]]) -> int | None:
        """What it costs at least to break some of the soft rules, by core-guided MaxSAT."""
        formula, top = WCNF(), len(self.names)
        for clause in hard:
            formula.append(clause)
        for clauses, weight in soft:
            top += 1
            for clause in clauses:
                formula.append([*clause, -top])
            formula.append([top], weight=weight)
        with RC2(formula) as solver:
            return None if solver.compute() is None else int(solver.cost)


@pytest.mark.parametrize("seed", SEEDS)
def test_review_of_rules_that_can_hold(seed: int) -> None:
    case = Large(seed, contradictory=False)
    found = sp.rules.review("\n".join(case.texts))
    every = range(len(case.texts))
    assert found.satisfiable is case.possible(every) is True
    with Cadical153(bootstrap_with=[clause for clauses in case.clauses for clause in clauses]) as solver:
        forced = {
            name: value
            for name in case.used
            for value in (0, 1)
            if not solver.solve(assumptions=case.literals({name: 1 - value}))
        }
        assert found.forced == forced
        groups = {name.strip("~"): (i, "~" in name) for i, group in enumerate(found.equal) for name in group}
        free = [name for name in case.used if name not in forced]
        for first, second in itertools.combinations(free, 2):
            a, b = case.number(first), case.number(second)
            same = not solver.solve(assumptions=[a, -b]) and not solver.solve(assumptions=[-a, b])
            opposite = not solver.solve(assumptions=[a, b]) and not solver.solve(assumptions=[-a, -b])
            together = first in groups and second in groups and groups[first][0] == groups[second][0]
            assert together == (same or opposite)
            assert not together or (groups[first][1] == groups[second][1]) == same
    gone = case.places((each.rule for each in found.redundant), found.rules)
    kept = [rule for rule in every if rule not in {*gone}]
    assert all(case.implied(rule, kept) for rule in gone)
    assert not any(case.implied(rule, [other for other in kept if other != rule]) for rule in kept)
    for each, rule in zip(found.redundant, gone, strict=True):
        by = case.places(each.by, found.rules)
        if each.why == "never applies":
            continue
        assert case.implied(rule, by)
        assert not any(case.implied(rule, [other for other in by if other != left]) for left in by)


@pytest.mark.parametrize("seed", SEEDS)
def test_review_of_contradictions(seed: int) -> None:
    case = Large(seed, labels=30, rules=60, contradictory=True)
    case.texts += ["x1", "~x1"]  # at least one contradiction
    case.clauses += [[[1]], [[-1]]]
    found = sp.rules.review("\n".join(case.texts), most=8)
    every = range(len(case.texts))
    assert found.contradictions
    for each in found.contradictions:
        rules = case.places(each, found.rules)
        assert not case.possible(rules)
        assert all(case.possible([other for other in rules if other != left]) for left in rules)
    left_out = case.places(found.left_out, found.rules)
    assert case.possible(rule for rule in every if rule not in {*left_out})
    assert len(left_out) == case.fewest([], ((clauses, 1) for clauses in case.clauses))


@pytest.mark.parametrize("seed", SEEDS)
def test_nearest_rows_and_explanations(seed: int) -> None:
    case = Large(seed + 100, contradictory=False)
    every = range(len(case.texts))
    hard = [clause for clauses in case.clauses for clause in clauses]
    rows = np.array([[case.chance.choice([0.0, 1.0, np.nan]) for _ in case.used] for _ in range(4)])
    weights = {name: case.chance.randint(1, 3) for name in case.used}
    text = "\n".join(case.texts)
    review = sp.rules.review(text, dict(zip(case.used, rows.T, strict=True)), weights=weights)
    assert review.data is not None
    broken = {row.row: row for row in review.data.broken}
    for at, row in enumerate(rows):
        values = {name: int(value) for name, value in zip(case.used, row, strict=True) if value == value}
        assert (at in broken) != case.possible(every, case.literals(values))
        soft = [([[case.number(name) * (1 if value else -1)]], weights[name]) for name, value in values.items()]
        if at in broken:
            changes = broken[at].changes
            assert changes is not None
            assert case.possible(every, case.literals({**values, **changes}))
            assert sum(weights[name] for name in changes) == case.fewest(hard, soft)
        given = dict(case.chance.sample([*values.items()], 6))
        found = sp.rules.explain(text, given)
        assert found.is_possible == case.possible(every, case.literals(given))
        ones = [([[case.number(name) * (1 if value else -1)]], 1) for name, value in given.items()]
        assert len(found.changes) == case.fewest(hard, ones)
        if not found.is_possible:
            listing = [str(sp.parse(each)) for each in case.texts]
            because = [listing.index(str(rule)) for rule in found.because]
            assert not case.possible(because, case.literals(found.conflict))
        now = {**given, **found.changes}
        assert {each.label: each.value for each in found.follows} == {
            name: value
            for name in case.used
            if name not in now
            for value in (0, 1)
            if not case.possible(every, [*case.literals(now), *case.literals({name: 1 - value})])
        }


@pytest.mark.parametrize("seed", SEEDS)
def test_compare(seed: int) -> None:
    case = Large(seed + 200, contradictory=False)
    every = [*range(len(case.texts))]
    for _ in range(3):
        first = case.chance.sample(every, len(every) - 2)
        second = case.chance.sample(every, len(every) - 2)
        found = sp.rules.compare(*("\n".join(case.texts[rule] for rule in chosen) for chosen in (first, second)))
        stricter = all(case.implied(rule, first) for rule in second)
        looser = all(case.implied(rule, second) for rule in first)
        words = {(True, True): "equal", (True, False): "stricter", (False, True): "looser"}
        assert found.relation == words.get((stricter, looser), "incomparable")
        for witness, only, other in ((found.only_first, first, second), (found.only_second, second, first)):
            if witness is not None:
                values = case.literals(witness.values)
                assert case.possible(only, values)
                assert not case.possible(other, values)
