"""Derivatives of SequenceSPL: exact, finite at the edge of the support, the same on every path of the computation."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import torch
from selection import spread
from sequence_oracle import RULES, make
from torch import Tensor

import semprola as sp
from semprola.sequences.chains import passes, sweeps


@pytest.mark.parametrize(("rules", "transitions"), spread(itertools.product(RULES, [True, False]), 5))
def test_derivatives(rules: str, transitions: bool) -> None:
    layer = make(rules, transitions)
    logits = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    names = [name for name, _ in layer.named_parameters()]
    y = layer(logits, [4, 3]).mode

    def queries(logits: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        given = dict(zip(names, weights, strict=True))
        p = torch.func.functional_call(layer, given, (logits, torch.tensor([4, 3])))
        return p.log_prob(y), p.log_partition, p.log_marginal(y.masked_fill(y == y[0, 0], -1))

    weights = tuple(layer.parameters())
    assert torch.autograd.gradcheck(queries, (logits, *weights))
    assert torch.autograd.gradgradcheck(queries, (logits, *weights))

    def further(logits: Tensor) -> tuple[Tensor, Tensor]:
        p = layer(logits, [4, 3])
        return p.mean, p.entropy()

    assert torch.autograd.gradcheck(further, (logits,))


@pytest.mark.parametrize("rules", RULES)
def test_nothing_is_lost_at_the_edge_of_the_support(rules: str) -> None:
    layer = make(rules)
    logits = torch.randn(3, 4, 3, dtype=torch.float64, requires_grad=True)
    impossible = torch.tensor([[1, 1, 1, 1]] * 3)
    for query in ("log_prob", "log_marginal"):
        for y in (impossible, layer(logits).mode):
            layer.zero_grad()
            logits.grad = None
            getattr(layer(logits), query)(y).sum().backward()
            assert logits.grad is not None
            assert torch.isfinite(logits.grad).all()
            assert all(w.grad is not None and torch.isfinite(w.grad).all() for w in layer.parameters())
    p = layer(logits).condition({0: "B"})
    (p.entropy().sum() + p.mean.square().sum() + p.log_prob(p.mode).sum()).backward()
    assert torch.isfinite(logits.grad).all()  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [30.0, 200.0, 1e4])
@pytest.mark.parametrize("rules", RULES)
def test_logits_far_apart(rules: str, scale: float) -> None:
    """What the rules force has probability one, however much the logits are against it."""
    layer = make(rules, dtype=torch.float32)
    wide = make(rules, dtype=torch.float64)
    wide.load_state_dict(layer.state_dict())
    logits = (scale * torch.randn(8, 6, 3)).requires_grad_()
    lengths = torch.tensor([6, 5, 4, 3, 2, 1, 6, 5])
    p, exact = layer(logits, lengths), wide(logits.double(), lengths)
    y = p.mode
    assert torch.equal(y, exact.mode)
    torch.testing.assert_close(p.log_prob(y).double(), exact.log_prob(y), rtol=1e-4, atol=1e-3 + 1e-6 * scale)
    p.log_prob(p.sample()).sum().backward()
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    total = p.mean.sum(-1)
    torch.testing.assert_close(total, p.mask.float(), rtol=0, atol=1e-3 + 1e-6 * scale)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("rules", ["none", "bio"])
@pytest.mark.parametrize("lengths", [None, [7, 1, 5, 9, 9]])
def test_linear_space_gives_the_same(
    rules: str, lengths: Any, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    layer = make(rules, dtype=dtype)
    logits = (3 * torch.randn(5, 9, 3, dtype=dtype)).requires_grad_()
    y = layer(logits, lengths).sample()
    assert sweeps.sweep(layer(logits, lengths).trellis) is not None

    def answers() -> list[Tensor]:
        layer.zero_grad()
        logits.grad = None
        value = layer(logits, lengths).log_prob(y)
        (value * torch.arange(1, 6)).sum().backward()
        gradients = [logits.grad, *(w.grad for w in layer.parameters())]
        return [value.detach(), *(g.clone() for g in gradients if g is not None)]

    fast = answers()
    monkeypatch.setattr(passes, "sweep", lambda trellis: None)
    assert len(fast) == 5
    for one, other in zip(fast, answers(), strict=True):
        torch.testing.assert_close(one, other, **({} if dtype == torch.float64 else {"rtol": 1e-4, "atol": 1e-5}))


def test_linear_space_is_left_where_it_would_lose() -> None:
    layer = make("bio", dtype=torch.float32)
    logits = torch.zeros(1, 5, 3)
    logits[0, 2, 1] = 150.0
    assert sweeps.sweep(layer(logits).trellis) is None
    assert sweeps.sweep(layer(logits / 10).trellis) is not None
    assert sweeps.sweep(make("in turn")(torch.zeros(5, 3, dtype=torch.float64)).trellis) is None
    assert sweeps.sweep(layer(logits / 10).condition({0: "B"}).trellis) is None


class TestTransforms:
    @pytest.mark.parametrize("rules", ["bio", "a third"])
    def test_gradients_for_each_sample(self, rules: str) -> None:
        layer = make(rules)
        logits = torch.randn(3, 4, 3, dtype=torch.float64)
        y = layer(logits).mode
        parameters = {name: w.detach() for name, w in layer.named_parameters()}

        def loss(parameters: dict[str, Tensor], z: Tensor, y: Tensor) -> Tensor:
            result: Tensor = torch.func.functional_call(layer, parameters, (z,)).log_prob(y)
            return -result

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0))(parameters, logits, y)
        for i in range(3):
            layer.zero_grad()
            (-layer(logits[i]).log_prob(y[i])).backward()
            for name, w in layer.named_parameters():
                torch.testing.assert_close(each[name][i], w.grad)

    def test_hessian(self) -> None:
        layer = make("bio")
        logits = torch.randn(3, 3, dtype=torch.float64)

        def value(z: Tensor) -> Tensor:
            result: Tensor = layer(z).log_partition
            return result

        expected = torch.autograd.functional.hessian(value, logits)
        torch.testing.assert_close(torch.func.hessian(value)(logits), expected)

    @pytest.mark.parametrize("rules", spread(["bio", "a third"], 1, 1))
    def test_compiled(self, rules: str) -> None:
        layer = make(rules)
        logits = torch.randn(2, 4, 3, dtype=torch.float64)
        y = layer(logits).mode
        torch._dynamo.reset()
        compiled = torch.compile(lambda z: (layer(z).mode, layer(z).log_prob(y)), backend="aot_eager")
        mode, log_prob = compiled(logits)
        assert torch.equal(mode, y)
        torch.testing.assert_close(log_prob, layer(logits).log_prob(y))

    @pytest.mark.parametrize("rules", spread(["bio", "a third"], 1))
    def test_exported_for_any_size_of_batch(self, rules: str) -> None:
        layer = make(rules)

        class Network(torch.nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.layer = layer

            def forward(self, z: Tensor, lengths: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
                p = self.layer(z, lengths)
                return p.mode, p.log_prob(y)

        def inputs(size: int) -> tuple[Tensor, Tensor, Tensor]:
            z = torch.randn(size, 4, 3, dtype=torch.float64)
            lengths = torch.arange(size) % 4 + 1
            return z, lengths, layer(z, lengths).sample()

        size = torch.export.Dim("batch", min=2, max=1000)
        program = torch.export.export(Network(), inputs(4), dynamic_shapes=({0: size}, {0: size}, {0: size}))
        other = inputs(9)
        mode, log_prob = program.module()(*other)
        p = layer(*other[:2])
        assert torch.equal(mode, p.mode)
        torch.testing.assert_close(log_prob, p.log_prob(other[2]))

    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
    def test_traced(self) -> None:
        layer = make("bio").requires_grad_(False)
        logits = torch.randn(2, 4, 3, dtype=torch.float64)
        traced = torch.jit.trace(lambda z: (layer(z).mode, layer(z).log_partition), (logits,), check_trace=False)
        other = torch.randn(5, 4, 3, dtype=torch.float64)
        mode, log_z = traced(other)
        assert torch.equal(mode, layer(other).mode)
        torch.testing.assert_close(log_z, layer(other).log_partition)

    def test_autocast(self) -> None:
        layer = make("bio", dtype=torch.float32)
        head = torch.nn.Linear(8, 3)
        x = torch.randn(2, 5, 8)
        expected = layer(head(x)).log_partition
        with torch.autocast("cpu", dtype=torch.bfloat16):
            p = layer(head(x))
            value = p.log_partition
            p.log_prob(p.mode).sum().backward()
        torch.testing.assert_close(value, expected, rtol=0.02, atol=0.02)
        assert all(w.grad is not None and torch.isfinite(w.grad).all() for w in layer.parameters())


def test_no_answer_hides_a_not_a_number() -> None:
    assert not math.isnan(make("bio")(torch.zeros(1, 3, dtype=torch.float64)).entropy().item())


def test_violations_with_gradients() -> None:
    layer = make("bio")
    logits = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[1, 0, 0, 0], [0, 1, 1, 2]])
    layer(logits).log_prob(y, on_violation="ignore").sum().backward()
    assert logits.grad is not None
    assert (logits.grad[0] == 0).all()
    assert (logits.grad[1] != 0).any()
    assert isinstance(layer(logits), sp.sequences.SequenceDistribution)
