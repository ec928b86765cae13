"""The zoo itself: what it holds, and that every circuit says the same as its formula."""

from __future__ import annotations

import oracle
import pytest
import torch
import zoo
from zoo import Case

every_case = pytest.mark.parametrize("case", zoo.CASES, ids=[case.name for case in zoo.CASES])


def test_there_are_enough_cases_of_every_kind() -> None:
    assert len(zoo.CASES) >= 40
    assert len({case.name for case in zoo.CASES}) == len(zoo.CASES)
    assert any(len(oracle.inputs(case, live=False)) for case in zoo.WITH_INPUTS)


@every_case
def test_small_enough_to_enumerate_and_not_empty(case: Case) -> None:
    assert 1 <= len(case.columns) <= 10
    assert case.large == (len(case.columns) > 6)
    assert oracle.allowed(case, oracle.inputs(case) if case.given else None).any(-1).all()


@every_case
def test_circuit_agrees_with_the_formula(case: Case) -> None:
    names = [*case.columns, *case.given]
    every = oracle.all_states(len(names))
    true = torch.as_tensor(case.formula.evaluate(every, labels=names))
    circuit = case.circuit
    assert circuit.labels == case.columns
    assert circuit.given == case.given
    assert circuit.model_count() == int(true.sum())
    x = every[:, len(case.columns) :] if case.given else None
    assert torch.equal(torch.as_tensor(circuit.satisfied(every[:, : len(case.columns)], given=x)), true)
    models = oracle.state_index(torch.as_tensor(circuit.enumerate()))
    assert sorted(models.tolist()) == true.nonzero().squeeze(-1).tolist()


@every_case
def test_circuit_has_the_properties_that_inference_needs(case: Case) -> None:
    assert case.circuit.is_decomposable
    assert case.circuit.is_deterministic
    assert case.circuit.is_structured or not case.structured


@every_case
def test_conditioning_the_circuit(case: Case) -> None:
    names = [*case.columns, *case.given]
    every = oracle.all_states(len(names))
    true = torch.as_tensor(case.formula.evaluate(every, labels=names))
    name = case.columns[0]
    for value in (0, 1):
        left = int((true & (every[:, 0] == value)).sum())
        if left:
            assert case.circuit.condition({name: value}).model_count() == left
