"""A quick run: as many training steps as fit into a given time on this machine."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import torch

from experiments.methods import Model
from experiments.settings import Candidate
from experiments.task import Task
from experiments.trainer import TrainSettings, train

_TRIAL_STEPS = 6


def fit_into(task: Task, known: Mapping[str, Candidate], seconds: float) -> tuple[dict[str, Candidate], float]:
    """Settings with fewer steps, so that training every method once takes about the given time.

    Args:
        task: what to learn.
        known: for each method, the settings to shorten.
        seconds: how long everything may take, including trials.

    Returns:
        The settings, in which losses that are added later are added proportionally earlier; and the expected seconds.
    """
    began = time.perf_counter()
    each = {method: _seconds_per_step(task, method, candidate) for method, candidate in known.items()}
    left = max(0.0, seconds - (time.perf_counter() - began))
    cut, expected = {}, 0.0
    # from the cheapest to the most expensive: time that one does not use goes to the others
    for place, method in enumerate(sorted(each, key=lambda method: each[method] * known[method][1].steps)):
        model, training = known[method]
        share = (left - expected) / (len(each) - place)
        steps = max(2, min(training.steps, int(share / each[method])))
        cut[method] = (model, _shorter(training, steps))
        expected += steps * each[method]
    return {method: cut[method] for method in known}, expected


def _shorter(training: TrainSettings, steps: int) -> TrainSettings:
    ratio = steps / training.steps
    return replace(
        training,
        steps=steps,
        evaluate_every=max(1, min(training.evaluate_every, steps // 10)),
        penalty_from=int(training.penalty_from * ratio),
    )


def _seconds_per_step(task: Task, method: str, candidate: Candidate) -> float:
    """Time of a training step, including its share of evaluations on validation rows, measured on a throwaway model."""
    settings, training = candidate
    torch.manual_seed(0)
    model = Model(method, task.x.shape[1], task.circuit_for(method), settings)
    trial = replace(training, steps=_TRIAL_STEPS, evaluate_every=_TRIAL_STEPS, penalty_from=0)
    rows, valid = task.rows("train"), task.rows("valid")
    train(model, rows, valid, replace(trial, steps=1, evaluate_every=1))  # the first builds plans
    began = time.perf_counter()
    train(model, rows, valid, trial)
    return (time.perf_counter() - began) / _TRIAL_STEPS
