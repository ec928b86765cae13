"""The layout of plans."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from engine_cases import NAMES, plans

import semprola as sp
from semprola.engine import CircuitPlans, Plan


def all_plans(name: str) -> list[Plan]:
    one, two = plans(name), plans(name, units=2)
    return [one.constraint, one.layer, one.layer_explicit, one.layer_explicit.binary[0], two.layer, two.bound[0]]


@pytest.mark.parametrize("name", NAMES)
def test_steps_cover_rows_and_edges_once_and_lie_above_their_factors(name: str) -> None:
    for plan in all_plans(name):
        steps = plan.on(torch.device("cpu")).steps
        rows = np.concatenate([np.arange(b.rows.start, b.rows.stop) for b in steps])
        assert rows.tolist() == list(range(plan.num_leaves, plan.num_rows))
        edges = np.sort(np.concatenate([np.arange(b.edges.start, b.edges.stop) for b in steps]))
        assert edges.tolist() == list(range(plan.num_edges))
        for step in steps:
            assert step.edges.stop - step.edges.start == step.sums * step.fan_in
            assert len(step.factors) == 0 or int(step.factors.max()) < step.rows.start


@pytest.mark.parametrize("name", NAMES)
def test_weights_are_the_edges_of_sums_with_a_choice(name: str) -> None:
    for plan in all_plans(name):
        fan_in = np.diff(plan.shape.edge_start)
        assert plan.num_fixed == (0 if plan.weigh_all else int((fan_in == 1).sum()))
        assert sum(sums * size for _, sums, size in plan.blocks) == plan.num_weights
        assert (plan.edge_position[plan.edge_order] == np.arange(plan.num_edges)).all()


@pytest.mark.parametrize("name", NAMES)
def test_spelling_out_zeros_keeps_the_weights(name: str) -> None:
    one = plans(name)
    assert one.layer.num_weights == one.layer_explicit.num_weights
    assert one.layer.blocks == one.layer_explicit.blocks


def test_a_plan_is_found_by_its_handle_as_long_as_one_like_it_lives() -> None:
    # no other test has a plan like this one
    rows = [[int(bit) for bit in f"{number:09b}"] for number in (3, 77, 130, 211, 299, 303, 404, 511)]
    plan = Plan(CircuitPlans(sp.compile(sp.constraints.table(rows, labels=list("abcdefghi")))).layer.shape)
    handle = plan.handle
    assert Plan.of(handle) is plan
    again = Plan(plan.shape)
    assert again.handle == handle
    assert Plan.of(handle) is plan
    del plan
    assert Plan.of(handle).handle == handle
    del again
    with pytest.raises(sp.SemprolaError, match="build the layer"):
        Plan.of(handle)


def test_plans_that_differ_have_other_handles() -> None:
    every = [plan for name in NAMES for plan in all_plans(name)]
    shapes = {(*map(bytes, (p.shape.factors, p.shape.edge_start, p._choice)), p.weigh_all) for p in every}
    assert len({plan.handle for plan in every}) >= len(shapes)


def test_plans_with_the_same_number_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A number that is made from the contents is not proof that they are the same."""
    digest = Plan._digest
    monkeypatch.setattr(Plan, "_digest", lambda self, salt: 7 + salt)
    one, other, again = (Plan(plans(name).layer.shape) for name in ("nested_choice", "free_labels", "nested_choice"))
    assert one.handle == again.handle != other.handle
    assert Plan.of(one.handle) is one
    assert Plan.of(other.handle) is other
    monkeypatch.setattr(Plan, "_digest", digest)
    assert Plan(one.shape).handle not in (one.handle, other.handle)
