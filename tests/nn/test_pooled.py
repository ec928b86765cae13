"""Layers over a split: they train by the lower bound, are saved and copied, and obey every rule."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

import semprola as sp
from semprola.compiler.splitting import Split
from semprola.errors import CompilationBudgetError, FormatError, IntractableError, LabelError
from semprola.nn import PooledLayer
from semprola.training.data import Batch
from semprola.training.objective import Objective

K = sp.constraints.permutation(3)
GROUPS = [sp.exactly(1, list(map(sp.Bool, part))) for part in (K.labels[:3], K.labels[3:6], K.labels[6:])]
COLUMNS = [sp.exactly(1, list(map(sp.Bool, K.labels[i::3]))) for i in range(3)]


def some_split(*, left_out: bool = False) -> Split:
    parts = (sp.And(GROUPS), sp.And(COLUMNS[: 2 if left_out else 3]))
    circuits = tuple(sp.compile(part & sp.And([]), labels=list(K.labels)) for part in parts)
    return Split(circuits, tuple(COLUMNS[2:]) if left_out else (), {COLUMNS[2]: "rules.txt:6"} if left_out else {})


@pytest.mark.parametrize(("kind", "left_out"), [(sp.SPL, True), (sp.ProductSPL, False)])
def test_training_by_the_lower_bound(kind: Any, left_out: bool) -> None:
    torch.manual_seed(0)
    S = some_split(left_out=left_out)
    layer = kind(4, S, gate=(8,))
    assert isinstance(layer, PooledLayer)
    states = torch.from_numpy(sp.compile(K).enumerate()).float()
    x = torch.randn(64, 4)
    y = states[(x[:, 0] > 0).long() + 2 * (x[:, 1] > 0).long()]
    net = torch.nn.Sequential(torch.nn.Identity(), layer)
    before = layer(x).log_score(y).mean()
    history = sp.training.fit(net, (x, y), (x, y), steps=40, lr=0.05, seed=0)
    assert history is not None
    p = layer.eval()(x)
    assert p.log_score(y).mean() > before + 1
    assert bool(S.satisfied(p.mode).all())
    assert (p.mode == y).all(-1).float().mean() > 0.9
    assert layer.weights.sum().item() == pytest.approx(1)


def test_training_by_an_unbiased_gradient() -> None:
    torch.manual_seed(0)
    S = some_split(left_out=True)
    layer = sp.SPL(2, S)
    states = torch.from_numpy(sp.compile(K).enumerate()).float()
    x = torch.randn(4, 2)
    y = states[:4]
    parameters = list(layer.parameters())

    def exact() -> torch.Tensor:
        p = layer(x)
        return -(p.log_score(y) - p.log_score(states[:, None].expand(-1, 4, -1)).logsumexp(0)).mean()

    by_hand = torch.autograd.grad(exact(), parameters)
    objective = Objective(layer, pool_samples=4000)
    loss = objective(Batch(x, y))
    assert loss.item() == pytest.approx(-layer(x).log_score(y).mean().item(), rel=1e-5)
    for found, true in zip(torch.autograd.grad(loss, parameters), by_hand, strict=True):
        assert torch.allclose(found, true, atol=0.03)
    before = exact().item()
    sp.training.fit(layer, (x, y), steps=30, lr=0.05, pool_samples=5)
    assert exact().item() < before - 0.3
    with pytest.raises(ValueError, match="layer over a split"):
        sp.training.fit(sp.SPL(2, K), (x, y), steps=1, pool_samples=5)
    with pytest.raises(ValueError, match="pool_samples must be"):
        sp.training.FitSettings(pool_samples=-1)


def test_gradients_reach_the_weights_and_every_gate() -> None:
    layer = sp.SPL(4, some_split())
    y = torch.eye(3).flatten().expand(5, 9)
    layer(torch.randn(5, 4)).log_score(y).sum().backward()
    for name, parameter in layer.named_parameters():
        assert parameter.grad is not None, name
        assert bool(parameter.grad.abs().sum() > 0), name
    given = sp.SPL(4, some_split(), pool_weights=[1.0, 3.0])
    assert given.weights.tolist() == pytest.approx([0.25, 0.75])
    assert "weight_logits" not in dict(given.named_parameters())


@pytest.mark.parametrize("left_out", [False, True])
def test_saving_and_copying(tmp_path: Path, left_out: bool) -> None:
    S = some_split(left_out=left_out)
    x = torch.randn(6, 4)
    for layer in (sp.SPL(4, S), sp.ProductSPL(4, S, components=2, pool_weights=[1.0, 2.0])):
        net = torch.nn.Sequential(torch.nn.Linear(4, 4), layer)
        y = net(x).mode
        for again in (sp.load(sp.save(net, tmp_path / "model")), copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
            assert torch.equal(again(x).mode, y)
            assert torch.allclose(again(x).log_score(y), net(x).log_score(y))
            assert again[1].split.left_out == S.left_out
    last = torch.nn.Sequential(torch.nn.Linear(4, 9), sp.ConstraintLayer(S))
    again = sp.load(sp.save(last, tmp_path / "last"))
    assert torch.equal(again(x).mode, last(x).mode)
    with pytest.raises(FormatError, match="another"):
        sp.SPL(4, some_split(left_out=not left_out)).load_state_dict(sp.SPL(4, S).state_dict())


def test_what_a_split_cannot_do_is_said() -> None:
    S = some_split()
    with pytest.raises(LabelError, match="no inputs"):
        sp.ConstraintLayer(S)(torch.zeros(9), given=torch.zeros(1))
    with pytest.raises(LabelError, match="fixed when it is made"):
        sp.SPL(4, S, labels=list(K.labels))
    with pytest.raises(ValueError, match="gate per circuit"):
        sp.SPL(4, S, gate=torch.nn.Identity())
    with pytest.raises(ValueError, match="factorized"):
        sp.ProductSPL(4, S, q="hmm")
    with pytest.raises(ValueError, match="pool_weights"):
        sp.SPL(4, S, pool_weights=[1.0])
    with pytest.raises(LabelError, match="one circuit"):
        sp.losses.SemanticLoss(S)  # type: ignore[arg-type]
    assert isinstance(sp.SPL(4, sp.split(K)), sp.SPL)
    assert IntractableError is not None


def test_a_budget_that_runs_out_leads_to_split() -> None:
    v = [sp.Bool(f"v{i}") for i in range(24)]
    rules = sp.And([v[i] ^ v[(5 * i + 1) % 24] ^ v[(7 * i + 3) % 24] for i in range(20)])
    with pytest.raises(CompilationBudgetError, match=r"sp\.split\(rules\)"):
        sp.compile(rules, max_nodes=20)
    assert sp.split(rules, max_nodes=40).circuits
    with pytest.raises(CompilationBudgetError) as caught:
        sp.compile(sp.exactly(5, v), max_nodes=5)
    assert "sp.split" not in str(caught.value)  # a single rule has nothing to split


def test_layers_take_a_budget() -> None:
    rules = sp.constraints.permutation(7)
    makers: list[Any] = [
        lambda: sp.SPL(4, rules, max_nodes=20),
        lambda: sp.ProductSPL(4, rules, max_nodes=20),
        lambda: sp.ConstraintLayer(rules, max_nodes=20),
        lambda: sp.constrain(torch.zeros(49), rules, max_nodes=20),
        lambda: sp.losses.SemanticLoss(rules, max_nodes=20),
    ]
    for make in makers:
        with pytest.raises(CompilationBudgetError, match=r"sp\.split\(rules\)"):
            make()
