"""One small trainer for all experiments: Adam, choice by validation, checkpoints that resume to the same result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from semprola._files import write_atomically
from semprola.errors import FormatError, SemprolaError
from semprola.training.metrics import exact
from semprola.training.progress import Progress

Rows = tuple[Tensor, Tensor, Tensor | None]
"""Inputs [rows, inputs], labels [rows, labels], and inputs of the constraint [rows, given], if it has any."""

CHOICES = ("exact", "likelihood")


class Trainable(Protocol):
    """What the trainer asks of a model: a module that returns distributions and knows its own loss."""

    def __call__(self, x: Tensor, given: Tensor | None = None) -> Any:
        """The distribution over y for inputs x [rows, inputs]."""

    def loss(self, x: Tensor, y: Tensor, given: Tensor | None = None, *, penalize: bool = True) -> Tensor:
        """What to minimise; `penalize` says whether the losses that a method adds count."""

    def describe(self) -> str:
        """What a checkpoint belongs to: another model has another text."""

    def parameters(self) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...
    def train(self, mode: bool = True) -> Any: ...
    def eval(self) -> Any: ...


@dataclass(frozen=True)
class TrainSettings:
    """How a model is trained.

    Args:
        steps: most gradient steps.
        lr: learning rate of Adam.
        weight_decay: decoupled decay of the weights (AdamW).
        batch_size: rows of a step; None for all of them.
        evaluate_every: steps between two looks at the validation rows.
        patience: looks without better parameters before training stops; None to go on to the end.
        choose: what makes parameters better on the validation rows: "exact" (match; among equal ones the
            log-likelihood) or "likelihood".
        penalty_from: step from which the losses that a method adds count. From the start, a large weight makes every
            prediction the same, which obeys the constraint.
    """

    steps: int = 2000
    lr: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int | None = None
    evaluate_every: int = 20
    patience: int | None = None
    choose: str = "exact"
    penalty_from: int = 0


@dataclass
class History:
    """What was seen on the way: one entry for each look at the validation rows."""

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    valid_exact: list[float] = field(default_factory=list)
    best_step: int = 0
    best_exact: float = -1.0
    best_log_prob: float = float("-inf")
    seconds: float = 0.0

    def stale(self, since: int = 0) -> int:
        """Looks since the best one, and since some step."""
        return sum(step > max(since, self.best_step) for step in self.step)


def train(
    model: Trainable,
    rows: Rows,
    valid: Rows,
    settings: TrainSettings,
    *,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: Progress | None = None,
    stop: Callable[[int], bool] | None = None,
) -> History:
    """Train in place; the model ends with the parameters that were best on the validation rows.

    What is better, `settings.choose` says. The order of rows and the randomness of a step depend only on the seed and
    the number of the step, so that a run that was killed and resumed from its checkpoint takes the same steps as one
    that was not. Runs on one thread, where sums have one order.

    Args:
        model: what to train; make it after ``torch.manual_seed(seed)``.
        rows: the training rows.
        valid: the rows to choose by.
        settings: see `TrainSettings`.
        seed: of the order of rows and of dropout.
        checkpoint: a file from which to continue if it is there, and that is written at every look.
        progress: what shows how far it is.
        stop: asked after every look with the number of the step; true ends the run, to be resumed later.

    Raises:
        FormatError: the checkpoint is damaged or belongs to other settings.
        SemprolaError: the loss is not a number any more.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _train(model, rows, valid, settings, seed, checkpoint, progress or Progress(quiet=True), stop)
    finally:
        torch.set_num_threads(threads)


def _train(
    model: Trainable,
    rows: Rows,
    valid: Rows,
    settings: TrainSettings,
    seed: int,
    checkpoint: str | Path | None,
    progress: Progress,
    stop: Callable[[int], bool] | None,
) -> History:
    if settings.choose not in CHOICES:
        raise SemprolaError(f"parameters are chosen by {' or '.join(CHOICES)}, not {settings.choose!r}")
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay, fused=True)
    history, best = History(), _copy(model.state_dict())
    path = None if checkpoint is None else Path(checkpoint)
    if path is not None and path.is_file():
        history, best = _resume(path, model, optimizer, settings, seed)
    began, spent = time.perf_counter(), history.seconds
    step = history.step[-1] if history.step else 0
    finished = step >= settings.steps or _gives_up(history, settings)
    while not finished:
        loss = _step(model, optimizer, rows, settings, seed, step)
        step += 1
        if step % settings.evaluate_every and step < settings.steps:
            continue
        _look(model, valid, history, best, settings.choose, step, loss)
        history.seconds = spent + time.perf_counter() - began
        finished = step >= settings.steps or _gives_up(history, settings)
        progress.update(step, loss, history.valid_exact[-1], history.best_exact)
        if path is not None:
            _save(path, model, optimizer, history, best, settings, seed)
        if stop is not None and stop(step):
            break
    model.load_state_dict(best)
    model.eval()
    return history


