"""Linear layers for inputs that are mostly zero: the numbers of torch's own."""

from __future__ import annotations

import copy
from dataclasses import replace

import pytest
import torch
from experiments_hmlc_made import made_set
from torch import nn

from experiments.hmlc import sparse
from experiments.hmlc.data import phase
from experiments.hmlc.models import Model, circuit_for, rule_for
from experiments.hmlc.settings import Settings
from experiments.hmlc.sparse import Dropout, SparseLinear, kernels
from experiments.hmlc.training import train
from semprola.nn.gate import ColumnLinear

needs_kernels = pytest.mark.skipif(kernels() is None, reason="no C++ compiler builds the kernels here")


@needs_kernels
@pytest.mark.parametrize("rows", [0, 1, 7, 130])
@pytest.mark.parametrize(("inputs", "outputs"), [(1, 1), (5, 64), (130, 63), (300, 129), (257, 300)])
@pytest.mark.parametrize("share", [0.01, 0.5, 0.9])
@pytest.mark.parametrize("kind", [nn.Linear, ColumnLinear])
def test_values_and_gradients_are_those_of_the_three_layers(
    kind: type[nn.Linear], rows: int, inputs: int, outputs: int, share: float
) -> None:
    torch.manual_seed(0)
    linear = kind(inputs, outputs)
    layer = SparseLinear(linear, Dropout(share)).train()
    plain = nn.Sequential(nn.ReLU(), Dropout(share), linear)
    ours, theirs = (torch.randn(rows, inputs, generator=_seeded()).requires_grad_() for _ in range(2))
    slope = torch.randn(rows, outputs)
    torch.manual_seed(1)
    mine = layer(ours)
    torch.manual_seed(1)
    usual = plain(theirs)
    torch.testing.assert_close(mine, usual, rtol=1e-5, atol=1e-5)
    assert rows < 2 or mine.stride() == usual.stride()  # the engine takes its own layout without a copy
    found = torch.autograd.grad(mine, [ours, layer.weight, layer.bias], slope)
    right = torch.autograd.grad(usual, [theirs, linear.weight, linear.bias], slope)
    torch.testing.assert_close(found[0], right[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[1].T, right[1], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(found[2], right[2], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(layer.eval()(ours), plain.eval()(theirs), rtol=1e-5, atol=1e-5)


def _seeded() -> torch.Generator:
    return torch.Generator().manual_seed(2)


@needs_kernels
def test_what_is_not_a_number_stays_so() -> None:
    layer = SparseLinear(nn.Linear(200, 70), Dropout(0.01)).train()
    h = torch.zeros(2, 200)
    h[1, 140:] = float("nan")
    result = layer(h)
    assert result[0].isfinite().all()
    assert result[1].isnan().all()


@pytest.mark.parametrize("method", ["spl", "spl-known", "hmcnn", "fil", "product-spl"])
@pytest.mark.parametrize("changes", [{}, {"features": 12}, {"gate": (10,)}])
def test_a_training_goes_the_same_way_without_the_kernels(
    method: str, changes: dict[str, object], monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(method=method, width=24, dropout=0.5, components=1, batch=32, epochs=4)
    settings = replace(settings, **changes)  # type: ignore[arg-type]
    raw = made_set()
    rows = phase(raw, 0)
    rule = rule_for(settings, raw.graph, torch.tensor(raw.y, dtype=torch.float32))
    torch.manual_seed(0)
    model = Model(settings, rows.train.x.shape[1], rule, circuit_for(settings, rule), rows.train.y)
    assert sum(isinstance(module, SparseLinear) for module in model.modules()) == 2
    plain = copy.deepcopy(model)
    train(model, rows.train, settings, 0, 4, lambda epoch, current: False)
    monkeypatch.setattr(sparse, "kernels", lambda: None)
    train(plain, rows.train, settings, 0, 4, lambda epoch, current: False)
    for ours, theirs in zip(model.parameters(), plain.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-4)


def test_without_a_compiler_the_layer_is_plain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "there-is-no-such-compiler")
    kernels.cache_clear()
    try:
        assert kernels() is None
        linear = nn.Linear(3, 2)
        x = torch.tensor([[0.0, -1.0, 2.0]])
        torch.testing.assert_close(SparseLinear(linear, Dropout(0.0)).train()(x), linear(x.relu()))
    finally:
        kernels.cache_clear()
