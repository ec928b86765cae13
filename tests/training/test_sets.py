"""Prediction sets: against brute force, and their coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.training.sets import PredictionSet, conformal_threshold, prediction_sets


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("threshold", [-0.5, -3.0, -6.0, -math.inf])
def test_against_listing_all_states(components: int, threshold: float) -> None:
    circuit = sp.compile(sp.constraints.cardinality([f"x{i}" for i in range(7)], at_least=2, at_most=4))
    p = sp.SPL(4, circuit, components=components)(3 * torch.randn(5, 4))
    states = torch.from_numpy(circuit.enumerate().copy()).float()
    log_probs = p.log_prob(states[:, None].expand(-1, 5, -1)).detach()
    for row, found in enumerate(prediction_sets(p, threshold)):
        wanted = {tuple(state) for state in states[log_probs[:, row] >= threshold].int().tolist()}
        wanted.add(tuple(p.mode[row].int().tolist()))
        assert {tuple(state) for state in found.states.tolist()} == wanted
        assert len(found) == len(wanted) == found.circuit.model_count()
        assert list(found.probabilities) == sorted(found.probabilities, reverse=True)
        same = [j for j in range(7) if len({state[j] for state in wanted}) == 1]
        assert list(found.certain) == [f"x{j}" for j in same]
        assert found.states[0] in found
        assert [1] * 7 not in found


def test_the_threshold_is_the_conformal_quantile() -> None:
    values = np.log(np.arange(1, 20) / 20)
    assert conformal_threshold(values, 0.9) == values[1]  # 18 of 19 reach it: ceil(20 * 0.9)
    assert conformal_threshold(values, 0.99) == -math.inf
    for coverage in (0, 1, float("nan")):
        with pytest.raises(ValueError, match="coverage must be between 0 and 1"):
            conformal_threshold(values, coverage)
    with pytest.raises(ValueError, match="no rows"):
        conformal_threshold([], 0.5)


def test_coverage_of_a_wrong_model() -> None:
    """Over many draws of calibration rows, new rows are covered as promised, although the model is not the truth."""
    rng = np.random.default_rng(0)
    circuit = sp.compile(sp.constraints.cardinality(["a", "b", "c", "d"], at_least=1, at_most=3))
    states = torch.from_numpy(circuit.enumerate().copy()).float()
    truth = rng.dirichlet(np.ones(len(states)))
    p = sp.constrain(torch.randn(4), circuit)
    log_probs = p.log_prob(states).numpy()
    hits = []
    for _ in range(2000):
        rows = rng.choice(len(states), size=31, p=truth)
        hits.append(log_probs[rows[0]] >= conformal_threshold(log_probs[rows[1:]], 0.8))
    assert np.mean(hits) > 0.8 - 3 * math.sqrt(0.8 * 0.2 / 2000)


def test_bad_input() -> None:
    many = sp.constraints.cardinality([f"x{i}" for i in range(20)], at_least=1)
    with pytest.raises(sp.errors.IntractableError, match="row 0: more than 100 states reach the threshold"):
        prediction_sets(sp.SPL(4, many)(torch.zeros(2, 4)), -math.inf, most=100)
    with pytest.raises(sp.errors.IntractableError, match="a mixture over more than 4096 models"):
        prediction_sets(sp.SPL(4, many, components=2)(torch.zeros(2, 4)), -1.0)
    with pytest.raises(ValueError, match="the threshold must be a number, not NaN"):
        prediction_sets(sp.SPL(4, many)(torch.zeros(2, 4)), math.nan)
    found = PredictionSet(("a", "b"), np.array([[0, 1]]), np.array([1.0]))
    with pytest.raises(sp.LabelError, match="a state has 2 labels"):
        assert [1] in found
