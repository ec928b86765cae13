"""One run: trains on sums, and measures sums and digits on test rows of seen and of unseen pairs."""

from __future__ import annotations

import math
import time
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from experiments.mnist_add.images import Images
from experiments.provenance import provenance
from experiments.shortcuts.readers import PairReader, digit_chances, sum_chances
from experiments.shortcuts.rows import VALUES, draw_task

_BINS = 10


@dataclass(frozen=True)
class Settings:
    """What is trained, and how.

    Attributes:
        kind: of `PairReader`.
        entropy: factor of the exact entropy of the digits given the sum, which is maximised row by row.
        usage: factor of the entropy of a batch's mean reading, which is maximised: it says that all digits occur.
    """

    task: str
    kind: str
    entropy: float = 0.0
    usage: float = 0.0
    components: int = 4
    epochs: int = 12
    batch: int = 64
    lr: float = 1e-3


def run(settings: Settings, seed: int, train: Images, test: Images) -> dict[str, Any]:
    """Train and test once.

    Returns:
        What to keep: settings, seed, figures, and where they come from.
    """
    torch.manual_seed(seed)
    task = draw_task(settings.task, train, test, seed)
    model = PairReader(VALUES[settings.task], settings.kind, settings.components)
    began = time.perf_counter()
    losses = _train(model, settings, train, task.train, seed)
    seconds = (time.perf_counter() - began) / settings.epochs
    figures = {
        "valid": measure(model, train, task.valid),
        "seen": measure(model, test, task.seen),
        "unseen": measure(model, test, task.unseen),
    }
    return {
        "seed": seed, "settings": asdict(settings), **figures, "losses": losses, "seconds_per_epoch": round(seconds, 2),
        "provenance": provenance(),
    }  # fmt: skip


def _train(model: PairReader, settings: Settings, images: Images, rows: Tensor, seed: int) -> list[float]:
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    generator = torch.Generator().manual_seed(seed)
    losses, steps = [], settings.epochs * math.ceil(len(rows) / settings.batch)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(settings.epochs):
        total = 0.0
        for batch in torch.randperm(len(rows), generator=generator).split(settings.batch):
            places = rows[batch]
            p = model(images.x[places])
            loss = _loss(p, images.digits[places].sum(1), settings)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
            total += float(loss.detach()) * len(batch)
        losses.append(round(total / len(rows), 5))
    return losses


def _loss(p: Any, sums: Tensor, settings: Settings) -> Tensor:
    """The negative log-likelihood of the sums, less rewards for what the settings ask for."""
    loss: Tensor = -p.log_prob_of({"sum": sums}).mean()
    if settings.entropy:
        loss = loss - settings.entropy * p.condition({"sum": sums}).entropy().mean()
    if settings.usage:
        used = digit_chances(p.condition({"sum": sums}), VALUES[settings.task]).mean((0, 1))
        loss = loss + settings.usage * torch.special.xlogy(used, used).sum()
    return loss


@torch.no_grad()
def measure(model: PairReader, images: Images, rows: Tensor) -> dict[str, float]:
    """Percent of right sums and digits, the digits' expected calibration error in percent, and nats per sum.

    A sum or a digit is read as its most probable value.
    """
    digits, sums, nats = [], [], []
    for places in rows.split(500):
        p = model(images.x[places])
        truth = images.digits[places].sum(1)
        digits.append(digit_chances(p, model.values))
        sums.append((sum_chances(p, model.values).argmax(-1) == truth).double())
        nats.append(-p.log_prob_of({"sum": truth}).double())
    chances, truth = torch.cat(digits).flatten(0, 1), images.digits[rows].flatten()
    return {
        "sums": 100 * float(torch.cat(sums).mean()),
        "digits": 100 * float((chances.argmax(-1) == truth).double().mean()),
        "calibration_error": 100 * calibration_error(chances, truth),
        "nats": float(torch.cat(nats).mean()),
    }


def calibration_error(chances: Tensor, truth: Tensor) -> float:
    """The mean difference between how sure a reader is and how often it is right, over ten equal bins of sureness."""
    sure, found = chances.double().max(-1)
    right = (found == truth).double()
    bins = (sure * _BINS).ceil().long().clamp(1, _BINS) - 1
    total = 0.0
    for k in range(_BINS):
        inside = bins == k
        if inside.any():
            total += float(inside.double().mean() * (sure[inside].mean() - right[inside].mean()).abs())
    return total
