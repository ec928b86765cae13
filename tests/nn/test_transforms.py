"""The layers under torch.export, torch.func and autocast, with each engine."""

from __future__ import annotations

import io
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import networkx as nx
import pytest
import torch
from selection import spread
from torch import Tensor, nn

import semprola as sp

CONSTRAINT = sp.constraints.permutation(3)
KINDS = {
    "spl": lambda: sp.SPL(8, CONSTRAINT),
    "spl-mk": lambda: sp.SPL(8, CONSTRAINT, replicas=2, units=2, gate=(8,)),
    "product": lambda: sp.ProductSPL(8, CONSTRAINT, mixtures=2),
    "hmm": lambda: sp.ProductSPL(8, CONSTRAINT, q="hmm"),
}
LARGE = sp.at_least(1, [f"y{i}" for i in range(12)])
MAPPED = {
    **{f"{kind}-small": make for kind, make in KINDS.items()},
    "known-small": lambda: sp.SPL(8, CONSTRAINT, known_states=torch.eye(3).reshape(1, 9)),
    "vtree-small": lambda: sp.ProductSPL(8, CONSTRAINT, q="vtree", units=2),
    "mixture-large": lambda: sp.SPL(8, LARGE, replicas=2),
    "units-large": lambda: sp.SPL(8, LARGE, units=2),
    "known-large": lambda: sp.SPL(8, LARGE, known_states=torch.eye(12)),
    "product-large": lambda: sp.ProductSPL(8, LARGE, mixtures=2),
    "hmm-large": lambda: sp.ProductSPL(8, LARGE, q="hmm", units=2),
}
QUERIES = {
    "log_prob": lambda p, y: p.log_prob(y),
    "mode": lambda p, y: p.mode,
    "mean": lambda p, y: p.mean,
    "log_partition": lambda p, y: p.log_partition,
}


pytestmark = pytest.mark.usefixtures("each_engine")


class Network(nn.Module):
    """A backbone, a layer, and a question to what it returns."""

    def __init__(self, kind: str, query: str) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.body = nn.Sequential(nn.Linear(5, 8), nn.ReLU())
        self.layer, self.query = KINDS[kind](), query

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        result: Tensor = QUERIES[self.query](self.layer(self.body(x)), y)
        return result


def batch(model: Network, size: int) -> tuple[Tensor, Tensor]:
    x = torch.randn((size, 5), generator=torch.Generator().manual_seed(size))
    return x, model.layer(model.body(x)).sample()


class TestExport:
    @pytest.mark.parametrize(("kind", "query"), spread(itertools.product(KINDS, QUERIES), 5))
    def test_for_any_size_of_batch(self, kind: str, query: str) -> None:
        model = Network(kind, query)
        size = torch.export.Dim("batch", min=2, max=1000)
        program = torch.export.export(model, batch(model, 4), dynamic_shapes=({0: size}, {0: size}))
        other = batch(model, 9)
        torch.testing.assert_close(program.module()(*other), model(*other))
        file = io.BytesIO()
        torch.export.save(program, file)
        file.seek(0)
        torch.testing.assert_close(torch.export.load(file).module()(*other), model(*other))

    @pytest.mark.extensive
    def test_in_another_process(self, tmp_path: Path) -> None:
        """A saved program runs where the same layer has been built, and elsewhere says that it needs to be."""
        model = Network("spl", "log_prob")
        x, y = batch(model, 4)
        torch.export.save(torch.export.export(model, (x, y)), tmp_path / "program.pt2")
        torch.save({"x": x, "y": y, "expected": model(x, y).detach()}, tmp_path / "data.pt")
        code = """
import sys, torch
import semprola as sp
program = torch.export.load(sys.argv[1] + "/program.pt2").module()
data = torch.load(sys.argv[1] + "/data.pt", weights_only=True)
try:
    program(data["x"], data["y"])
except sp.SemprolaError as error:
    assert "build the layer" in str(error), error
else:
    raise SystemExit("ran without its circuit")
other = sp.SPL(8, sp.constraints.permutation(4))
layer = sp.SPL(8, sp.constraints.permutation(3))
layer(torch.zeros(1, 8)).log_prob(torch.eye(3).reshape(1, 9))
torch.testing.assert_close(program(data["x"], data["y"]), data["expected"])
"""
        subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(tmp_path)], check=True)


