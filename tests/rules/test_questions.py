"""Contradictions and consequences of rules, compared with truth tables."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from rule_cases import SOLVERS, Case, cases, use_solver

from semprola.compiler import Budget
from semprola.rules.consequences import Consequences
from semprola.rules.contradictions import contradictions
from semprola.rules.listing import listed
from semprola.rules.questions import Questions
from semprola.rules.solving import cheapest, new_solver
from semprola.rules.spelling import similar_names


def asked(case: Case) -> Questions:
    return Questions(listed("\n".join(case.rules)), Budget())


def how_many(solver: str, count: int) -> int:
    """The compiler answers each question anew, so it gets fewer cases."""
    return count if solver == "python-sat" else max(1, count // 8)


@SOLVERS
def test_cheapest(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    chance = random.Random(0)
    for _ in range(how_many(solver, 200)):
        n = chance.randint(3, 6)
        clauses = [
            [chance.choice([-1, 1]) * v for v in chance.sample(range(1, n + 1), chance.randint(1, 3))]
            for _ in range(chance.randint(2, 12))
        ]
        soft = {chance.choice([-1, 1]) * v: chance.randint(1, 3) for v in range(1, n + 1)}
        costs = [
            sum(weight for literal, weight in soft.items() if bits[abs(literal) - 1] != (literal > 0))
            for bits in itertools.product([False, True], repeat=n)
            if all(any(bits[abs(v) - 1] == (v > 0) for v in clause) for clause in clauses)
        ]
        one = new_solver(n, clauses, Budget())
        for _ in range(2):  # it can be asked again
            found = cheapest(one, soft)
            assert (None if found is None else sum(soft[v] for v in found)) == min(costs, default=None)


@SOLVERS
def test_contradictions(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    for case in cases(how_many(solver, 60), seed=1):
        every = range(len(case.rules))
        subsets = [c for k in range(len(every) + 1) for c in itertools.combinations(every, k)]
        minimal: list[tuple[int, ...]] = []
        for subset in subsets:
            if not case.holds(subset).any() and not any({*known} <= {*subset} for known in minimal):
                minimal.append(subset)
        questions = asked(case)
        found = contradictions(questions, most=1000)
        assert ([*map(tuple, found[0])], found[1]) == (minimal, True)
        fewest = min(len(gone) for gone in subsets if case.holds(r for r in every if r not in gone).any())
        gone = questions.fewest_without(every)
        assert len(gone) == fewest
        assert case.holds(r for r in every if r not in gone).any()


@SOLVERS
def test_consequences(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    for case in cases(how_many(solver, 80), seed=2, satisfiable=True):
        questions = asked(case)
        found = Consequences(questions, questions.everything)
        models = {name: case.models[:, i] for i, name in enumerate(case.labels) if name in questions.labels}
        fixed = {name: int(column[0]) for name, column in models.items() if (column == column[0]).all()}
        assert found.forced() == fixed
        names = {name.strip("~"): (i, "~" in name) for i, group in enumerate(found.equal()) for name in group}
        assert not {*names} & {*fixed}
        for first, second in itertools.combinations([name for name in models if name not in fixed], 2):
            agree = models[first] == models[second]
            together = first in names and second in names and names[first][0] == names[second][0]
            assert together == (agree.all() or not agree.any())
            if together:
                assert (names[first][1] == names[second][1]) == agree.all()
        check_redundant(case, questions, found)
        assert found.vacuous() == [rule for rule, allowed in enumerate(case.allowed) if allowed.all()]


def check_redundant(case: Case, questions: Questions, found: Consequences) -> None:
    gone = found.redundant()
    kept = [rule for rule in questions.everything if rule not in gone]
    for rule in questions.everything:
        others = [other for other in kept if other != rule]
        follows = not (case.holds(others) & ~case.allowed[rule]).any()
        assert follows == (rule in gone)
    for rule in gone:
        through = questions.through(rule, kept)
        assert not (case.holds(through) & ~case.allowed[rule]).any()
        for left in through:
            assert (case.holds(other for other in through if other != left) & ~case.allowed[rule]).any()
        alone = [other for other in kept if not (case.allowed[other] & ~case.allowed[rule]).any()]
        assert (found.single(rule, kept) in alone) == bool(alone) or case.allowed[rule].all()


@SOLVERS
def test_fewest_changes(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    chance = random.Random(3)
    for case in cases(how_many(solver, 40), seed=3):
        questions = asked(case)
        row = {name: chance.randint(0, 1) for name in case.labels if chance.random() < 0.7}
        weights = {name: chance.randint(1, 3) for name in row}
        found = questions.fewest_changes(questions.everything, row, weights)
        places = [case.labels.index(name) for name in row]
        costs = (case.models[:, places] != np.array([*row.values()], bool)) @ np.array([*weights.values()], int)
        assert (found is None) == (len(case.models) == 0)
        if found is not None:
            changes, model = found
            assert sum(weights[name] for name in changes) == costs.min()
            assert all(model[name] == changes.get(name, value) for name, value in row.items() if name in model)
            assert case.holds(questions.everything)[
                (case.states == [bool(model.get(name, 0)) for name in case.labels]).all(1)
            ].all()


def test_similar_names() -> None:
    names = ["x1", "x2", "Golden Retriever", "golden_retriever", "retreiver", "retriever", "cats", "cat", "bus", "boss"]
    assert similar_names(names) == [
        ("Golden Retriever", "golden_retriever"),
        ("retreiver", "retriever"),
        ("cats", "cat"),
    ]
    assert not similar_names(["a1000", "b1000"])
    assert not similar_names(["a" * 100_000 + "b", "a" * 100_000 + "c"])  # one key per letter would fill the memory
    assert similar_names(["cat", "c\u0430t", "\ufb01sh", "fish", "dog"]) == [("cat", "c\u0430t"), ("\ufb01sh", "fish")]
