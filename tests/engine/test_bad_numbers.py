"""Features that are not numbers are refused, naming the rows; huge ones give the same answers on every engine."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import nn

import semprola as sp

pytestmark = pytest.mark.usefixtures("each_engine")

TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("f", "c")]


def tree() -> object:
    return sp.constraints.hierarchy(TREE)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "single": lambda: sp.SPL(4, tree()),
    "components": lambda: sp.SPL(4, tree(), components=2),
    "units": lambda: sp.SPL(4, tree(), units=2),
    "product": lambda: sp.ProductSPL(4, tree()),
    "mixture": lambda: sp.ProductSPL(4, tree(), components=2),
    "suppressed": lambda: sp.ProductSPL(4, sp.constraints.permutation(3), components=2),
    "hmm": lambda: sp.ProductSPL(4, tree(), q="hmm", units=2),
    "vtree": lambda: sp.ProductSPL(4, tree(), q="vtree", units=2, components=2),
}


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
@pytest.mark.parametrize("name", LAYERS)
def test_features_that_are_not_finite(name: str, bad: float) -> None:
    layer = LAYERS[name]()
    z = torch.randn(6, 4)
    z[2, 1] = z[4, 0] = bad
    with pytest.raises(ValueError, match=r"must be finite: found NaN or infinite values in rows 2, 4$"):
        layer(z)
    stacked = torch.randn(2, 3, 4)
    stacked[1, 2, 3] = bad
    with pytest.raises(ValueError, match=r"in row \(1, 2\)$"):
        layer(stacked)
    layer(z[:2])


def test_large_numbers_whose_sum_is_infinite_are_fine() -> None:
    layer = sp.SPL(4, tree())
    logits = torch.full((2, layer.plans.layer.num_logits), 3e38)
    p = sp.distributions.SPLDistribution(layer.circuit, logits)
    torch.testing.assert_close(p.log_prob(p.mode), torch.zeros(2))


@pytest.mark.parametrize("name", LAYERS)
def test_the_meta_device_has_no_numbers(name: str) -> None:
    layer = LAYERS[name]().to("meta")
    with pytest.raises(ValueError, match="meta device have no values"):
        layer(torch.zeros(2, 4, device="meta"))


@pytest.mark.parametrize("scale", [1e4, 1e8, 1e12, 1e20, 1e30])
@pytest.mark.parametrize("name", LAYERS)
def test_features_of_any_size_give_a_distribution(name: str, scale: float) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name]()
    z = (scale * torch.randn(5, 4)).requires_grad_()
    p = layer(z)
    total = p.log_prob(p.enumerate_support()).exp().sum(0)
    (slope,) = torch.autograd.grad(p.log_prob(p.mode).sum(), z)
    assert bool(slope.isfinite().all())
    torch.testing.assert_close(total, torch.ones_like(total), rtol=0, atol=1e-3)
    torch.testing.assert_close(p.mean, p.mode, rtol=0, atol=1e-3)
