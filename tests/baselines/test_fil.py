"""FIL: independent labels, without a detour through a circuit that allows everything."""

from __future__ import annotations

import pytest
import torch
from torch.nn import functional as F

import semprola as sp
from semprola.baselines import FIL
from semprola.circuit import CircuitBuilder
from semprola.distributions import ProductDistribution


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch", [(), (1,), (7,), (2, 3)])
@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_the_likelihood_is_that_of_sigmoids(
    dtype: torch.dtype, batch: tuple[int, ...], components: int, scale: float
) -> None:
    torch.manual_seed(0)
    circuit = sp.compile("true", labels=["a", "b", "c", "d"])
    logits = (scale * torch.randn(*batch, components, 4, dtype=dtype)).requires_grad_()
    mixing = torch.randn(*batch, components, dtype=dtype)
    for samples in ((), (5,)):
        y = (torch.rand(*samples, *batch, 4) < 0.5).to(dtype)
        p = ProductDistribution(circuit, logits, mixing)
        each = -F.binary_cross_entropy_with_logits(
            logits.expand(*samples, *logits.shape),
            y[..., None, :].expand(*y.shape[:-1], components, 4),
            reduction="none",
        ).sum(-1)
        expected = (each + torch.log_softmax(mixing, -1)).logsumexp(-1)
        found = p.log_prob(y)
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
        slopes = [torch.autograd.grad(value.sum(), logits)[0] for value in (found, expected)]
        torch.testing.assert_close(*slopes, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(p.log_partition, torch.zeros_like(p.log_partition), rtol=0, atol=1e-5)


def test_the_numbers_are_those_of_a_circuit_that_is_no_bare_true() -> None:
    torch.manual_seed(0)
    layer = FIL(5, ["a", "b"])
    builder = CircuitBuilder(["a", "b"])
    rule = builder.build(builder.sum([builder.literal(0, True), builder.literal(0, False)]))
    assert rule.num_nodes == 3
    z = torch.randn(6, 5)
    p, q = layer(z), ProductDistribution(rule, layer(z).logits)
    y = (torch.rand(6, 2) < 0.5).float()
    torch.testing.assert_close(p.log_prob(y), q.log_prob(y))
    torch.testing.assert_close(p.mean, q.mean)
    torch.testing.assert_close(p.entropy(), q.entropy())
    evidence = torch.tensor([1.0, float("nan")]).expand(6, 2)
    torch.testing.assert_close(p.log_marginal(evidence), q.log_marginal(evidence))
    torch.testing.assert_close(p.condition(evidence).log_prob(y), q.condition(evidence).log_prob(y))
    assert bool(p.support.check(y).all())
