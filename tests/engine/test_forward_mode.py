"""Forward-mode derivatives are right where they are offered, and refused elsewhere; they are never dropped."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.func import functional_call, grad, jvp

import semprola as sp
from semprola.engine.backends.library import library
from semprola.errors import SemprolaError

STATE = torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64)
OBSERVED = torch.tensor([[1.0, float("nan"), 1.0]], dtype=torch.float64)
QUERIES: dict[str, Callable[[Any], Tensor]] = {
    "log_prob": lambda p: p.log_prob(STATE).sum(),
    "log_marginal": lambda p: p.log_marginal(OBSERVED).sum(),
    "mean": lambda p: p.mean[0, 1],
    "entropy": lambda p: p.entropy().sum(),
    "log_prob_of": lambda p: p.log_prob_of("a").sum(),
}
ENGINES = [name for name in ("torch", "native") if name == "torch" or library() is not None]


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest) -> Any:
    with sp.engine.using(request.param):
        yield request.param


def setting(kind: type[Any]) -> tuple[Callable[[Callable[[Any], Tensor], Tensor], Tensor], Tensor]:
    """A query as a function of a gate's bias, and a bias of zeros, where layers start."""
    layer = kind(3, "a | b & c").double()
    parameters = {name: torch.zeros_like(value) for name, value in layer.named_parameters()}
    (name,) = (name for name in parameters if name.endswith("bias"))
    features = torch.randn(1, 3, dtype=torch.float64)

    def ask(query: Callable[[Any], Tensor], bias: Tensor) -> Tensor:
        return query(functional_call(layer, {**parameters, name: bias}, (features,)))

    return ask, parameters[name]


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("query", ["log_prob", "log_marginal"])
@pytest.mark.parametrize("kind", [sp.SPL, sp.ProductSPL])
def test_jvp_is_the_gradient(kind: type[Any], query: str) -> None:
    ask, bias = setting(kind)
    expected = grad(lambda b: ask(QUERIES[query], b))(bias)
    assert expected.any()
    for direction, slope in zip(torch.eye(len(bias), dtype=bias.dtype), expected, strict=True):
        _, found = jvp(lambda b: ask(QUERIES[query], b), (bias,), (direction,))
        torch.testing.assert_close(found, slope)


@pytest.mark.usefixtures("engine")
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("kind", [sp.SPL, sp.ProductSPL])
@pytest.mark.parametrize("gradients", [True, False])
def test_dual_numbers_are_refused(kind: type[Any], query: str, gradients: bool) -> None:
    ask, bias = setting(kind)
    with (
        torch.set_grad_enabled(gradients),
        forward_ad.dual_level(),
        pytest.raises((SemprolaError, NotImplementedError), match=r"forward-mode|jvp"),
    ):
        ask(QUERIES[query], forward_ad.make_dual(bias, torch.ones_like(bias)))


@pytest.mark.usefixtures("engine")
def test_a_level_without_tangents_changes_nothing() -> None:
    layer = sp.SPL(3, "a | b & c").double()
    features = torch.randn(1, 3, dtype=torch.float64)
    expected = layer(features).log_prob(STATE)
    with forward_ad.dual_level():
        assert torch.equal(layer(features).log_prob(STATE), expected)
