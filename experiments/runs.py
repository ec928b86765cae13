"""One run: trains a method on a task with a seed, and measures it; results record where they come from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.methods import TITLES, Model, ModelSettings
from experiments.provenance import provenance
from experiments.task import Task
from experiments.trainer import History, TrainSettings, train
from semprola.training.metrics import exact, hamming, reliability
from semprola.training.progress import ProgressBar


def run(
    task: Task,
    method: str,
    model_settings: ModelSettings,
    train_settings: TrainSettings,
    seed: int = 0,
    *,
    checkpoint: str | Path | None = None,
    quiet: bool = False,
    command: str | None = None,
    stop: Callable[[int], bool] | None = None,
) -> tuple[dict[str, Any], Model]:
    """Train one method and measure it.

    Args:
        task: what to learn.
        method: see `experiments.methods`.
        model_settings: settings of the model.
        train_settings: settings of the training.
        seed: seed of the parameters and the order of rows.
        checkpoint: a file to resume from and to write to.
        quiet: show no progress.
        command: the command line to record.
        stop: see `experiments.trainer.train`.

    Returns:
        The result, ready for JSON, and the model with its best parameters.
    """
    torch.manual_seed(seed)
    model = Model(method, task.x.shape[1], task.circuit_for(method), model_settings)
    with ProgressBar(f"{TITLES[method]}, seed {seed}", train_settings.steps, quiet=quiet) as progress:
        history = train(
            model, task.rows("train"), task.rows("valid"), train_settings,
            seed=seed, checkpoint=checkpoint, progress=progress, stop=stop,
        )  # fmt: skip
    result = {
        "experiment": task.name,
        "setting": task.setting,
        "split": task.split,
        "data": task.data,
        "method": method,
        "seed": seed,
        "valid": measure(model, task, "valid"),
        "test": measure(model, task, "test"),
        "model": asdict(model_settings),
        "training": asdict(train_settings),
        "parameters": sum(p.numel() for p in model.parameters()),
        "history": _brief(history),
        "examples": examples(model, task),
        "provenance": provenance(command),
    }
    return result, model


@torch.no_grad()
def measure(model: Model, task: Task, part: str) -> dict[str, Any]:
    """Figures of a model on a part of the rows, for the mode and for the decoder for the Hamming score.

    Returns:
        "exact", "hamming" and "consistent" of the mode, in percent; the same for the decoder under "hamming_decoder",
        with "gain" (its Hamming score minus the mode's) and "gain_error" (the standard error of the gain, from the
        differences per row); "nll" in nats; "mode_proven", the percentage of rows whose mode is proven; "reliability"
        of p(mode). For a single circuit, also "greedy_decoder": figures of the decoder of the released code.
    """
    model.eval()
    x, y, given = task.rows(part)
    p = model(x, given)
    mode = p.mode
    decoded = p.decode("hamming")
    right = (mode == y).all(-1)
    figures = {
        "rows": len(x),
        **_figures(task, mode, y, given),
        "hamming_decoder": {**_figures(task, decoded, y, given), **_gain(decoded, mode, y)},
        "nll": -float(p.log_prob(y).double().mean()),
        "mode_proven": 100 * float(p.mode_is_exact.double().mean()),
        "reliability": reliability(p.log_prob(mode).exp().numpy(), right.numpy()),
    }
    if model.method == "spl":
        figures["greedy_decoder"] = _figures(task, p.decode("greedy"), y, given)
    return figures


def _figures(task: Task, predicted: Tensor, y: Tensor, given: Tensor | None) -> dict[str, float]:
    return {
        "exact": exact(predicted, y),
        "hamming": hamming(predicted, y),
        "consistent": 100 * float(task.obeys(predicted, given).double().mean()),
    }


def _gain(decoded: Tensor, mode: Tensor, y: Tensor) -> dict[str, float]:
    gains = 100 * ((decoded == y).double().mean(-1) - (mode == y).double().mean(-1))
    return {"gain": float(gains.mean()), "gain_error": float(gains.std() / len(gains) ** 0.5)}


@torch.no_grad()
def examples(model: Model, task: Task) -> dict[str, list[Any]]:
    """A few test rows with the model's predictions, as strings of 0 and 1.

    The rows depend only on the task; they range from the one with the most labels to some with few.

    Returns:
        "x", "y" and "predicted" (strings), and "obeys" (whether the prediction obeys the constraint).
    """
    x, y, given = task.rows("test")
    order = torch.sort(-y.sum(1), stable=True).indices
    rows = order[[int(share * len(y)) for share in (0.0, 0.08, 0.2, 0.4, 0.7)]]
    inputs = None if given is None else given[rows]
    mode = model(x[rows], inputs).mode
    return {
        "x": [_bits(row) for row in x[rows]],
        "y": [_bits(row) for row in y[rows]],
        "predicted": [_bits(row) for row in mode],
        "obeys": task.obeys(mode, inputs).tolist(),
    }


def _bits(row: Tensor) -> str:
    return "".join(str(int(value)) for value in row)


def _brief(history: History) -> dict[str, Any]:
    content = asdict(history)
    for name in ("loss", "valid_exact"):
        content[name] = [round(value, 4) for value in content[name]]
    content["seconds"] = round(history.seconds, 2)
    return content