def _step(
    model: Trainable, optimizer: torch.optim.Optimizer, rows: Rows, settings: TrainSettings, seed: int, step: int
) -> float:
    """One gradient step, with randomness that depends on nothing but the seed and the number of the step."""
    model.train()
    # torch.manual_seed also prepares devices that are not there, which takes longer than a small step
    torch.default_generator.manual_seed(_mixed(seed, step))
    x, y, given = rows
    if settings.batch_size is not None and settings.batch_size < len(x):
        index = _batch(len(x), settings.batch_size, seed, step)
        x, y, given = x[index], y[index], None if given is None else given[index]
    loss = model.loss(x, y, given, penalize=step >= settings.penalty_from)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    value = float(loss.detach())
    if value != value or abs(value) == float("inf"):
        raise SemprolaError(f"the loss is {value} at step {step}: a label violates the constraint, or lr is too large")
    return value


def _batch(rows: int, size: int, seed: int, step: int) -> Tensor:
    """The rows of a step: consecutive parts of a permutation that is drawn anew for every pass over the data."""
    parts = -(-rows // size)
    epoch, part = divmod(step, parts)
    generator = torch.Generator().manual_seed(_mixed(seed, -1 - epoch))
    return torch.randperm(rows, generator=generator)[part * size : (part + 1) * size]


def _mixed(seed: int, number: int) -> int:
    """A seed for each pair of numbers."""
    return (seed * 1_000_003 + number * 7_919 + 12_345) % (1 << 63)


@torch.no_grad()
def _look(
    model: Trainable, valid: Rows, history: History, best: dict[str, Any], choose: str, step: int, loss: float
) -> None:
    """Measure on the validation rows, and remember the parameters if they are the best so far."""
    model.eval()
    x, y, given = valid
    p = model(x, given)
    score, log_prob = exact(p.mode, y), float(p.log_prob(y).mean())
    history.step.append(step)
    history.loss.append(loss)
    history.valid_exact.append(score)
    old = history.best_exact, history.best_log_prob
    if log_prob > old[1] if choose == "likelihood" else (score, log_prob) > old:
        history.best_step, history.best_exact, history.best_log_prob = step, score, log_prob
        best.update(_copy(model.state_dict()))


def _gives_up(history: History, settings: TrainSettings) -> bool:
    return settings.patience is not None and history.stale(settings.penalty_from) >= settings.patience


def _copy(state: dict[str, Any]) -> dict[str, Any]:
    return {name: value.clone() for name, value in state.items()}


def _key(settings: TrainSettings, model: Trainable, seed: int) -> str:
    """What a checkpoint belongs to."""
    return f"{model.describe()} {settings} seed={seed}"


def _save(
    path: Path,
    model: Trainable,
    optimizer: torch.optim.Optimizer,
    history: History,
    best: dict[str, Any],
    settings: TrainSettings,
    seed: int,
) -> None:
    content = {
        "key": _key(settings, model, seed),
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "best": best,
        "history": asdict(history),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, lambda out: torch.save(content, out))


def _resume(
    path: Path, model: Trainable, optimizer: torch.optim.Optimizer, settings: TrainSettings, seed: int
) -> tuple[History, dict[str, Any]]:
    try:
        content = torch.load(path, weights_only=True)
        if content["key"] != _key(settings, model, seed):
            raise FormatError(f"{path}: a checkpoint of other settings: remove it, or choose another folder")
        model.load_state_dict(content["model"])
        optimizer.load_state_dict(content["optimizer"])
        return History(**content["history"]), dict(content["best"])
    except FormatError:
        raise
    except Exception as error:  # a damaged archive shows itself in many ways
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise FormatError(f"{path}: not a checkpoint that can be resumed ({reason}): remove it") from None
