"""Rows with missing labels: those without a valid completion are listed, with the rules that leave none."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
import torch
import zoo
from selection import spread

import semprola as sp

pytestmark = pytest.mark.usefixtures("each_engine")
NAN = float("nan")
CHAIN = "(cat -> pet) & (pet -> animal) & (dog -> animal)"
SMALL = [case for case in zoo.CASES if not case.large and not case.given and len(case.columns) <= 7]


@pytest.mark.parametrize("case", spread(SMALL, 22), ids=lambda case: case.name)
@pytest.mark.parametrize("kind", ["formula", "circuit", "unknown source"])
def test_the_rows_listed_are_those_without_a_completion(case: zoo.Case, kind: str) -> None:
    states = oracle.all_states(len(case.columns))
    models = states[oracle.allowed(case)]
    hidden = torch.rand(len(states), states.shape[1], generator=torch.Generator().manual_seed(0)) < 0.3
    rows = states.masked_fill(hidden, NAN)
    possible = ((rows[:, None] == models) | rows[:, None].isnan()).all(2).any(1)
    constraint: Any = case.formula if kind == "formula" else case.circuit
    if kind == "unknown source":
        constraint = sp.Circuit(**case.circuit.__getstate__())
    found = sp.violations(constraint, rows, labels=list(case.columns) if kind == "formula" else None)
    assert sorted({violation.row for violation in found}) == torch.nonzero(~possible)[:, 0].tolist()
    for violation in found:  # only what was observed is shown
        row = dict(zip(case.columns, rows[violation.row].tolist(), strict=True))
        assert all(row[name] == value for name, value in violation.values.items())


def test_a_rule_is_broken_if_no_completion_obeys_it() -> None:
    rows = [[1, NAN, NAN, NAN], [1, 0, NAN, NAN], [1, NAN, 0, 1], [NAN, NAN, 0, NAN]]
    expected = [
        "row 1: cat -> pet (cat=1, pet=0)",
        "row 2: dog -> animal (dog=1, animal=0)",
    ]
    for rules in (CHAIN, sp.parse(CHAIN), sp.compile(CHAIN), sp.SPL(2, CHAIN)):
        assert [str(violation) for violation in sp.violations(rules, rows)] == expected


def test_rules_that_leave_no_completion_together() -> None:
    [only] = sp.violations(CHAIN, [1, None, 0, NAN])
    assert only.rule == "(cat -> pet) & (pet -> animal)"
    assert only.values == {"cat": 1, "animal": 0}
    [only] = sp.violations(sp.Circuit(**sp.compile(CHAIN).__getstate__()), np.array([1, NAN, 0, NAN]))
    assert str(only) == "row 0: cat=1 and animal=0 cannot hold together"
    pairs = sp.constraints.hierarchy([(f"l{i}", f"l{i + 1}") for i in range(12)])
    labels = [*pairs.labels, "unused"]
    [only] = sp.violations(pairs, {"l0": [1, 0], "l12": [0, NAN], **dict.fromkeys(labels[1:12], NAN)})
    assert (only.row, only.rule, only.values) == (0, "hierarchy(13 labels, 12 edges)", {"l0": 1, "l12": 0})
    rows = np.full((2, 14), NAN)
    rows[1, [0, 12]] = 1, 0
    assert [violation.row for violation in sp.violations(pairs, rows, labels=labels)] == [1]


def test_rules_without_a_model_break_every_row() -> None:
    assert [str(violation) for violation in sp.violations("a & (a -> b) & !b", [[NAN, NAN], [0, NAN]])] == [
        "row 0: a & (a -> b) & ~b",
        "row 1: a (a=0)",
    ]


def test_inputs_must_be_known() -> None:
    circuit = sp.compile("a <-> x", given=["x"])
    assert sp.violations(circuit, [[NAN]], given=[[1]]) == []
    with pytest.raises(ValueError, match="given must contain only 0 and 1: row 0, label 'x' is nan"):
        sp.violations(circuit, [[1]], given=[[NAN]])
