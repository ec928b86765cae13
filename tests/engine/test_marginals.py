"""The likelihood of partly observed states straight from the logits, beside the value of the weighted circuit."""

from __future__ import annotations

import pytest
import torch
from engine_circuits import CIRCUITS
from torch import Tensor

from semprola.engine import CircuitPlans, Literals, log_softmax, log_value, marginal_likelihood
from semprola.engine.backends.base import Backend
from semprola.engine.backends.torch import TorchBackend

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.fixture(params=CIRCUITS)
def plans(request: pytest.FixtureRequest) -> CircuitPlans:
    torch.manual_seed(1)
    return CIRCUITS[request.param]()


def problem(plans: CircuitPlans, batch: int, components: int = 2, scale: float = 2.0) -> tuple[Tensor, Tensor]:
    plan = plans.layer_explicit
    logits = (scale * torch.randn(plan.num_logits, components, batch, dtype=torch.float64)).requires_grad_()
    observed = torch.randint(0, 2, (plans.circuit.num_labels, batch)).double()
    observed[torch.rand(observed.shape) < 0.6] = torch.nan
    return logits, observed


def by_weights(plans: CircuitPlans, logits: Tensor, observed: Tensor) -> Tensor:
    plan, (_, components, batch) = plans.layer_explicit, logits.shape
    literals = Literals.of(plan, *_scores(observed.repeat(1, components)))
    value = log_value(plan, log_softmax(plan, logits.flatten(1)), literals.leaves) + literals.constant
    return value.view(components, batch)


def _scores(observed: Tensor) -> tuple[Tensor, Tensor]:
    blank = torch.zeros_like(observed)
    return blank.masked_fill(observed == 1, -torch.inf), blank.masked_fill(observed == 0, -torch.inf)


@pytest.mark.parametrize("batch", [0, 1, 5, 16, 70])
def test_values_and_gradients(plans: CircuitPlans, batch: int) -> None:
    logits, observed = problem(plans, batch)
    found = marginal_likelihood(plans.layer_explicit, logits, observed)
    expected = by_weights(plans, logits, observed)
    torch.testing.assert_close(found, expected)
    # impossible evidence has no gradient; the others' are weighted by a cotangent of their own
    weight = torch.randn_like(found).masked_fill(~expected.isfinite(), 0.0)
    finite = [value.masked_fill(~expected.isfinite(), 0.0) for value in (found, expected)]
    slopes = [torch.autograd.grad((value * weight).sum(), logits, retain_graph=True)[0] for value in finite]
    torch.testing.assert_close(*slopes)
    assert bool(slopes[0].isfinite().all())
    again = torch.autograd.grad((finite[0] * weight).sum(), logits)[0]
    torch.testing.assert_close(again, slopes[0])


def test_extreme_logits(plans: CircuitPlans) -> None:
    logits, observed = problem(plans, 9, scale=1e4)
    found = marginal_likelihood(plans.layer_explicit, logits, observed)
    torch.testing.assert_close(found, by_weights(plans, logits, observed))
    (slopes,) = torch.autograd.grad(found.masked_fill(~found.isfinite(), 0.0).sum(), logits)
    assert bool(slopes.isfinite().all())


def test_nothing_is_observed(plans: CircuitPlans) -> None:
    logits, observed = problem(plans, 3)
    found = marginal_likelihood(plans.layer_explicit, logits, torch.full_like(observed, torch.nan))
    torch.testing.assert_close(found, torch.zeros_like(found), atol=1e-12, rtol=0)


def test_gradients_of_gradients(plans: CircuitPlans) -> None:
    logits, observed = problem(plans, 4)
    expected = by_weights(plans, logits, observed)
    possible = expected.isfinite().all(0)
    logits, observed = logits.detach()[..., possible].requires_grad_(), observed[:, possible]
    curvature = []
    for value in (
        marginal_likelihood(plans.layer_explicit, logits, observed),
        by_weights(plans, logits, observed),
    ):
        (slope,) = torch.autograd.grad(value.sum(), logits, create_graph=True)
        curvature.append(torch.autograd.grad(slope.square().sum(), logits)[0])
    torch.testing.assert_close(*curvature)


def test_strides_types_and_threads(plans: CircuitPlans) -> None:
    logits, observed = problem(plans, 40, components=1)
    expected = by_weights(plans, logits, observed)
    turned = logits.detach().permute(2, 1, 0).contiguous().permute(2, 1, 0)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        found = marginal_likelihood(plans.layer_explicit, turned, observed.T.contiguous().T)
        torch.testing.assert_close(found, expected.detach())
        single = marginal_likelihood(plans.layer_explicit, turned.float(), observed.float())
        torch.testing.assert_close(single, expected.detach().float(), rtol=1e-4, atol=1e-4)
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("at_once", [None, 1])
def test_the_short_way_of_the_torch_engine(
    plans: CircuitPlans, dtype: torch.dtype, at_once: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same as by weights, value and flows, in one piece and in chunks, where some rows are impossible."""
    if at_once is not None:
        monkeypatch.setattr("semprola.engine.backends.torch_chunks.columns_at_once", lambda plan, like: at_once)
    plan, generator = plans.layer_explicit, torch.Generator().manual_seed(5)
    logits = 3 * torch.randn((plan.num_logits, 2, 30), dtype=dtype, generator=generator)
    observed = torch.randint(0, 3, (plan.shape.num_variables, 30), generator=generator).to(dtype)
    observed = observed.masked_fill(observed == 2, torch.nan)
    backend = TorchBackend()
    plain = Backend.marginal(backend, plan, logits, observed, gradient=True)
    short = backend.marginal(plan, logits, observed, gradient=True)
    torch.testing.assert_close(short, plain)
    value, nothing = backend.marginal(plan, logits, observed, gradient=False)
    torch.testing.assert_close(value, plain[0])
    assert nothing is None


def test_softmaxes_without_derivatives_are_the_same_numbers(plans: CircuitPlans) -> None:
    plan = plans.layer_explicit
    for scale in (0.0, 1.0, 30.0, 1e4, 1e30):
        logits = scale * torch.randn((plan.num_logits, 9), dtype=torch.float64)
        assert torch.equal(log_softmax(plan, logits, differentiable=False), log_softmax(plan, logits))
