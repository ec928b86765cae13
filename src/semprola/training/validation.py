"""Validation rows: their scores, and the rows that cannot choose the best parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor

from semprola.distributions import PoolDistribution
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import IntractableError, SemprolaError, ViolationError
from semprola.training.data import Batch
from semprola.training.metrics import observed_exact
from semprola.training.objective import log_likelihood, predict

_MOST_ROWS = 4096
"""Number of rows that are evaluated at once."""
_SHOWN = 5
_ROUNDS, _SECONDS = 60, 0.02
"""What the search for the mode of a pool may take per row while it is trained."""


@torch.no_grad()
def evaluate(model: Any, rows: Batch, device: torch.device | None = None) -> tuple[float, float]:
    """Exact match in percent, and mean log-likelihood, on some rows; labels that are NaN are ignored."""
    scores, log_probs, sizes = [], [], []
    for part in _parts(rows, device):
        p = predict(model, part)
        scores.append(observed_exact(quick_mode(p), part.y))
        log_probs.append(_mean_log_likelihood(p, part.y))
        sizes.append(len(part.x))
    if len(sizes) == 1:
        return scores[0], log_probs[0]
    total = sum(sizes)
    return (
        sum(score * size for score, size in zip(scores, sizes, strict=True)) / total,
        sum(value * size for value, size in zip(log_probs, sizes, strict=True)) / total,
    )


def quick_mode(p: Any) -> Tensor:
    """The mode; of a pool, what a short search finds, and NaN where that is nothing."""
    if not isinstance(p, PoolDistribution):
        mode: Tensor = p.mode
        return mode
    return cast(Tensor, p.within(rounds=_ROUNDS, nodes=0, seconds=_SECONDS).try_mode())


@torch.no_grad()
def has_likelihood(model: Any, rows: Batch, device: torch.device | None = None) -> bool:
    """Whether validation rows can choose the best parameters by their likelihood.

    A single row that violates the constraint makes the mean log-likelihood -inf at all parameters, so none would be
    the best. The model itself says which rows these are: the rules of a penalty, for example, make no row impossible.

    Returns:
        Whether the model has a likelihood; some baselines only score labels.
    """
    values: list[Tensor] = []
    labels: Sequence[str] = ()
    try:
        for part in _parts(rows, device):
            p = predict(model, part)
            values.append(log_likelihood(p, part.y).cpu())
            labels = p.labels if isinstance(getattr(p, "labels", None), tuple) else ()
    except IntractableError:
        return False
    log_probs = torch.cat(values)
    impossible, unknown = log_probs == NEGATIVE_INFINITY, log_probs.isnan()
    if bool(impossible.any()):
        found = violating(rows.y, impossible, labels, "validation rows", by_number=True)
        raise ViolationError(f"{found}: correct them or leave them out; with choose='exact' they count as wrong")
    if bool(unknown.any()):
        found = _shown(rows.y, unknown, (), by_number=True)
        raise SemprolaError(
            f"the log-likelihood is NaN in {int(unknown.sum())} of {len(rows.y)} validation rows ({found}): "
            "check their x, and the model's numbers"
        )
    return True


def violating(y: Tensor, wrong: Tensor, labels: Sequence[str], rows: str, *, by_number: bool = False) -> str:
    """Says how many rows violate the constraint, and which labels the first of them have.

    Args:
        y: the labels [rows, labels].
        wrong: which rows violate the constraint [rows].

    Example:
        >>> y = torch.tensor([[0, 0], [1, 0]])
        >>> violating(y, torch.tensor([False, True]), ("cat", "animal"), "rows of the batch")
        'labels violate the constraint in 1 of 2 rows of the batch (cat)'
    """
    shown = _shown(y, wrong, labels, by_number)
    return f"labels violate the constraint in {int(wrong.sum())} of {len(y)} {rows} ({shown})"


def _parts(rows: Batch, device: torch.device | None) -> Iterator[Batch]:
    """The rows in parts that are evaluated at once, on the device; at least one part."""
    for first in range(0, max(1, len(rows.x)), _MOST_ROWS):
        part = rows if len(rows.x) <= _MOST_ROWS else rows.take(slice(first, first + _MOST_ROWS))
        yield part if device is None else part.to(device)


def _mean_log_likelihood(p: Any, y: Tensor) -> float:
    """The mean log-likelihood; NaN for a model without a likelihood, which is chosen by its exact match."""
    try:
        return float(log_likelihood(p, y).mean())
    except IntractableError:
        return float("nan")


def _shown(y: Tensor, wrong: Tensor, labels: Sequence[str], by_number: bool) -> str:
    """The first of some rows: their numbers, their labels, or both."""
    first = wrong.nonzero().flatten().tolist()
    named = len(labels) == y.shape[1]
    parts = []
    for row in first[:_SHOWN]:
        words = [f"row {row}"] if by_number else []
        parts.append(": ".join([*words, *([_ones(y[row], labels)] if named else [])]))
    return "; ".join([*parts, *(["…"] if len(first) > _SHOWN else [])])


def _ones(y: Tensor, labels: Sequence[str]) -> str:
    names = [label for label, value in zip(labels, y.tolist(), strict=True) if value == 1]
    return ", ".join(names[:6]) + (", …" if len(names) > 6 else "") if names else "no label"
