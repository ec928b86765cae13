"""Validation rows: those that would discard the training are refused before it begins."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import semprola as sp
from semprola.comparison import build_method
from semprola.training import evaluate, fit
from semprola.training.data import Batch

RULES = "(cat -> animal) & (dog -> animal)"
WRONG = torch.tensor([1.0, 0.0, 1.0])  # a cat and a dog that are no animal
NAN = float("nan")


def rows(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Features that say which of cat, animal, dog holds; an animal is either."""
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    cat, dog = x[:, 0] > 0.5, x[:, 1] > 0.5
    return x, torch.stack([cat, cat | dog, dog], 1).float()


def broken(count: int, *which: int) -> tuple[Tensor, Tensor]:
    x, y = rows(count, 1)
    y[list(which)] = WRONG
    return x, y


def method(name: str) -> nn.Module:
    torch.manual_seed(0)
    formula = sp.parse(RULES)
    return build_method(name, nn.Linear(4, 8), 8, formula, sp.compile(formula))


LAYERS: dict[str, Any] = {
    "spl": lambda: sp.SPL(4, RULES),
    "mixture": lambda: sp.SPL(4, RULES, components=2),
    "known": lambda: sp.SPL(4, RULES, known_states=rows(20)[1]),
    "product": lambda: sp.ProductSPL(4, RULES),
    "hmm": lambda: sp.ProductSPL(4, RULES, q="hmm"),
    "constraint": lambda: nn.Sequential(nn.Linear(4, 3), sp.ConstraintLayer(RULES)),
    "multiplexnet": lambda: sp.baselines.MultiplexNet(4, RULES),
}


@pytest.mark.parametrize("name", LAYERS)
def test_rows_that_break_the_rules_are_named_before_training(name: str) -> None:
    model = LAYERS[name]()
    before = copy.deepcopy(model.state_dict())
    looks: list[int] = []
    message = (
        r"^labels violate the constraint in 2 of 60 validation rows \(row 3: cat, dog; row 41: cat, dog\): correct "
        r"them or leave them out; with choose='exact' they count as wrong$"
    )
    with pytest.raises(sp.errors.ViolationError, match=message):
        fit(model, rows(100), broken(60, 3, 41), epochs=3, callbacks=[lambda look: looks.append(look.step)])  # type: ignore[func-returns-value]
    assert not looks
    torch.testing.assert_close(dict(model.state_dict()), dict(before))


def test_only_the_first_rows_are_shown() -> None:
    with pytest.raises(sp.errors.ViolationError, match=r"7 of 9 validation rows \((row \d: cat, dog; ){5}…\):"):
        fit(sp.SPL(4, RULES), rows(100), broken(9, *range(7)))


def test_many_rows_are_evaluated_in_parts() -> None:
    with pytest.raises(
        sp.errors.ViolationError, match=r"2 of 9000 validation rows \(row 5: cat, dog; row 8999: cat, dog\)"
    ):
        fit(sp.SPL(4, RULES), rows(100), broken(9000, 5, 8999))


def test_rows_that_no_completion_satisfies() -> None:
    x, y = rows(60, 1)
    y[:, 2] = NAN
    fit(sp.SPL(4, RULES), rows(100), (x, y), epochs=1)
    y[7] = torch.tensor([1.0, 0.0, NAN])
    with pytest.raises(
        sp.errors.ViolationError, match=r"labels violate the constraint in 1 of 60 validation rows \(row 7: cat"
    ):
        fit(sp.SPL(4, RULES), rows(100), (x, y), epochs=1)


def test_inputs_of_the_constraint() -> None:
    layer = sp.SPL(4, sp.compile("night -> ~a", given=["night"]))
    x, y, given = torch.randn(20, 4), torch.ones(20, 1), torch.zeros(20, 1)
    fit(layer, (x, y, given), (x, y, given), epochs=1)
    night = given.clone()
    night[2] = 1
    with pytest.raises(sp.errors.ViolationError, match=r"1 of 20 validation rows \(row 2: a\)"):
        fit(layer, (x, y, given), (x, y, night), epochs=1)