def answers_for_jacobians(kind: str, query: str) -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A query of a layer as a function of its input, and an input."""
    constraint: Any = sp.exactly(2, [f"y{i}" for i in range(5)])
    if kind == "gate":  # large enough that only the rows of the gate that a state uses are multiplied
        constraint = sp.constraints.simple_paths(nx.grid_2d_graph(4, 4), source=(0, 0), target=(3, 3))
    layer: Any = sp.ConstraintLayer(constraint) if kind == "constraint" else sp.SPL(5, constraint)
    if kind == "spl-mk":
        layer = sp.SPL(5, constraint, replicas=2, units=2)
    if kind == "product":
        layer = sp.ProductSPL(5, constraint, mixtures=2)
    layer.double()
    x = torch.randn(2, 5, dtype=torch.float64, requires_grad=True)
    y = layer(x.detach()).sample()
    partial = torch.where(torch.arange(y.shape[1]) < 2, y, torch.nan)
    queries: dict[str, Callable[[Tensor], Tensor]] = {
        "log_prob": lambda x: (layer(x, scored=y) if kind == "gate" else layer(x)).log_prob(y),
        "several": lambda x: layer(x).log_prob(torch.stack([y, y.flip(0)])),
        "partial": lambda x: layer(x).log_marginal(partial),
        "mean": lambda x: layer(x).mean[:, :2],
    }
    return queries[query], x


class TestFunctionTransforms:
    @pytest.mark.parametrize("kind", KINDS)
    def test_gradients_for_each_sample(self, kind: str) -> None:
        """vmap of a gradient by the parameters: what differential privacy and influence functions do."""
        model = Network(kind, "log_prob").double()
        x, y = (t.double() for t in batch(model.float(), 3))
        model.double()
        parameters = {name: w.detach() for name, w in model.named_parameters()}

        def loss(parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
            result: Tensor = torch.func.functional_call(model, parameters, (x[None], y[None]))
            return -result[0]

        each = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0, 0), randomness="error")(parameters, x, y)
        for i in range(len(x)):
            model.zero_grad()
            (-model(x[i : i + 1], y[i : i + 1])).sum().backward()
            for name, w in model.named_parameters():
                assert w.grad is not None
                torch.testing.assert_close(each[name][i], w.grad)

    @pytest.mark.parametrize("kind", KINDS)
    @pytest.mark.parametrize("query", ["log_prob", "log_partition"])
    def test_hessian(self, kind: str, query: str) -> None:
        model = Network(kind, query)
        x, y = (t.double() for t in batch(model, 1))
        model.double()

        def value(x: Tensor) -> Tensor:
            result: Tensor = model(x, y).sum()
            return result

        expected = torch.autograd.functional.hessian(value, x)
        torch.testing.assert_close(torch.func.hessian(value)(x), expected)

    @pytest.mark.parametrize("kind", ["constraint", "spl", "spl-mk", "product", "gate"])
    @pytest.mark.parametrize("query", ["log_prob", "several", "partial", "mean"])
    def test_a_batch_of_cotangents(self, kind: str, query: str) -> None:
        """`is_grads_batched`, with which torch computes Jacobians and Hessians at once, maps the backward pass."""
        torch.manual_seed(0)
        answer, x = answers_for_jacobians(kind, query)
        value = answer(x)
        slopes = [torch.autograd.grad(v, x, retain_graph=True)[0] for v in value.flatten()]
        every = torch.eye(value.numel(), dtype=x.dtype).unflatten(1, value.shape)
        (together,) = torch.autograd.grad(value, x, every, is_grads_batched=True)
        torch.testing.assert_close(together, torch.stack(slopes))
        hessian, total = torch.autograd.functional.hessian, lambda x: answer(x).sum()
        if query != "mean":
            torch.testing.assert_close(hessian(total, x, vectorize=True), hessian(total, x))

    @pytest.mark.parametrize("kind", MAPPED)
    def test_mode_mapped_over_rows(self, kind: str) -> None:
        torch.manual_seed(0)
        layer = MAPPED[kind]()
        for weight in layer.parameters():
            nn.init.normal_(weight)
        z = torch.randn(6, 8)
        mode, proven = torch.vmap(lambda z: (layer(z).mode, layer(z).mode_is_exact))(z)
        p = layer(z)
        torch.testing.assert_close(p.log_prob(mode)[proven], p.log_prob(p.mode)[proven])
        assert p.support.check(mode).all()
        assert proven.all() or kind.endswith("large")


class TestAutocast:
    @pytest.mark.parametrize("kind", KINDS)
    def test_training_step_in_bfloat16(self, kind: str) -> None:
        model = Network(kind, "log_prob")
        x, y = batch(model, 16)
        expected = model(x, y)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            p = model.layer(model.body(x))
            value = p.log_prob(y)
            answers = (p.mode, p.mean, p.sample(), p.top_k(2)[1])
        assert value.dtype == torch.float32
        assert value.isfinite().all()
        torch.testing.assert_close(value, expected, rtol=0.05, atol=0.05)
        assert all(answer.isfinite().all() for answer in answers)
        value.sum().backward()
        for w in model.parameters():
            assert w.grad is not None
            assert w.grad.dtype == torch.float32
            assert w.grad.isfinite().all()

    def test_a_gate_large_enough_for_row_by_row_products(self) -> None:
        torch.manual_seed(0)
        layer = sp.SPL(8, sp.constraints.permutation(9))
        z = torch.randn(4, 8)
        y = layer(z).sample()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            value = layer(z).log_prob(y)
        torch.testing.assert_close(value, layer(z).log_prob(y), rtol=0.05, atol=0.05)
        value.sum().backward()
        assert layer.gate.output.weight.grad is not None
        assert layer.gate.output.weight.grad.isfinite().all()


def test_mode_in_one_graph() -> None:
    """Compiled in seconds: the passes are operators, not thousands of traced steps."""
    layer = sp.SPL(8, sp.constraints.permutation(5))
    z = torch.randn(6, 8)
    torch._dynamo.reset()
    compiled = torch.compile(lambda z: layer(z).mode, fullgraph=True, backend="aot_eager")
    assert torch.equal(compiled(z), layer(z).mode)
