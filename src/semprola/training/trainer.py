"""How the experiments train: gradient steps on one thread, where sums have one order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Protocol

import torch
from torch import Tensor

from semprola.errors import SemprolaError
from semprola.training.fitting import fit
from semprola.training.progress import Progress
from semprola.training.settings import CHOICES, FitSettings, History

__all__ = ["CHOICES", "History", "Rows", "TrainSettings", "Trainable", "train"]

Rows = tuple[Tensor, Tensor, Tensor | None]
"""Inputs [rows, inputs], labels [rows, labels], and inputs of the constraint [rows, given], if it has any."""


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
        evaluate_every: steps between two evaluations on the validation rows.
        patience: evaluations without better parameters before training stops; None to go on to the end.
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
    """Train in place with :func:`semprola.training.fit`, on one thread.

    Args:
        model: what to train; make it after ``torch.manual_seed(seed)``.
        rows: the training rows.
        valid: the rows to choose by.
        settings: see `TrainSettings`.
        seed: of the order of rows and of dropout.
        checkpoint: a file from which to continue if it is there, and that is written at every evaluation.
        progress: what shows how far it is.
        stop: asked after every evaluation with the number of the step; true ends the run, to be resumed later.

    Raises:
        FormatError: if the checkpoint is damaged or belongs to other settings.
        SemprolaError: if the loss becomes NaN or infinite.
    """
    if settings.choose not in CHOICES:
        raise SemprolaError(f"parameters are chosen by {' or '.join(CHOICES)}, not {settings.choose!r}")
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return fit(
            model,  # type: ignore[arg-type]  # a module, as far as `fit` needs one
            rows,
            valid,
            FitSettings(**asdict(settings)),
            seed=seed,
            checkpoint=checkpoint,
            callbacks=[] if stop is None else [lambda look: stop(look.step)],
            progress=progress or False,
        )
    finally:
        torch.set_num_threads(threads)
