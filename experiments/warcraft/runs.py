"""One run: a method with a network on maps, from the first parameter to figures that say where they come from."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from experiments.provenance import provenance
from experiments.warcraft.dataset import Maps
from experiments.warcraft.models import ModelSettings, PathModel
from experiments.warcraft.paths import grid
from experiments.warcraft.score import rank_correlation, scores
from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.constraints import simple_paths
from semprola.training import FitSettings, ProgressBar, fit

_ROWS = 500
"""Maps that are evaluated at a time."""


@dataclass(frozen=True)
class Task:
    """Maps and the constraint on their paths.

    Attributes:
        train, valid, test: maps.
        circuit: simple paths from corner to corner of at most `longest` edges.
        longest: that bound.
        source: what the maps are, for tables.
        neighbours: of a cell, 4 or 8.
    """

    train: Maps
    valid: Maps
    test: Maps
    circuit: Circuit
    longest: int
    source: str
    neighbours: int = 4


def path_constraint(side: int, longest: int, neighbours: int = 4, *, cache: bool = True) -> Circuit:
    """Simple paths from the top-left to the bottom-right cell of at most so many edges, with 4 or 8 neighbours.

    Example:
        >>> path_constraint(3, 4).model_count()  # right and down only
        6
    """
    corner = (side - 1, side - 1)
    paths = simple_paths(grid(side, neighbours), source=(0, 0), target=corner, max_length=longest)
    return compile(paths, cache=cache)


def run(
    task: Task,
    model_settings: ModelSettings,
    fit_settings: FitSettings,
    seed: int = 0,
    *,
    checkpoint: str | Path | None = None,
    quiet: bool = False,
) -> tuple[dict[str, Any], PathModel]:
    """Train one method and measure it on the test maps.

    Labels longer than the constraint allows cannot be learnt by a layer, so these maps are left out of the training
    rows of all methods; they stay in the validation and test rows.

    Returns:
        The result, ready for JSON, and the model with its best parameters on the validation maps.
    """
    torch.manual_seed(seed)
    model = PathModel(model_settings, task.circuit, task.train.side, task.neighbours)
    kept = task.train.labels.sum(1) <= task.longest
    title = f"{model_settings.method}, {model_settings.net}, seed {seed}"
    rows = _tensors(task.train, kept)
    began = time.process_time()
    with ProgressBar(title, 0, quiet=quiet) as progress:
        history = fit(
            model,
            rows,
            _valid(task, model_settings),
            fit_settings,
            seed=seed,
            start_at_labels=False,
            checkpoint=checkpoint,
            progress=progress,
        )
    spent = time.process_time() - began
    result = {
        "model": asdict(model_settings),
        "training": asdict(fit_settings),
        "seed": seed,
        "maps": task.source,
        "longest": task.longest,
        "neighbours": task.neighbours,
        "rows": {"train": int(kept.sum()), "valid": len(task.valid), "test": len(task.test)},
        "outside": {name: float((maps.labels.sum(1) > task.longest).mean()) for name, maps in _parts(task)},
        "valid": measure(model, task.valid, task.longest),
        "test": measure(model, task.test, task.longest),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "history": {
            "step": history.step,
            "loss": [round(value, 6) for value in history.loss],
            "valid_exact": [round(value, 2) for value in history.valid_exact],
            "best_step": history.best_step,
            "seconds": round(history.seconds, 1),
            "processor_seconds": round(spent, 1),
        },
        "provenance": provenance(),
    }
    return result, model


@torch.no_grad()
def measure(model: PathModel, maps: Maps, longest: int) -> dict[str, Any]:
    """Figures of the mode, and under "hamming_decoder" those of the decoder for Hamming."""
    model.eval()
    modes, decoded, costs = [], [], []
    for first in range(0, len(maps), _ROWS):
        x = torch.from_numpy(np.array(maps.pictures[first : first + _ROWS])).flatten(1)
        p = model(x)
        modes.append(p.mode.numpy())
        decoded.append(p.decode("hamming").numpy())
        predicted = model.costs(x)
        costs += [] if predicted is None else [predicted.numpy()]
    result: dict[str, Any] = scores(np.concatenate(modes), maps.labels, maps.costs, longest)
    result["hamming_decoder"] = scores(np.concatenate(decoded), maps.labels, maps.costs, longest)
    if costs:
        result["rank_correlation"] = rank_correlation(np.concatenate(costs), maps.costs)
    return {key: _rounded(value) for key, value in result.items()}


def _valid(task: Task, settings: ModelSettings) -> tuple[torch.Tensor, torch.Tensor] | None:
    """The maps to choose an epoch by. Costs cannot know which of several least-cost paths is the label: no choice."""
    return None if settings.net == "costs" else _tensors(task.valid)


def _tensors(maps: Maps, kept: Any = slice(None)) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.from_numpy(np.array(maps.pictures[kept])).flatten(1), torch.from_numpy(maps.labels[kept])


def _parts(task: Task) -> list[tuple[str, Maps]]:
    return [("train", task.train), ("valid", task.valid), ("test", task.test)]


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    return round(value, 5)
