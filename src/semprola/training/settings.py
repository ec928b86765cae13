"""The settings of a training run, and its history."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from semprola._notebook import ORANGE, beside, curve, heading, shown

CHOICES = ("exact", "likelihood")
PRECISIONS = ("float32", "bfloat16")
SCHEDULES = ("constant", "cosine", "linear")


@dataclass(frozen=True)
class FitSettings:
    """How :func:`semprola.training.fit` trains.

    Args:
        epochs: passes over the training rows.
        steps: gradient steps; overrides `epochs`.
        batch_size: rows per step; None for all of them. A DataLoader has its own.
        lr: learning rate of AdamW.
        weight_decay: decoupled weight decay.
        schedule: "constant", "cosine" or "linear" (down to zero at the last step), or a function of the step and the
            number of steps that returns a factor of `lr`.
        warmup: number of steps over which the learning rate rises from zero.
        clip: largest norm of the gradient; None for no clipping.
        precision: "float32", or "bfloat16" for mixed precision: the network in bfloat16, the circuit in float32.
        evaluate_every: steps between two evaluations on the validation rows; None for once per epoch.
        patience: evaluations without improvement before training stops; None to train to the end.
        choose: which parameters are best on the validation rows: those with the highest "likelihood", or with the
            highest "exact" match (ties are broken by likelihood). A model without a likelihood is always chosen by its
            exact match.
        penalty_from: first step at which losses that a model adds to its likelihood count.
        label_weight: weight of the individual labels' log losses, which are added to the joint one: one number for all
            labels, one per label, or None for no such losses.
        pool_samples: for a layer over a split, the exact samples per row that give an unbiased gradient of the true
            log-likelihood; 0 to train by its lower bound. The loss that is shown is that of the bound in both cases.

    Raises:
        ValueError: if a setting is invalid.
    """

    epochs: int = 100
    steps: int | None = None
    batch_size: int | None = 64
    lr: float = 1e-3
    weight_decay: float = 0.0
    schedule: str | Callable[[int, int], float] = "constant"
    warmup: int = 0
    clip: float | None = None
    precision: str = "float32"
    evaluate_every: int | None = None
    patience: int | None = None
    choose: str = "likelihood"
    penalty_from: int = 0
    label_weight: float | tuple[float, ...] | None = None
    pool_samples: int = 0

    def __post_init__(self) -> None:
        """Refuse invalid settings before any work is done."""
        for name, known in (("choose", CHOICES), ("precision", PRECISIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"{name} must be {' or '.join(map(repr, known))}, not {getattr(self, name)!r}")
        if not callable(self.schedule) and self.schedule not in SCHEDULES:
            raise ValueError(f"schedule must be {', '.join(map(repr, SCHEDULES))} or a function, not {self.schedule!r}")
        for name in ("epochs", "steps", "batch_size", "evaluate_every", "patience"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int) or value < 1):
                raise ValueError(f"{name} must be a positive whole number, not {value!r}")
        if isinstance(self.pool_samples, bool) or not isinstance(self.pool_samples, int) or self.pool_samples < 0:
            raise ValueError(f"pool_samples must be a whole number of at least 0, not {self.pool_samples!r}")
        for name in ("lr", "weight_decay", "warmup", "penalty_from"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name} must not be negative, but is {getattr(self, name)!r}")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"clip must be a positive number, not {self.clip!r}")

    def rate(self, step: int, steps: int) -> float:
        """The learning rate of a step.

        Example:
            >>> FitSettings(lr=1.0, schedule="cosine", warmup=2).rate(1, 100)
            0.5
        """
        if step < self.warmup:
            return self.lr * step / self.warmup
        if callable(self.schedule):
            return self.lr * self.schedule(step, steps)
        if self.schedule == "constant":
            return self.lr
        share = (step - self.warmup) / max(1, steps - self.warmup)
        return self.lr * ((1 + math.cos(math.pi * share)) / 2 if self.schedule == "cosine" else 1 - share)


@dataclass
class History:
    """The history of a training run: one entry per evaluation on the validation rows.

    Without validation rows, `valid_exact` and `valid_log_prob` are empty, and the last parameters count as the best.
    """

    step: list[int] = field(default_factory=list)
    loss: list[float] = field(default_factory=list)
    valid_exact: list[float] = field(default_factory=list)
    valid_log_prob: list[float] = field(default_factory=list)
    best_step: int = 0
    best_exact: float = -1.0
    best_log_prob: float = float("-inf")
    seconds: float = 0.0

    @shown
    def _repr_html_(self) -> str | None:
        kept = [i for i, loss in enumerate(self.loss) if math.isfinite(loss)]
        if not kept:
            return None
        best = self.best_step if self.valid_exact else None
        parts = [curve("loss, by step", [self.step[i] for i in kept], [self.loss[i] for i in kept], best)]
        if self.valid_exact:
            parts.append(curve("exact match on validation rows, %", self.step, self.valid_exact, best, ORANGE))
        marked = f"; the dashed line is the best step, {self.best_step:,}, whose parameters were kept" if best else ""
        return heading(f"{self.step[-1]:,} steps in {self.seconds:.1f} s{marked}") + beside(*parts)

    def stale(self, since: int = 0) -> int:
        """Number of evaluations after both the best one and the given step."""
        return sum(step > max(since, self.best_step) for step in self.step)


@dataclass(frozen=True)
class Look:
    """What a callback receives after each evaluation.

    Args:
        step: number of gradient steps so far.
        steps: largest number of gradient steps.
        loss: loss of the last step.
        rows_per_second: training rows per second since the last evaluation.
        model: the model, with its current parameters.
        history: all evaluations so far, including this one.
    """

    step: int
    steps: int
    loss: float
    rows_per_second: float
    model: Any
    history: History
