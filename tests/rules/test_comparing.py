"""Comparisons and explanations, compared with truth tables."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from rule_cases import SOLVERS, cases, made, use_solver

import semprola as sp
from semprola.errors import LabelError, UnsatisfiableError


@SOLVERS
def test_compare(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    chance = random.Random(0)
    seen = set()
    for case in cases(60 if solver == "python-sat" else 6, seed=5, satisfiable=True):
        half = case.rules[: chance.randint(1, len(case.rules))]
        other = chance.choice([case.rules, chance.sample(case.rules, len(half)), case.rules[-1:]])
        found = sp.rules.compare("\n".join(half), "\n".join(other))
        names = "".join(sorted({name for rule in (*half, *other) for name in sp.parse(rule).labels}))
        first, second = (made(rules, names) for rules in (half, other))
        a, b = (table.allowed.all(0) for table in (first, second))
        assert (
            found.relation
            == {(0, 0): "equal", (0, 1): "stricter", (1, 0): "looser", (1, 1): "incomparable"}[
                int((a & ~b).any()), int((b & ~a).any())
            ]
        )
        seen.add(found.relation)
        assert found.models == (a.sum(), b.sum())
        assert found.ratio == Fraction(int(a.sum()), int(b.sum()))
        for witness, only, table in ((found.only_first, a & ~b, second), (found.only_second, b & ~a, first)):
            assert (witness is None) == (not only.any())
            if witness is not None:
                at = (table.states == [bool(witness.values[name]) for name in names]).all(1)
                assert only[at].all()
                assert sum(witness.values.values()) == table.states[only].sum(1).min()
                assert len(witness.breaks) == (~table.allowed[:, at]).sum()
    assert len(seen) == (4 if solver == "python-sat" else 3)


def test_compare_over_different_labels() -> None:
    found = sp.rules.compare("a -> b", "a -> b\nc -> a")
    assert (found.relation, found.models, found.labels_of_second) == ("looser", (6, 4 + 0), ("c",))
    assert found.only_first is not None
    assert found.only_first.values == {"a": 0, "b": 0, "c": 1}
    assert "only the second mention: c" in str(found)
    n = sp.Integer("n", 0, 3)
    assert sp.rules.compare(n >= 1, n != 0).relation == "equal"


@SOLVERS
def test_explain(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    use_solver(solver, monkeypatch)
    chance = random.Random(1)
    for case in cases(50 if solver == "python-sat" else 6, seed=6, satisfiable=True):
        used = sp.parse("\n".join(case.rules)).labels
        values = {name: chance.randint(0, 1) for name in used if chance.random() < 0.5}
        found = sp.rules.explain("\n".join(case.rules), {**values, used[0]: values.get(used[0], math.nan)})

        def fits(known: dict[str, int], rules: range | list[int], case: object = case) -> np.ndarray:
            places = [case.labels.index(name) for name in known]  # type: ignore[attr-defined]
            states = case.states[case.holds(rules)]  # type: ignore[attr-defined]
            return states[(states[:, places] == np.array([*known.values()], bool)).all(1)]

        every = range(len(case.rules))
        assert found.is_possible == bool(len(fits(values, every)))
        if not found.is_possible:
            because = [number(case.rules, str(rule)) for rule in found.because]
            assert not len(fits(found.conflict, because))
            assert found.conflict.items() <= values.items()
            for left in because:
                assert len(fits(values, [rule for rule in because if rule != left]))
        changed = {**values, **found.changes}
        models = fits(changed, every)
        assert {each.label for each in found.follows} == {
            name for name in used if name not in values and len(np.unique(models[:, case.labels.index(name)])) == 1
        }
        for each in found.follows:
            by = [number(case.rules, str(rule)) for rule in each.by]
            assert not len(fits({**each.given, each.label: 1 - each.value}, by))


def number(rules: list[str], text: str) -> int:
    return [str(sp.parse(rule)) for rule in rules].index(text)


def test_explain_refuses_what_it_cannot_read() -> None:
    with pytest.raises(LabelError, match="'dog' is not a label of the rules"):
        sp.rules.explain("cat -> animal", {"dog": 1})
    with pytest.raises(ValueError, match="label 'cat' must be 0 or 1, not 2"):
        sp.rules.explain("cat -> animal", {"cat": 2})
    with pytest.raises(UnsatisfiableError, match="no model at all"):
        sp.rules.explain("cat & ~cat", {"cat": 1})


def test_two_values_of_one_variable_are_named_as_labels() -> None:
    found = sp.rules.explain("variable n: 0..5\nn <= 3 -> a", {"n=2": 1, "n=3": 1})
    assert str(found).splitlines()[:2] == [
        '"n=2"=1, "n=3"=1: impossible',
        'because of "n=2"=1, "n=3"=1 and one value per variable',
    ]


def test_many_models_are_told_in_a_few_digits() -> None:
    found = replace(sp.rules.compare("a", "b"), models=(2**20000, 10))
    assert "label vectors: about 3.98e+6020 and 10" in str(found)
    assert "about 3.98e+6020" in str(found._repr_html_())
