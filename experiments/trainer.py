"""Training for the experiments: on one thread, so that sums are always taken in the same order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from semprola.errors import SemprolaError
from semprola.training.fitting import fit
from semprola.training.progress import ProgressBar
from semprola.training.settings import CHOICES, FitSettings, History

__all__ = ["CHOICES", "History", "Rows", "TrainSettings", "Trainable", "train"]

Rows = tuple[Tensor, Tensor, Tensor | None]
"""Inputs [rows, inputs], labels [rows, labels], and inputs of the constraint [rows, given], if it has any."""


class Trainable(Protocol):
    """What the trainer expects of a model: a module that returns distributions and has its own loss."""

    def __call__(self, x: Tensor, given: Tensor | None = None) -> Any:
        """The distribution over y for inputs x [rows, inputs]."""

    def loss(self, x: Tensor, y: Tensor, given: Tensor | None = None, *, penalize: bool = True) -> Tensor:
        """The loss to minimise; `penalize` says whether the losses that a method adds count."""

    def describe(self) -> str:
        """A text that identifies the model, for checkpoints."""

    def parameters(self) -> Any: ...
    def state_dict(self) -> dict[str, Any]: ...
    def load_state_dict(self, state_dict: dict[str, Any]) -> Any: ...
    def train(self, mode: bool = True) -> Any: ...
    def eval(self) -> Any: ...


@dataclass(frozen=True)
class TrainSettings:
    """How a model is trained.

    Args:
        steps: largest number of gradient steps.
        lr: learning rate of AdamW.
        weight_decay: decoupled weight decay.
        batch_size: rows per step; None for all of them.
        evaluate_every: steps between two evaluations on the validation rows.
        patience: evaluations without improvement before training stops; None to train to the end.
        choose: which parameters are best on the validation rows: those with the highest "exact" match (ties are broken
            by likelihood), or with the highest "likelihood".
        penalty_from: first step at which the losses that a method adds count. If a large weight counts from the start,
            every prediction may become the same state that satisfies the constraint.
    """

    steps: int = 2000
    lr: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int | None = None
    evaluate_every: int = 20
    patience: int | None = None
    choose: str = "exact"
    penalty_from: int = 0


def train(
    model: Trainable,
    rows: Rows,
    valid: Rows,
    settings: TrainSettings,
    *,
    seed: int = 0,
    checkpoint: str | Path | None = None,
    progress: ProgressBar | None = None,
    stop: Callable[[int], bool] | None = None,
) -> History:
    """Train in place with :func:`semprola.training.fit`, on one thread.

    Args:
        model: what to train; make it after ``torch.manual_seed(seed)``.
        rows: the training rows.
        valid: the rows for choosing the best parameters.
        settings: see `TrainSettings`.
        seed: seed of the order of rows and of dropout.
        checkpoint: a file to resume from if it exists, and to write at every evaluation.
        progress: shows the progress, if given.
        stop: called with the step after every evaluation; if it returns true, the run ends and can be resumed later.

    Raises:
        FormatError: if the checkpoint is damaged or belongs to other settings.
        SemprolaError: if the loss becomes NaN or infinite, or validation rows violate the constraint and parameters are
            chosen by the likelihood.
    """
    if settings.choose not in CHOICES:
        raise SemprolaError(f"choose must be {' or '.join(map(repr, CHOICES))}, not {settings.choose!r}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return fit(
            model,  # type: ignore[arg-type]  # a module, as far as `fit` needs one
            rows,
            valid,
            FitSettings(**asdict(settings)),
            seed=seed,
            start_at_labels=False,  # methods are compared from the start that the caller gave them
            checkpoint=checkpoint,
            callbacks=[] if stop is None else [lambda look: stop(look.step)],
            progress=progress or False,
        )
    finally:
        torch.set_num_threads(threads)
