"""Training by epochs, with an average of the parameters, and the choice of epochs on validation rows."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from experiments.hmlc.data import Rows
from experiments.hmlc.models import Model
from experiments.hmlc.settings import Settings
from semprola.errors import SemprolaError


@dataclass
class Choice:
    """The best epoch by one figure, and the parameters of that epoch."""

    epoch: int = 0
    value: float = float("-inf")
    parameters: list[Tensor] = field(default_factory=list)

    @torch.no_grad()
    def restore(self, model: Model) -> Model:
        """Give a model these parameters."""
        for old, new in zip(model.parameters(), self.parameters, strict=True):
            old.copy_(new)
        return model


@dataclass
class Course:
    """What was seen in a training: figures by epoch, the choices, and seconds."""

    epochs: list[int] = field(default_factory=list)
    figures: list[dict[str, float]] = field(default_factory=list)
    choices: dict[str, Choice] = field(default_factory=dict)
    seconds: float = 0.0
    seconds_per_epoch: float = 0.0


def train(
    model: Model,
    rows: Rows,
    settings: Settings,
    seed: int,
    epochs: int,
    watch: Callable[[int, Model], bool],
) -> float:
    """Train in place.

    Args:
        model: what to train.
        rows: what to learn from.
        settings: learning rate, batch and so on.
        seed: of the order of rows and of dropout.
        epochs: how many at most.
        watch: called after every epoch with its number and the averaged model; true ends the training.

    Returns:
        Seconds per epoch, without those that `watch` takes.

    Raises:
        SemprolaError: the loss is not a number any more.
    """
    torch.manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
    averaged = Average(model, settings.average)
    spent = 0.0
    for epoch in range(1, epochs + 1):
        began = time.perf_counter()
        model.train()
        for index in torch.randperm(len(rows)).split(settings.batch):
            loss = model.loss(rows.x[index], rows.y[index])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            averaged.update()
        if not bool(loss.detach().isfinite()):
            raise SemprolaError(f"the loss is {float(loss.detach())} in epoch {epoch}: try a smaller learning rate")
        spent += time.perf_counter() - began
        with torch.random.fork_rng(devices=[]):  # looking does not change what follows
            stop = watch(epoch, averaged.model)
        if stop:
            break
    return spent / epoch


def choose_epochs(
    model: Model, rows: Rows, settings: Settings, seed: int, names: tuple[str, ...], look: Callable[[Model], Any]
) -> Course:
    """Train until no figure gets better on the validation rows, and keep the best model by each figure.

    Args:
        model: what to train.
        rows: what to learn from.
        settings: the training; `every`, `patience` and `epochs` say when to look and when to stop.
        seed: of the training.
        names: the figures, each larger for better.
        look: their values on the validation rows.
    """
    course = Course(choices={name: Choice() for name in names})
    stale = 0
    began = time.perf_counter()

    def watch(epoch: int, current: Model) -> bool:
        nonlocal stale
        if epoch % settings.every and epoch < settings.epochs:
            return False
        figures = look(current)
        course.epochs.append(epoch)
        course.figures.append(figures)
        better = [name for name in names if figures[name] > course.choices[name].value]
        kept = [p.detach().clone() for p in current.parameters()] if better else []
        for name in better:
            course.choices[name] = Choice(epoch, figures[name], kept)
        stale = 0 if better else stale + 1
        return stale >= settings.patience

    course.seconds_per_epoch = train(model, rows, settings, seed, settings.epochs, watch)
    course.seconds = time.perf_counter() - began
    return course


class Average:
    """An exponential moving average of a model's parameters, which forgets quickly at first.

    Args:
        model: the model that is trained.
        decay: share of the old average that a step keeps; 0 to evaluate the model itself.
    """

    def __init__(self, model: Model, decay: float) -> None:
        self.decay, self.steps = decay, 0
        self.model = copy.deepcopy(model) if decay else model
        self._average: list[Tensor] = list(self.model.parameters())
        self._current: list[Tensor] = list(model.parameters())

    @torch.no_grad()
    def update(self) -> None:
        """Take one step of the model into account."""
        if not self.decay:
            return
        self.steps += 1
        kept = min(self.decay, (1 + self.steps) / (10 + self.steps))
        torch._foreach_lerp_(self._average, self._current, 1 - kept)
