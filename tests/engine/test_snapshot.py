"""A distribution is a value: its answers are fixed when the layer is called, and all goes through `forward`."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import nullcontext

import pytest
import torch
from selection import spread
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune

import semprola as sp
from semprola.nn.gate import split_outputs

pytestmark = pytest.mark.usefixtures("each_engine")

TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("f", "c")]


def tree() -> object:
    return sp.constraints.hierarchy(TREE)


LAYERS: dict[str, Callable[[], nn.Module]] = {
    "tree": lambda: sp.SPL(4, tree()),
    "replicas": lambda: sp.SPL(4, tree(), replicas=2, gate=(5,)),
    "large": lambda: sp.SPL(4, sp.constraints.permutation(7)),
    "mixed fan-ins": lambda: sp.SPL(4, "(a | b | c) & (d -> a) & (a ^ e ^ f)", replicas=2),
    "units": lambda: sp.SPL(4, tree(), units=2),
    "product": lambda: sp.ProductSPL(4, tree()),
    "mixtures": lambda: sp.ProductSPL(4, tree(), mixtures=2, gate=(5,)),
    "hmm": lambda: sp.ProductSPL(4, tree(), mixtures=2, q="hmm"),
}
FIRST: dict[str, Callable[[sp.distributions.SPLDistribution, Tensor], object]] = {
    "nothing": lambda p, y: None,
    "log_prob": lambda p, y: p.log_prob(y),
    "mode": lambda p, y: p.mode,
    "mean": lambda p, y: p.mean,
}


@pytest.fixture(params=LAYERS)
def layer(request: pytest.FixtureRequest) -> nn.Module:
    made = LAYERS[request.param]().double()
    nn.init.normal_(made.gate.output.weight)
    return made


def answers(p: sp.distributions.SPLDistribution, y: Tensor) -> list[Tensor]:
    """Every kind of query; the samples are drawn from the same seed."""
    samples = p.sample((3,), generator=torch.Generator().manual_seed(1))
    states, log_probs = p.top_k(3)
    found = [p.log_prob(y), p.mean, p.mode, samples, states, log_probs, p.log_partition, p.decode("hamming")]
    return [part.detach().clone() for part in found]


@pytest.mark.parametrize(("layer", "first"), spread(itertools.product(LAYERS, FIRST), 14), indirect=["layer"])
def test_an_optimiser_step_changes_nothing(layer: nn.Module, first: str) -> None:
    z = torch.randn(3, 4, dtype=torch.float64)
    y = layer(z).sample()
    expected = answers(layer(z), y)
    p = layer(z)
    FIRST[first](p, y)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter))
    torch.testing.assert_close(answers(p, y), expected, rtol=1e-12, atol=1e-12)
    assert not torch.allclose(layer(z).log_prob(y), expected[0])


@pytest.mark.parametrize(("layer", "first"), spread(itertools.product(LAYERS, FIRST), 14, 1), indirect=["layer"])
def test_new_features_in_the_same_memory_change_nothing(layer: nn.Module, first: str) -> None:
    z = torch.randn(3, 4, dtype=torch.float64)
    y = layer(z).sample()
    expected = answers(layer(z), y)
    p = layer(z)
    FIRST[first](p, y)
    z.add_(1.0)
    torch.testing.assert_close(answers(p, y), expected, rtol=1e-12, atol=1e-12)


SHARING: dict[str, Callable[[], nn.Module]] = {
    "tree": lambda: sp.SPL(5, tree(), gate=nn.Identity()),
    "replicas": lambda: sp.SPL(12, tree(), replicas=2, gate=nn.Identity()),
    "product": lambda: sp.ProductSPL(6, tree(), gate=nn.Identity()),
    "mixtures": lambda: sp.ProductSPL(14, tree(), mixtures=2, gate=nn.Identity()),
    "hmm": lambda: sp.ProductSPL(22, tree(), q="hmm", gate=nn.Identity()),
    "view": lambda: sp.SPL(5, tree(), gate=nn.Flatten(0, 0)),
    "no parameters": lambda: sp.ConstraintLayer(tree()),
}


@pytest.mark.parametrize(("kind", "first"), spread(itertools.product(SHARING, FIRST), 12))
def test_a_gate_that_gives_its_input_shares_no_memory_with_it(kind: str, first: str) -> None:
    layer = SHARING[kind]()
    width = getattr(layer, "num_gate_outputs", 6)
    layer.in_features = width
    z = torch.randn(3, width, dtype=torch.float64)
    y = layer(z).sample()
    expected = answers(layer(z), y)
    p = layer(z)
    FIRST[first](p, y)
    z.add_(torch.randn_like(z))
    torch.testing.assert_close(answers(p, y), expected, rtol=1e-12, atol=1e-12)


def test_gradients_are_never_those_of_later_values(layer: nn.Module) -> None:
    """Either those of the values at the call, or torch's error about a change in place."""
    z = torch.randn(3, 4, dtype=torch.float64)
    y = layer(z).sample()
    wanted = torch.autograd.grad(layer(z).log_prob(y).sum(), list(layer.parameters()), allow_unused=True)
    p = layer(z)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter))
    # the gradient of a linear gate needs the features alone
    linear = len(layer.gate.hidden) == 0
    with nullcontext() if linear else pytest.raises(RuntimeError, match="modified by an inplace operation"):
        found = torch.autograd.grad(p.log_prob(y).sum(), list(layer.parameters()), allow_unused=True)
        torch.testing.assert_close(found, wanted)
    features = z.clone()
    p = layer(features)
    features.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        p.log_prob(y).sum().backward()


