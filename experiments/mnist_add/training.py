"""One run: trains on sums, keeps a moving average of the weights, and measures it on test rows."""

from __future__ import annotations

import copy
import math
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from experiments.mnist_add.images import Images
from experiments.mnist_add.sums import Rows, SumReader, draw_rows, sums_of
from experiments.provenance import provenance

_AT_ONCE = 500
_REPEATED = 20
"""Validation rows are drawn anew this many times: each image is in many rows, but needs no label of its own."""


@dataclass(frozen=True)
class Settings:
    """How to train: Adam with decoupled weight decay, a cosine schedule, and a moving average of the weights."""

    digits: int = 2
    epochs: int = 20
    batch: int = 16
    lr: float = 1e-3
    weight_decay: float = 0.0
    average: float = 0.998
    schedule: str = "cosine"
    numbers: int = 2

    def record(self) -> dict[str, Any]:
        """The settings as files of results have them: two numbers are not mentioned."""
        found = asdict(self)
        if self.numbers == 2:
            del found["numbers"]
        return found


def train(
    settings: Settings,
    seed: int,
    images: Images,
    *,
    checkpoint: Path | None = None,
    seconds: float | None = None,
    quiet: bool = False,
) -> tuple[SumReader, dict[str, Any]]:
    """Train from the sums of rows drawn by the seed; a checkpoint after every epoch lets an interrupted run go on.

    Args:
        settings: how.
        seed: of the weights and of the rows.
        images: each is used once per epoch.
        checkpoint: a file to resume from and to write to.
        seconds: begin no further epoch after this time.
        quiet: print nothing.

    Returns:
        The model with averaged weights, and figures: losses, seconds per epoch, the share of the time in the layer.
    """
    torch.manual_seed(seed)
    model = SumReader(settings.digits, settings.numbers)
    rows = draw_rows(images, settings.digits, seed, settings.numbers)
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.lr, weight_decay=settings.weight_decay)
    averaged = copy.deepcopy(model)
    state: dict[str, Any] = {"epoch": 0, "losses": [], "seconds": [], "in_layer": 0.0}
    if checkpoint is not None and checkpoint.is_file():
        saved = torch.load(checkpoint, weights_only=True)
        model.load_state_dict(saved["model"])
        averaged.load_state_dict(saved["averaged"])
        optimizer.load_state_dict(saved["optimizer"])
        state = saved["state"]
    ends = math.inf if seconds is None else time.perf_counter() + seconds
    first = state["epoch"]
    while state["epoch"] < settings.epochs and (state["epoch"] == first or time.perf_counter() < ends):
        _epoch(settings, seed, images, rows, (model, averaged, optimizer), state)
        if not quiet:
            name = f"N={settings.digits}{_more(settings)} seed {seed}"
            print(f"{name} epoch {state['epoch']}: loss {state['losses'][-1]:.4f}", flush=True)
        if checkpoint is not None:
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            parts = {"model": model.state_dict(), "averaged": averaged.state_dict(), "state": state}
            torch.save({**parts, "optimizer": optimizer.state_dict()}, checkpoint.with_suffix(".new"))
            checkpoint.with_suffix(".new").replace(checkpoint)
    figures = {
        "losses": [round(loss, 5) for loss in state["losses"]],
        "seconds_per_epoch": round(sorted(state["seconds"])[len(state["seconds"]) // 2], 2),
        "share_of_time_in_layer": round(state["in_layer"] / sum(state["seconds"]), 4),
    }
    return averaged, figures


def _epoch(
    settings: Settings,
    seed: int,
    images: Images,
    rows: Rows,
    parts: tuple[SumReader, SumReader, torch.optim.Optimizer],
    state: dict[str, Any],
) -> None:
    model, averaged, optimizer = parts
    began, losses = time.perf_counter(), []
    # the order depends on the epoch, not on what was drawn before: a resumed run goes on in the same way
    order = torch.randperm(len(rows.images), generator=torch.Generator().manual_seed(1_000 * seed + state["epoch"]))
    batches = order.split(settings.batch)
    for number, batch in enumerate(batches):
        share = (state["epoch"] + number / len(batches)) / settings.epochs
        for group in optimizer.param_groups:
            group["lr"] = settings.lr * (0.5 * (1 + math.cos(math.pi * share)) if settings.schedule == "cosine" else 1)
        logits = model(images.x[rows.images[batch]])
        inside = time.perf_counter()
        cut = logits.detach().requires_grad_()
        loss = -model.log_prob(cut, rows.sums[batch]).mean()
        loss.backward()
        state["in_layer"] += time.perf_counter() - inside
        optimizer.zero_grad()
        logits.backward(cut.grad)
        optimizer.step()
        losses.append(float(loss.detach()))
        done = state["epoch"] * len(batches) + number + 1
        rate = min(settings.average, done / (done + 10))
        with torch.no_grad():
            for mean, now in zip(averaged.parameters(), model.parameters(), strict=True):
                mean.lerp_(now, 1 - rate)
    state["losses"].append(sum(losses) / len(losses))
    state["epoch"] += 1
    state["seconds"].append(time.perf_counter() - began)


@torch.no_grad()
def read(model: SumReader, images: Images) -> Tensor:
    """The logits of the digits [images, 10]."""
    return torch.cat([model.reader(part) for part in images.x.split(_AT_ONCE)])


def measure(
    model: SumReader, logits: Tensor, images: Images, digits: int, seed: int, numbers: int = 2
) -> dict[str, float]:
    """Percent of right sums on rows drawn by the seed, and of right digits.

    A sum is read from the most probable digits; for one or two digits per number, "most_probable_sum" is the share if
    the sum itself is the most probable one.
    """
    rows = draw_rows(images, digits, seed, numbers)
    found = logits.argmax(-1)
    right = (sums_of(found[rows.images], numbers) == rows.sums).all(1)
    figures = {
        "sums": 100 * float(right.double().mean()),
        "digits": 100 * float((found == images.digits).double().mean()),
        "rows": len(right),
    }
    if digits <= 2 and numbers == 2:
        best = _most_probable_sums(model, logits[rows.images])
        figures["most_probable_sum"] = 100 * float((best == rows.sums).all(1).double().mean())
    return figures


def validate(model: SumReader, logits: Tensor, images: Images, digits: int) -> float:
    """Percent of right sums, on average over rows that are drawn many times."""
    found = [measure(model, logits, images, digits, 10_000 + again)["sums"] for again in range(_REPEATED)]
    return sum(found) / len(found)


@torch.no_grad()
def _most_probable_sums(model: SumReader, logits: Tensor) -> Tensor:
    """The digits of the most probable sum of each row."""
    digits = logits.shape[1] // 2
    every = torch.arange(2 * 10**digits - 1)
    sums = torch.stack([every // 10**place % 10 for place in reversed(range(digits + 1))], dim=1)
    best = []
    for part in logits.split(_AT_ONCE):
        values = torch.stack([model.log_prob(part, row.expand(len(part), -1)) for row in sums])
        best.append(sums[values.argmax(0)])
    return torch.cat(best)


def run(settings: Settings, seed: int, train_images: Images, test_images: Images, **options: Any) -> dict[str, Any]:
    """Train and test once.

    Returns:
        What to keep: settings, seed, figures, and where they come from.
    """
    model, figures = train(settings, seed, train_images, **options)
    test = measure(model, read(model, test_images), test_images, settings.digits, seed, settings.numbers)
    return {"seed": seed, "test": test, "settings": settings.record(), **figures, "provenance": provenance()}


def _more(settings: Settings) -> str:
    return "" if settings.numbers == 2 else f", {settings.numbers} numbers"
