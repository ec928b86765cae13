"""Temperatures fitted on validation rows; reliability of marginals and of whole predictions."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import oracle
import pytest
import torch
import worlds
import zoo
from torch import nn
from worlds import Setting, world

import semprola as sp
from semprola.distributions.mixtures import tempered
from semprola.training import calibration_report

pytestmark = pytest.mark.usefixtures("each_engine")
PETS = "(cat -> animal) & (dog -> animal)"


@pytest.mark.parametrize("layer", list(worlds.LAYERS)[::2])
@pytest.mark.parametrize("name", ["nested_choice", "given_two", "family_hierarchy_free"])
def test_tempered_distributions_are_distributions(name: str, layer: str) -> None:
    w = world(Setting(zoo.case(name), layer, batch=(2, 3), scale=2.0))
    components = w.p.log_mixing.shape[-1]
    w.close(tempered(w.p, torch.ones(components)).mean, w.p.mean)
    other = tempered(w.p, torch.linspace(0.5, 3, components), 2.0)
    probs = oracle.log_probs_of_all(other).exp()
    w.close(probs.sum(-1), torch.ones(w.batch))
    assert torch.equal(probs > 0, w.allowed)
    if w.setting.layer in worlds.DETERMINISTIC and not w.case.given:
        flat = oracle.log_probs_of_all(tempered(w.p, torch.full((components,), 1e9))).exp()
        uniform = w.allowed / w.allowed.sum(-1, keepdim=True)
        torch.testing.assert_close(flat, uniform.to(flat), atol=1e-6, rtol=1e-6)


def sharp(layer: str) -> tuple[nn.Module, tuple[Any, Any]]:
    """A layer that is far too sure, and rows that tell."""
    torch.manual_seed(0)
    kinds: dict[str, Any] = {
        "spl": lambda: sp.SPL(4, PETS),
        "mixture": lambda: sp.SPL(4, PETS, replicas=2),
        "product": lambda: sp.ProductSPL(4, PETS),
        "chain": lambda: sp.ProductSPL(4, PETS, q="hmm", units=2),
        "logits": lambda: nn.Sequential(nn.Linear(4, 3), sp.ConstraintLayer(PETS)),
    }
    model = kinds[layer]().double()
    x = torch.randn(400, 4, dtype=torch.float64)
    for weight in model.parameters():
        weight.data.normal_(0, 1)
    y = model(x).sample()
    for weight in model.parameters():
        weight.data *= 4
    return model, (x, y)


@pytest.mark.parametrize("layer", ["spl", "mixture", "product", "chain", "logits"])
def test_a_layer_that_is_too_sure(layer: str) -> None:
    model, (x, y) = sharp(layer)
    before = copy.deepcopy(model.state_dict())
    calibrated = sp.training.calibrate(model, (x[:200], y[:200]))
    assert all(torch.equal(a, b) for a, b in zip(before.values(), model.state_dict().values(), strict=True))
    p, q = model(x[200:]), calibrated(x[200:])
    assert q.log_prob(y[200:]).mean() > p.log_prob(y[200:]).mean() + 0.5
    assert (calibrated.temperature > 1.5).all()
    assert _error(q, y, "mode") < _error(p, y, "mode")
    assert _error(q, y, "marginals") < _error(p, y, "marginals")
    assert q.support.check(q.mode).all()


def _error(p: Any, y: Any, what: str) -> float:
    return calibration_report(p, y[200:])[what]["error"][0]


def test_the_temperature_is_found() -> None:
    torch.manual_seed(0)
    logits = 2 * torch.randn(3000, 3, dtype=torch.float64)
    for rules in (None, PETS):
        y = sp.constrain(logits, rules).sample() if rules else (torch.rand_like(logits) < logits.sigmoid()).double()
        scaled = sp.training.calibrate(5 * logits, y, rules)
        assert float(scaled.temperature) == pytest.approx(5, rel=0.15)
        torch.testing.assert_close(scaled(5 * logits), 5 * logits / scaled.temperature)
        if rules:
            assert sp.constrain(scaled(5 * logits), rules).log_prob(y).isfinite().all()


def test_perfect_rows_give_finite_temperatures() -> None:
    layer = sp.ProductSPL(4, PETS)
    x = torch.randn(20, 4)
    calibrated = sp.training.calibrate(layer, (x, layer(x).mode))
    assert calibrated.temperature.isfinite().all()
    assert calibrated(x).log_prob(layer(x).mode).mean() >= layer(x).log_prob(layer(x).mode).mean()


def test_it_is_a_module() -> None:
    model, (x, y) = sharp("mixture")
    calibrated = sp.training.calibrate(model, (x, y))
    other = sp.training.Calibrated(copy.deepcopy(model), torch.ones(2, dtype=torch.float64), torch.ones(()).double())
    other.load_state_dict(calibrated.state_dict())
    same = pickle.loads(pickle.dumps(calibrated))
    for again in (other, same, copy.deepcopy(calibrated)):
        torch.testing.assert_close(again(x).mean, calibrated(x).mean)
    assert "temperature=[" in repr(calibrated)


def test_inputs_weights_and_missing_labels() -> None:
    layer = sp.SPL(2, sp.compile("(night -> ~a) & (a | b)", given=["night"]))
    x, night = torch.randn(50, 2), torch.randint(2, (50, 1)).float()
    y = layer(x, given=night).sample()
    assert sp.training.calibrate(layer, (x, y, night)).temperature.isfinite().all()
    partial = y.clone()
    partial[::3, 0] = torch.nan
    assert sp.training.calibrate(layer, (x, partial, night)).temperature.isfinite().all()
    weight = torch.ones(50)
    weighted = sp.training.calibrate(layer, (x, y, night, weight))
    torch.testing.assert_close(weighted.temperature, sp.training.calibrate(layer, (x, y, night)).temperature)


def test_labels_by_name() -> None:
    model, (x, y) = sharp("logits")
    named = {name: y[:, i] for i, name in reversed(list(enumerate(model[-1].labels)))}
    assert torch.equal(
        sp.training.calibrate(model, (x, named)).temperature, sp.training.calibrate(model, (x, y)).temperature
    )
    with pytest.raises(sp.LabelError, match="y names 'horse'"):
        sp.training.calibrate(model, (x, {"horse": y[:, 0]}))
    first = sp.SPL(4, PETS)
    second = copy.deepcopy(first)
    for layer, rows in ((first, y.float()), (second, {name: part.float() for name, part in named.items()})):
        sp.training.fit(layer, (x.float(), rows), epochs=1)
    torch.testing.assert_close(first(x.float()).mean, second(x.float()).mean)
    with pytest.raises(sp.LabelError, match="this one has no layer"):
        sp.training.fit(nn.Linear(4, 3), (x.float(), named))


def test_bad_rows_are_named() -> None:
    layer = sp.SPL(2, PETS)
    x, y = torch.zeros(3, 2), torch.tensor([[1.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    with pytest.raises(sp.errors.ViolationError, match="row 1: cat -> animal"):
        sp.training.calibrate(layer, (x, y))
    y[1, 2] = torch.nan
    with pytest.raises(sp.SemprolaError, match="validation row 1 has probability zero"):
        sp.training.calibrate(layer, (x, y))
    with pytest.raises(ValueError, match="constraint= is for logits"):
        sp.training.calibrate(layer, (x, y), PETS)
    with pytest.raises(ValueError, match=r"must both be \[rows, labels\]"):
        sp.training.calibrate(torch.zeros(3, 2), torch.zeros(3, 3))
    with pytest.raises(TypeError, match=r"must return a distribution, not Tensor: end it in a layer such as sp.SPL"):
        sp.training.calibrate(nn.Linear(2, 3), (x, y))
    with pytest.raises(TypeError, match="must return a distribution of semprola, not MultiplexDistribution"):
        sp.training.calibrate(sp.baselines.MultiplexNet(2, PETS), (x, y))


def test_report() -> None:
    p = sp.constrain(torch.tensor([[2.0, 0.0], [0.0, 3.0]]), sp.one_hot(["a", "b"]))
    report = calibration_report(p, {"a": [1, 1], "b": [0, 0]})
    sure = p.log_prob(p.mode).exp()
    assert report["mode"]["error"][0] == pytest.approx(float((1 - sure[0] + sure[1]) / 2), abs=1e-6)
    assert sum(report["marginals"]["rows"]) == 4
    partial = calibration_report(p, {"a": [1, None]})
    assert sum(partial["marginals"]["rows"]) == 1
    assert sum(partial["mode"]["rows"]) == 0
