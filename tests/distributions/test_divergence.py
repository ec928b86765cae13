"""KL divergence where the supports differ: by evidence, or by given variables."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from torch.distributions import kl_divergence

import semprola as sp

RULES = "(cat -> animal) & (dog -> animal)"


def brute(p: Any, q: Any, labels: int = 3) -> float:
    """KL(p || q) of one row, by listing all label vectors."""
    total = 0.0
    for values in itertools.product([0.0, 1.0], repeat=labels):
        of_p, of_q = (float(d.log_prob(torch.tensor(values)).detach().squeeze()) for d in (p, q))
        total += 0.0 if of_p == -math.inf else math.exp(of_p) * (of_p - of_q)
    return total


@pytest.mark.parametrize("score", [-12.0, -30.0, -300.0, 2.0])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("components", [1, 2])
def test_it_is_infinite_where_q_excludes_something_however_improbable(
    score: float, dtype: torch.dtype, components: int
) -> None:
    one = sp.constrain(torch.tensor([score, 0, 0], dtype=dtype), RULES)
    p = one if components == 1 else sp.distributions.mixture([one] * components)
    assert kl_divergence(p, p.condition({"cat": 0})) == math.inf
    assert kl_divergence(p, p.condition({"cat": 0, "dog": 0})) == math.inf
    assert kl_divergence(p.condition({"cat": 1}), p.condition({"cat": 0})) == math.inf
    assert kl_divergence(p.condition({"cat": 0}), p) >= -1e-5
    torch.testing.assert_close(
        kl_divergence(p.condition({"cat": 1}), p.condition({"animal": 1})).double(),
        torch.tensor(brute(p.condition({"cat": 1}), p.condition({"animal": 1})), dtype=torch.float64),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("components", [1, 2])
def test_a_row_without_a_finite_value_spoils_no_gradient(components: int) -> None:
    logits = torch.zeros(2, components, 3, requires_grad=True)
    parts = [sp.constrain(logits[:, i], RULES) for i in range(components)]
    p = parts[0] if components == 1 else sp.distributions.mixture(parts)
    q = sp.constrain(torch.zeros(2, 3), RULES).condition(torch.tensor([[math.nan] * 3, [1.0, math.nan, math.nan]]))
    found = kl_divergence(p, q)
    assert found.isfinite().tolist() == [True, False]
    found[found.isfinite()].sum().backward()
    assert logits.grad is not None
    assert logits.grad.isfinite().all()


@pytest.mark.parametrize("make", [sp.SPL, sp.ProductSPL])
def test_given_variables_may_differ(make: Any) -> None:
    torch.manual_seed(0)
    layer = make(4, sp.compile("(night -> ~a) & (a | b | c)", given=["night"])).double()
    z = torch.randn(1, 4, dtype=torch.float64)
    day, night = (layer(z, given=torch.tensor([[value]])) for value in (0.0, 1.0))
    assert kl_divergence(day, night) == math.inf
    assert float(kl_divergence(night, day).detach()) == pytest.approx(brute(night, day))
    assert float(kl_divergence(night, night).detach()) == pytest.approx(0)


def test_given_variables_that_differ_need_a_support_that_can_be_listed() -> None:
    free = " & ".join(f"(x{i} | y{i})" for i in range(12))
    layer = sp.ProductSPL(4, sp.compile(f"(night -> ~a) & (a | b) & {free}", given=["night"]))
    day, night = (layer(torch.zeros(1, 4), given=torch.tensor([[value]])) for value in (0.0, 1.0))
    with pytest.raises(sp.errors.IntractableError, match="kl_divergence"):
        kl_divergence(night, day)
    assert kl_divergence(night, night).isfinite()
