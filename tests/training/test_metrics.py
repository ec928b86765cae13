"""Metrics against their definitions."""

from __future__ import annotations

import math

import pytest
import torch

import semprola as sp
from semprola.training.metrics import (
    auprc,
    calibration_error,
    consistent,
    exact,
    hamming,
    obeys,
    observed_exact,
    reliability,
)


def test_against_counting_by_hand() -> None:
    predicted, y = torch.randint(2, (200, 3)), torch.randint(2, (200, 3))
    pairs = list(zip(predicted.tolist(), y.tolist(), strict=True))
    assert exact(predicted, y) == pytest.approx(100 * sum(a == b for a, b in pairs) / 200)
    right = sum(i == j for a, b in pairs for i, j in zip(a, b, strict=True))
    assert hamming(predicted, y) == pytest.approx(100 * right / 600)


def test_consistency_asks_the_formula_with_its_inputs() -> None:
    constraint = sp.parse("x -> (a | b)")
    predicted = torch.tensor([[0.0, 0.0], [0.0, 0.0], [1.0, 0.0]])
    given = torch.tensor([[1.0], [0.0], [1.0]])
    assert obeys(constraint, ("a", "b", "x"), predicted, given).tolist() == [False, True, True]
    assert consistent(constraint, ("a", "b", "x"), predicted, given) == pytest.approx(200 / 3)


def test_reliability_of_a_calibrated_coin() -> None:
    stated = torch.full((4000,), 0.75)
    seen = reliability(stated, torch.rand(4000) < 0.75)
    assert seen["confidence"] == [0.75]
    assert seen["accuracy"][0] == pytest.approx(0.75, abs=0.05)
    assert sum(seen["rows"]) == 4000
    assert seen["error"][0] < 0.05
    assert reliability([1.0, 0.0], [True, True])["error"] == [0.5]


def test_auprc_is_that_of_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    y = torch.randint(2, (100, 7)).float()
    marginals = (0.3 * y + 0.7 * torch.rand(100, 7)).round(decimals=1)  # many are equal
    assert auprc(marginals, y) == pytest.approx(
        100 * metrics.average_precision_score(y.numpy(), marginals.numpy(), average="micro")
    )
    hidden = y.clone()
    hidden[50:] = float("nan")
    assert auprc(marginals, hidden) == auprc(marginals[:50], y[:50])
    assert math.isnan(auprc(marginals, torch.zeros(100, 7)))


def test_what_is_not_observed_does_not_count() -> None:
    nan = float("nan")
    predicted, y = torch.tensor([[0.0, 1.0], [1.0, 1.0]]), torch.tensor([[nan, 1.0], [nan, 0.0]])
    assert observed_exact(predicted, y) == 50.0
    assert calibration_error([[0.5, 0.5]], [[True, False]]) == 0.0
