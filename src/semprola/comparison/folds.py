"""Trains and measures one method on one fold, and keeps the result on disk."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola._files import write_atomically
from semprola.circuit import Circuit
from semprola.comparison.methods import METHODS, PENALISED, MethodModel, build_method
from semprola.distributions import violations
from semprola.errors import FormatError, IntractableError, SemprolaError
from semprola.logic import Formula
from semprola.nn.gate import perceptron
from semprola.training import FitSettings, fit
from semprola.training.metrics import auprc, calibration_error, consistent, exact, hamming

_VALIDATION = 0.2
"""Share of a fold's training rows that are used to choose the best epoch."""
_EXAMPLES = 2

Say = Callable[[str], None]


@dataclass(frozen=True)
class Task:
    """The rows, the constraint and the settings that all methods share."""

    x: NDArray[np.float32]
    y: NDArray[np.float32]
    formula: Formula
    circuit: Circuit
    hidden: tuple[int, ...]
    settings: FitSettings
    components: int
    seed: int
    penalties: tuple[float, ...]

    def model(self, method: str, penalty: float | None) -> MethodModel:
        """A method's model, with the same initial parameters in every call."""
        torch.manual_seed(self.seed)
        inputs = self.x.shape[1]
        backbone, width = perceptron(inputs, self.hidden), [inputs, *self.hidden][-1]
        return build_method(
            method, backbone, width, self.formula, self.circuit, penalty=penalty, components=self.components
        )


class Store:
    """Finished folds in a folder, each with a description of its task."""

    def __init__(self, folder: Path | None, about: Mapping[str, Any]) -> None:
        self.folder, self.about = folder, json.loads(json.dumps(about))
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)

    def find(self, name: str) -> dict[str, Any] | None:
        """The metrics of a finished fold, or None if there is none with these settings."""
        path = None if self.folder is None else self.folder / f"{name}.json"
        if path is None or not path.is_file():
            return None
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content["about"] != self.about:
                return None
            found: dict[str, Any] = content["metrics"]
        except (ValueError, KeyError, TypeError):
            raise FormatError(f"{path}: not a finished fold: remove it") from None
        return found

    def keep(self, name: str, metrics: Mapping[str, Any]) -> None:
        """Write a finished fold to disk."""
        if self.folder is not None:
            text = json.dumps({"about": self.about, "metrics": metrics})
            write_atomically(self.folder / f"{name}.json", text.encode())


def compare_one(task: Task, method: str, folds: int, store: Store, say: Say) -> dict[str, Any]:
    """All folds of a method, or why it cannot handle the constraint."""
    row: dict[str, Any] = {"method": method, "title": METHODS[method]}
    measured = []
    for fold in range(folds):
        name = f"{method}-fold{fold}"
        metrics = store.find(name)
        if metrics is None:
            try:
                metrics = _fold(task, method, fold, folds)
            except SemprolaError as error:
                say(f"{METHODS[method]}: {error}")
                return row | {"refused": str(error)}
            store.keep(name, metrics)
        measured.append(metrics)
        say(f"{METHODS[method]}: fold {fold + 1} of {folds}, exact match {metrics['exact']:.1f} %")
    return row | {"folds": measured}


def _fold(task: Task, method: str, fold: int, folds: int) -> dict[str, Any]:
    """Train on all folds but one, and measure on that one; a penalty's weight is chosen on validation rows."""
    order = np.random.default_rng(task.seed).permutation(len(task.x))
    held = np.arange(len(order)) % folds == fold
    rest, test = order[~held], order[held]
    cut = max(1, round(_VALIDATION * len(rest)))
    valid, train = rest[:cut], rest[cut:]
    x = _standardised(task.x, train)

    def pick(rows: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        return torch.from_numpy(x[rows]), torch.from_numpy(task.y[rows])

    weights: tuple[float | None, ...] = task.penalties if method in PENALISED else (None,)
    tried = []
    for weight in weights:
        # the first steps in a process load code, which must not count towards the time of an epoch
        # no method starts at the labels' frequencies, because not every one can
        warm = replace(task.settings, epochs=1)
        fit(task.model(method, weight), pick(train[:2]), pick(valid[:2]), warm, start_at_labels=False)
        model = task.model(method, weight)
        began = time.process_time()
        history = fit(model, pick(train), pick(valid), task.settings, seed=task.seed, start_at_labels=False)
        steps = -(-len(train) // (task.settings.batch_size or len(train)))
        seconds = (time.process_time() - began) / max(1, (history.step[-1] if history.step else 1) / steps)
        tried.append((history.best_exact, model, seconds, weight))
    _, model, seconds, weight = max(tried, key=lambda each: each[0])
    chosen = {} if weight is None else {"penalty": weight}
    return _measured(model, task, *pick(test)) | {"seconds": seconds} | chosen


@torch.no_grad()
def _measured(model: MethodModel, task: Task, x: Tensor, y: Tensor) -> dict[str, Any]:
    p = model.eval()(x)
    mode, marginals = p.mode, p.mean.clamp(0, 1)
    try:
        nll: float | None = float(-p.log_prob(y).mean())
    except IntractableError:
        nll = None
    area = auprc(marginals, y)
    return {
        "exact": exact(mode, y),
        "hamming": hamming(mode, y),
        "consistent": consistent(task.formula, task.circuit.labels, mode),
        "nll": nll,
        "ece": calibration_error(marginals.numpy(), y.numpy() > 0.5),
        "auprc": None if area != area else area,  # without a positive label there is no area
        "broken": _broken(task, mode, y),
    }


def _broken(task: Task, mode: Tensor, y: Tensor) -> list[dict[str, Any]]:
    """Some predictions that break the rules: their labels, the true ones, and a rule that they break."""
    names = task.circuit.labels
    return [
        {
            "predicted": [name for name, on in zip(names, mode[each.row].tolist(), strict=True) if on],
            "true": [name for name, on in zip(names, y[each.row].tolist(), strict=True) if on],
            "rule": each.rule,
        }
        for each in violations(task.formula, mode, labels=list(names))[:_EXAMPLES]
    ]


def _standardised(x: NDArray[np.float32], train: NDArray[np.int64]) -> NDArray[np.float32]:
    centre, spread = x[train].mean(0), x[train].std(0)
    scaled: NDArray[np.float32] = ((x - centre) / np.where(spread > 0, spread, 1)).astype(np.float32)
    return scaled
