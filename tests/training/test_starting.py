"""`fit` starts a new layer at the frequencies of the labels, and leaves every other layer as it is."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import semprola as sp
from semprola.training import fit

RULES = "(cat -> animal) & (dog -> animal)"
LAYERS = {
    "single": lambda: sp.SPL(4, RULES),
    "components": lambda: sp.SPL(4, RULES, components=3),
    "units": lambda: sp.SPL(4, RULES, units=2),
    "known": lambda: sp.SPL(4, RULES, known_states=labels()),
    "product": lambda: sp.ProductSPL(4, RULES),
    "mixture": lambda: sp.ProductSPL(4, RULES, components=2),
    "hmm": lambda: sp.ProductSPL(4, RULES, q="hmm", units=2),
}


def labels() -> torch.Tensor:
    """cat, animal, dog; an animal in the last ten rows of a hundred, half of them cats."""
    y = torch.zeros(100, 3)
    y[90:, 1] = 1
    y[95:, 0] = 1
    return y


def rows() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(100, 4, generator=torch.Generator().manual_seed(0)), labels()


def barely(model: nn.Module, train: Any, **options: Any) -> None:
    """One step that changes next to nothing."""
    fit(model, train, steps=1, lr=1e-9, **options)


@pytest.mark.parametrize("name", LAYERS)
def test_a_new_layer_starts_at_the_labels(name: str) -> None:
    torch.manual_seed(0)
    layer: Any = LAYERS[name]()
    assert layer.is_new
    unchanged = copy.deepcopy(layer)
    assert unchanged.is_new
    barely(unchanged, rows(), start_at_labels=False)
    assert float(unchanged(torch.zeros(4)).mean[1].detach()) > 0.4  # 4/5 of the models have it
    barely(layer, rows())
    assert not layer.is_new
    mean = layer(torch.zeros(4)).mean.detach()
    if name != "known":  # which is a mixture with a table that starts elsewhere
        assert torch.allclose(mean, torch.tensor([0.05, 0.1, 0.0]), atol=0.06)
    before = copy.deepcopy(layer.state_dict())
    barely(layer, rows())
    assert all(torch.allclose(value, layer.state_dict()[key], atol=1e-6) for key, value in before.items())


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_that_was_trained_or_loaded_is_not_new(name: str) -> None:
    torch.manual_seed(0)
    layer: Any = LAYERS[name]()
    other: Any = LAYERS[name]()
    optimizer = torch.optim.Adam(layer.parameters(), lr=1e-3)
    (-layer(rows()[0]).log_prob(labels()).mean()).backward()
    optimizer.step()
    assert not layer.is_new
    other.load_state_dict(layer.state_dict())
    assert not other.is_new
    layer.reset_parameters()
    assert layer.is_new
    assert layer.double().is_new
    assert layer.float().is_new
    assert not layer.start_at(labels()).is_new


def test_a_gate_of_your_own_is_not_new() -> None:
    assert not sp.SPL(4, RULES, gate=lambda width, size: nn.Linear(width, size)).is_new
    assert not sp.SPL(4, RULES, gate=lambda width, size: nn.Sequential(nn.Linear(width, size), nn.Tanh())).is_new


def test_rows_that_are_partly_observed_or_weigh_nothing_do_not_count() -> None:
    x, y = rows()
    hidden = y.clone()
    hidden[:80, 0] = float("nan")  # leaves ten rows with an animal, and ten without
    torch.manual_seed(0)
    layer = sp.SPL(4, RULES)
    barely(layer, (x, hidden))
    assert float(layer(torch.zeros(4)).mean[1].detach()) == pytest.approx(0.5, abs=0.05)
    layer = sp.SPL(4, RULES)
    barely(layer, (x, y, None, (torch.arange(100) >= 80).float()))
    assert float(layer(torch.zeros(4)).mean[1].detach()) == pytest.approx(0.5, abs=0.05)
    layer = sp.SPL(4, RULES)
    hidden[:, 0] = float("nan")
    barely(layer, (x, hidden))
    assert layer.is_new


def test_layers_that_are_left_alone() -> None:
    x, y = rows()
    layer = sp.SPL(4, RULES)
    barely(layer, DataLoader(TensorDataset(x, y), batch_size=10))
    assert layer.is_new
    given = sp.SPL(4, sp.compile("x -> a", given=["x"]))
    barely(given, (x, torch.ones(100, 1), torch.ones(100, 1)))
    assert given.is_new
    wrong = y.clone()
    wrong[3] = torch.tensor([1.0, 0.0, 0.0])
    with pytest.raises(sp.SemprolaError, match="labels violate the constraint in 1 of 64 rows"):
        barely(layer, (x, wrong))


def test_the_start_is_the_same_for_the_same_seed_and_resumes(tmp_path: Path) -> None:
    torch.manual_seed(0)
    first = sp.SPL(4, RULES, components=2)
    second, third = copy.deepcopy(first), copy.deepcopy(first)
    history = fit(first, rows(), rows(), epochs=4, lr=0.01)
    fit(second, rows(), rows(), epochs=4, lr=0.01)
    file = tmp_path / "run.pt"
    fit(third, rows(), rows(), epochs=4, lr=0.01, checkpoint=file, callbacks=[lambda look: look.step >= 2])
    again = fit(third, rows(), rows(), epochs=4, lr=0.01, checkpoint=file)
    for parameters in zip(first.parameters(), second.parameters(), third.parameters(), strict=True):
        assert torch.equal(parameters[0], parameters[1])
        assert torch.equal(parameters[0], parameters[2])
    assert again.loss == history.loss