def test_labels_by_name() -> None:
    x, y = broken(20, 4)
    named = dict(zip(("cat", "animal", "dog"), y.T, strict=True))
    with pytest.raises(sp.errors.ViolationError, match=r"1 of 20 validation rows \(row 4: cat, dog\)"):
        fit(sp.SPL(4, RULES), rows(100), (x, named))


def test_sequences_of_tags() -> None:
    layer = sp.SequenceSPL(["O", "B", "I"], rules=sp.parse('I -> "prev=B" | "prev=I"'))
    x, y = torch.randn(8, 5, 3), torch.zeros(8, 5, dtype=torch.long)
    fit(layer, (x, y), (x, y), epochs=1)
    wrong = y.clone()
    wrong[6, 0] = 2
    with pytest.raises(
        sp.errors.ViolationError, match=r"labels violate the constraint in 1 of 8 validation rows \(row 6\)"
    ):
        fit(layer, (x, y), (x, wrong), epochs=1)


@pytest.mark.parametrize("choose", ["likelihood", "exact"])
def test_no_rows(choose: str) -> None:
    x, y = rows(5)
    with pytest.raises(
        ValueError, match=r"^there are no validation rows: pass valid=None to keep the last parameters$"
    ):
        fit(sp.SPL(4, RULES), rows(100), (x[:0], y[:0]), choose=choose)


def test_a_loader_is_refused_as_it_is_not_read() -> None:
    loader: Any = DataLoader(TensorDataset(*broken(20, 3)), batch_size=10)
    with pytest.raises(ValueError, match=r"^validation rows must be a tuple \(x, y\)"):
        fit(sp.SPL(4, RULES), rows(100), loader)


def test_for_exact_match_they_count_as_wrong() -> None:
    model = sp.SPL(4, RULES)
    valid = broken(60, 3)
    history = fit(model, rows(300), valid, epochs=20, lr=0.1, choose="exact")
    assert history.best_exact == max(history.valid_exact) > 80
    assert history.best_step > 0
    assert evaluate(model, Batch(*valid))[0] == history.best_exact < 100


@pytest.mark.parametrize("name", ["fil", "semantic-loss", "dl2", "ebm", "hmcnn", "ccn"])
@pytest.mark.parametrize("choose", ["likelihood", "exact"])
def test_models_that_the_rules_do_not_bind(name: str, choose: str) -> None:
    """Every label vector is possible for them, or they have no likelihood: none of the training is discarded."""
    model = method(name)
    history = fit(model, rows(300), broken(60, 3), epochs=20, lr=0.05, choose=choose)
    assert history.best_step > 0
    assert history.best_exact > 60
    assert evaluate(model, Batch(*rows(100, 2)))[0] > 60


class _Turning(nn.Module):
    """Its likelihood is finite at first, and what it is told to be after the first step."""

    def __init__(self, later: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(()))
        self.later = later

    def forward(self, x: Tensor) -> Any:
        return _Told(self.weight, x, None if self.training or self.weight == 1 else self.later)


class _Told:
    def __init__(self, weight: Tensor, x: Tensor, told: float | None) -> None:
        self.weight, self.mode, self.told = weight, torch.zeros(len(x), 3), told

    def log_prob(self, y: Tensor) -> Tensor:
        values = -self.weight.square().expand(len(y)).clone()
        if self.told is not None:
            values[1] = self.told
        return values


def test_rows_that_become_impossible_are_named_too() -> None:
    with pytest.raises(
        sp.errors.ViolationError, match=r"labels violate the constraint in 1 of 9 validation rows \(row 1\)"
    ):
        fit(_Turning(float("-inf")), rows(20), rows(9), epochs=2)
    with pytest.raises(sp.SemprolaError, match=r"^the log-likelihood is NaN in 1 of 9 validation rows \(row 1\)"):
        fit(_Turning(NAN), rows(20), rows(9), epochs=2)