def test_pruned_weights_count(layer: nn.Module) -> None:
    z = torch.randn(3, 4, dtype=torch.float64)
    y = layer(z).sample()
    prune.l1_unstructured(layer.gate.output, "weight", amount=1.0)
    nothing = layer(torch.zeros_like(z)).log_prob(y)
    if len(layer.gate.hidden) == 0:
        torch.testing.assert_close(layer(z).log_prob(y), nothing)
    layer(z).log_prob(y).sum().backward()
    assert layer.gate.output.bias.grad is not None
    assert layer.gate.output.weight_orig.grad.abs().max() == 0


def test_weight_norm(layer: nn.Module) -> None:
    z = torch.randn(3, 4, dtype=torch.float64)
    y = layer(z).sample()
    before = layer(z).log_prob(y)
    parametrizations.weight_norm(layer.gate.output)
    torch.testing.assert_close(layer(z).log_prob(y), before)
    scale = layer.gate.output.parametrizations.weight.original0
    layer(z).log_prob(y).sum().backward()
    assert scale.grad is not None
    with torch.no_grad():
        scale.mul_(2.0)
    assert not torch.allclose(layer(z).log_prob(y), before)


def test_hooks_fire(layer: nn.Module) -> None:
    """A temperature on the gate, or on its last layer, has the effect that it says."""
    z = torch.randn(3, 4, dtype=torch.float64)
    y = layer(z).sample()
    parameters, mixing = split_outputs(layer.gate(z), layer.components, layer.num_parameters)
    cold = None if mixing is None else mixing / 2
    kind = type(layer(z))
    expected = kind(layer.plans, parameters / 2, cold).log_prob(y)
    whole = layer.gate.register_forward_hook(lambda _, __, out: out / 2)
    torch.testing.assert_close(layer(z).log_prob(y), expected)
    whole.remove()
    last = layer.gate.output.register_forward_hook(lambda _, __, out: (out / 2).contiguous())
    torch.testing.assert_close(layer(z).log_prob(y), expected)
    last.remove()
    assert not torch.allclose(layer(z).log_prob(y), expected)


def test_the_gate_ends_in_a_linear_layer(layer: nn.Module) -> None:
    assert isinstance(layer.gate.output, nn.Linear)
    features = torch.randn(3, layer.gate.output.in_features, dtype=torch.float64)
    plain = nn.functional.linear(features, layer.gate.output.weight, layer.gate.output.bias)
    torch.testing.assert_close(layer.gate.output(features), plain)


def test_a_sum_of_two_branches_has_one_logit() -> None:
    circuit = sp.compile(tree())
    layer = sp.SPL(4, circuit)
    plan = layer.plans.layer
    assert layer.gate.output.out_features == plan.num_logits == plan.num_weights // 2
    count = circuit.model_count()
    torch.testing.assert_close(layer(torch.zeros(4)).entropy().exp().item(), float(count), rtol=1e-4, atol=0)
