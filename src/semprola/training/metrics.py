"""Metrics of predicted label vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola.logic import Formula


def exact(predicted: Tensor, y: Tensor) -> float:
    """Percentage of rows with every label right; `predicted` and `y` are [rows, labels]."""
    return 100 * float((predicted == y).all(-1).double().mean())


def observed_exact(predicted: Tensor, y: Tensor) -> float:
    """Percentage of rows with every observed label right; labels that are NaN are not observed.

    A row without any observed label counts as right, so that scores of the same rows can be compared in training. Leave
    such rows out of a figure that people read.

    Example:
        >>> observed_exact(torch.tensor([[0, 1], [1, 1]]), torch.tensor([[0, float("nan")], [1, 0]]))
        50.0
    """
    right = predicted == y
    if y.is_floating_point():
        right = right | y.isnan()
    return 100 * float(right.all(-1).double().mean())


def auprc(marginals: Tensor, y: Tensor) -> float:
    """Area under the micro-averaged precision-recall curve, in percent: all labels of all rows are ranked together.

    The area is the sum of precisions weighted by the steps in recall, without interpolation. Labels that are NaN are
    left out.

    Args:
        marginals: probabilities of the labels [rows, labels], such as ``p.mean``.
        y: 0, 1, or NaN where not observed [rows, labels].

    Returns:
        The area, or NaN if no label is 1.
    """
    truth, stated = y.flatten().double(), marginals.flatten().double()
    seen = ~truth.isnan()
    stated, order = stated[seen].sort(descending=True, stable=True)
    hits = truth[seen][order].cumsum(0)
    if len(hits) == 0 or float(hits[-1]) == 0:
        return float("nan")
    # equal scores are one point of the curve: the last of each group
    last = torch.cat([stated[1:] != stated[:-1], torch.ones(1, dtype=torch.bool, device=stated.device)])
    hits, ranks = hits[last], last.nonzero().flatten() + 1
    steps = hits.diff(prepend=hits.new_zeros(1))
    return 100 * float((hits / ranks * steps).sum() / hits[-1])


def hamming(predicted: Tensor, y: Tensor) -> float:
    """Percentage of labels that are right; `predicted` and `y` are [rows, labels]."""
    return 100 * float((predicted == y).double().mean())


def obeys(constraint: Formula, labels: tuple[str, ...], predicted: Tensor, given: Tensor | None = None) -> Tensor:
    """Which rows satisfy the constraint, by evaluating the formula itself and not a circuit.

    Args:
        predicted: 0/1 [rows, labels].
        given: values of the constraint's inputs [rows, given], if it has any.

    Returns:
        One bool per row [rows].
    """
    rows = predicted if given is None else torch.cat([predicted, given.to(predicted)], dim=1)
    return torch.as_tensor(np.asarray(constraint.evaluate(rows.bool().numpy(), labels=list(labels)), bool))


def consistent(constraint: Formula, labels: tuple[str, ...], predicted: Tensor, given: Tensor | None = None) -> float:
    """Percentage of rows that satisfy the constraint; arguments as for :func:`obeys`."""
    return 100 * float(obeys(constraint, labels, predicted, given).double().mean())


def calibration_error(confidence: Any, right: Any, bins: int = 10) -> float:
    """Expected calibration error: how far stated probabilities are from observed frequencies, on average."""
    return reliability(np.ravel(confidence), np.ravel(right), bins)["error"][0]


def reliability(confidence: Any, right: Any, bins: int = 10) -> dict[str, list[float]]:
    """How often predictions with a stated probability are right.

    Args:
        confidence: the stated probability of each prediction [rows].
        right: whether it was right [rows].

    Returns:
        For each interval that has rows: "confidence" (mean stated probability), "accuracy" (share of right
        predictions), "rows"; and the expected calibration error in "error", a list of one number.
    """
    stated: NDArray[np.float64] = np.asarray(confidence, np.float64)
    hit: NDArray[np.float64] = np.asarray(right, np.float64)
    bin_of = np.clip((stated * bins).astype(int), 0, bins - 1)
    used = [b for b in range(bins) if (bin_of == b).any()]
    means = [float(stated[bin_of == b].mean()) for b in used]
    shares = [float(hit[bin_of == b].mean()) for b in used]
    rows = [float((bin_of == b).sum()) for b in used]
    gap = sum(n * abs(c - a) for n, c, a in zip(rows, means, shares, strict=True)) / max(1, len(stated))
    return {"confidence": means, "accuracy": shares, "rows": rows, "error": [gap]}
