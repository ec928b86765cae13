"""Gates of sums with two edges, and native gradients asked for more than once."""

from __future__ import annotations

import pytest
import torch

import semprola as sp
from semprola.engine import is_binary
from semprola.engine.backends.library import library

needs_native = pytest.mark.skipif(library() is None, reason="semprola was built without its native module")
TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("f", "c")]


@needs_native
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3), (0,), (130,)])
def test_pairs_of_edges(dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    """One logit for each sum of two edges; both engines give the same values and gradients."""
    layer = sp.SPL(4, sp.constraints.hierarchy(TREE), gate=(5,)).to(dtype)
    assert layer.plans.layer.num_logits == layer.plans.layer.num_weights // 2
    z = torch.randn(*shape, 4, dtype=dtype, requires_grad=True)
    y = layer(z).sample()
    if y.numel():
        y.view(-1, y.shape[-1])[0] = torch.tensor([0.0, 1.0, 0.0, 0.0, 0.0, 0.0])  # b without a
    results = []
    for engine in ("torch", "native"):
        sp.engine.set_engine(engine)
        try:
            log_prob = layer(z).log_prob(y)
            loss = (log_prob.exp() * torch.arange(1, 1 + log_prob.numel()).view(log_prob.shape)).sum()
            results.append((log_prob, *torch.autograd.grad(loss, [z, *layer.parameters()])))
        finally:
            sp.engine.set_engine("auto")
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])


@needs_native
def test_gradients_twice_and_of_gradients() -> None:
    layer = sp.SPL(3, sp.constraints.hierarchy(TREE)).double()
    z = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    y = layer(z).sample()
    loss = layer(z).log_prob(y).square().sum()
    first = torch.autograd.grad(loss, [z, *layer.parameters()], retain_graph=True)
    kept = [gradient.clone() for gradient in first]
    for gradient in first:
        gradient.zero_()  # what was handed out belongs to the caller
    torch.testing.assert_close(list(torch.autograd.grad(loss, [z, *layer.parameters()])), kept)
    assert torch.autograd.gradgradcheck(lambda z: layer(z).log_prob(y), z)


@needs_native
def test_frozen_gate_and_frozen_features() -> None:
    layer = sp.SPL(3, sp.constraints.hierarchy(TREE))
    z = torch.randn(5, 3)
    y = layer(z).sample()
    layer(z).log_prob(y).sum().backward()
    assert layer.gate.output.weight.grad is not None
    layer.requires_grad_(False)
    features = z.clone().requires_grad_()
    layer(features).log_prob(y).sum().backward()
    assert features.grad is not None
    assert bool(features.grad.isfinite().all())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64, torch.uint8])
def test_is_binary(dtype: torch.dtype) -> None:
    rows = torch.randint(0, 2, (40, 70)).to(dtype)
    assert is_binary(rows)
    assert is_binary(rows[:, ::2])
    assert is_binary(rows.T)
    assert is_binary(rows[:1].expand(3, -1))
    for wrong in (2, float("nan")) if dtype.is_floating_point else (2,):
        bad = rows.unflatten(0, (-1, 1)).clone().permute(2, 0, 1)
        assert is_binary(bad)
        bad[-1, -1, -1] = wrong
        assert not is_binary(bad)
    assert is_binary(rows[:0])
    rows[39, 69] = 2
    assert not is_binary(rows)
    if dtype.is_floating_point:
        rows[39, 69] = torch.nan
        assert not is_binary(rows)


@needs_native
@pytest.mark.parametrize("replicas", [1, 2])
def test_autocast(replicas: int) -> None:
    """Half-precision gates work, and close to what single precision gives."""
    layer = sp.SPL(4, sp.constraints.hierarchy(TREE), replicas=replicas)
    product = sp.ProductSPL(4, sp.constraints.hierarchy(TREE), mixtures=replicas)
    z = torch.randn(9, 4)
    y = layer(z).sample()
    for each in (layer, product):
        exact = each(z).log_prob(y)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            p = each(z)
            rough = p.log_prob(y)
            rough.sum().backward()
            assert bool(each.circuit.satisfied(p.mode).all())
            assert bool(each.circuit.satisfied(p.sample()).all())
        torch.testing.assert_close(rough, exact, atol=0.2, rtol=0.05)
