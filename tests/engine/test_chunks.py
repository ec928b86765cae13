"""A batch in parts, as memory allows: the same numbers, derivatives and states as in one go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from engine_cases import NAMES, leaves_of, numbers, plans, states
from torch import Tensor

import semprola as sp
from semprola.engine import Plan, active, get_memory, log_value, possible, posterior, set_memory, supported
from semprola.engine.backends.torch_chunks import by_columns, columns_at_once

COLUMNS = 7


@pytest.fixture(autouse=True)
def _torch_engine() -> Iterator[None]:
    before = sp.engine.get_engine()
    sp.engine.set_engine("torch")
    yield
    sp.engine.set_engine(before)
    set_memory(None)


def same(make: Any, plan: Plan) -> None:
    """With all the memory it wants, and with so little that columns come in ones, twos and threes."""
    set_memory(None)
    whole = make()
    for step in (1, 2, 3):
        set_memory(step * cost(plan, 8))
        assert columns_at_once(plan, torch.zeros(1, dtype=torch.float64)) == step
        # the last bits depend on how columns fall into vector registers
        torch.testing.assert_close(make(), whole, rtol=1e-10, atol=1e-10)


def cost(plan: Plan, size: int) -> int:
    """Bytes that one column takes."""
    largest = max(b.sums * b.fan_in for b in plan.on(torch.device("cpu")).steps)
    return size * (plan.num_rows + 2 * plan.num_edges + 4 * largest)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("units", [1, 2])
def test_values_and_derivatives(name: str, units: int) -> None:
    plan = plans(name, units).layer
    weights, leaves = (t.requires_grad_() for t in numbers(plan, COLUMNS))

    def make() -> tuple[Tensor, ...]:
        value = log_value(plan, weights, leaves)
        slopes = torch.autograd.grad(value.square().sum(), (weights, leaves), create_graph=True)
        curvatures = torch.autograd.grad(sum(s.square().sum() for s in slopes), (weights, leaves))
        alone = log_value(plan, None, leaves)
        with torch.no_grad():
            quick = log_value(plan, weights, leaves)
        return value, *slopes, *curvatures, alone, quick, *posterior(plan, weights, leaves)

    same(make, plan)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_possible(name: str) -> None:
    plan = plans(name).layer_explicit
    leaves = leaves_of(states(plan))
    same(lambda: (*active(plan, leaves), *possible(plan, leaves), supported(plan, leaves)), plan)


@pytest.mark.parametrize("units", [1, 2])
def test_states(units: int) -> None:
    layer = sp.SPL(3, sp.constraints.cardinality(list("abcdef"), exactly=2), replicas=2, units=units).double()
    z = torch.randn((COLUMNS, 3), dtype=torch.float64, generator=torch.Generator().manual_seed(1))

    def make() -> tuple[Tensor, ...]:
        p = layer(z)
        return p.mode, p.decode("hamming"), p.decode("greedy"), p.mean, p.log_prob(p.mode), *p.top_k(3)

    same(make, layer.plans.layer)


def test_samples_are_of_the_right_columns() -> None:
    """Labels that are all but certain: a sample that came from another column would show."""
    circuit = sp.compile(sp.one_hot(list("abcdefg")))
    odds = 50.0 * torch.eye(7, dtype=torch.float64)[:, None] - 25.0
    p = sp.distributions.ProductDistribution(circuit, odds)
    for size in (None, 1, 2000):
        set_memory(size)
        drawn = p.sample((40,))
        assert torch.equal(drawn, torch.eye(7, dtype=torch.float64).expand(40, 7, 7))


def test_no_more_columns_at_once_than_asked_for() -> None:
    plan = plans("exactly_two_of_five").layer
    seen: list[int] = []

    def look(leaves: Tensor, nothing: Tensor | None) -> Tensor:
        assert nothing is None
        seen.append(leaves.shape[1])
        return leaves[0]

    leaves = torch.arange(10.0).expand(plan.num_leaves, -1)
    set_memory(4 * cost(plan, 4))
    assert torch.equal(by_columns(plan, look, leaves, None), leaves[0])
    assert seen == [4, 4, 2]
    assert by_columns(plan, look, leaves[:, :0], None).shape == (0,)


@pytest.mark.parametrize("size", [0, -1, 1.5, True, "1 GB"])
def test_bad_sizes(size: Any) -> None:
    with pytest.raises(ValueError, match="positive whole number of bytes"):
        set_memory(size)
    assert get_memory() == 2**30
