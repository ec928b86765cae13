"""Figures of merit of hierarchical predictions."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray


def average_precision(scores: ArrayLike, y: ArrayLike) -> float:
    """Area under the precision-recall curve, all labels of all rows pooled ("micro"), as a sum of steps.

    This is what scikit-learn calls average precision, and what AU(PRC) is in all published tables of these data.

    Args:
        scores: a number per row and label, larger for more likely; any shape.
        y: whether the label is on, of the same shape.

    Returns:
        The area, from 0 to 1; NaN if no label is on.

    Example:
        >>> average_precision([[0.9, 0.2], [0.6, 0.8]], [[1, 0], [1, 0]])
        0.833...
    """
    stated: NDArray[np.float64] = np.asarray(scores, np.float64).ravel()
    on: NDArray[np.bool_] = np.asarray(y).astype(bool).ravel()
    if stated.shape != on.shape:
        raise ValueError(f"scores and y must be of the same shape, not {np.shape(scores)} and {np.shape(y)}")
    total = int(on.sum())
    if not total:
        return float("nan")
    order = np.argsort(-stated, kind="stable")
    ranked, hits = stated[order], np.cumsum(on[order])
    # labels with equal scores come in together
    last = np.append(np.flatnonzero(np.diff(ranked)), len(ranked) - 1)
    gained = np.diff(hits[last], prepend=0)
    return float((gained * hits[last] / (last + 1)).sum() / total)


def calibration_error(scores: ArrayLike, y: ArrayLike, bins: int = 20) -> float:
    """Expected calibration error of marginals, all labels pooled: mean gap between stated and observed frequency.

    Example:
        >>> calibration_error([0.25, 0.25, 0.25, 0.25], [0, 0, 0, 1])
        0.0
    """
    stated: NDArray[np.float64] = np.asarray(scores, np.float64).ravel()
    on: NDArray[np.float64] = np.asarray(y, np.float64).ravel()
    which = np.clip((stated * bins).astype(int), 0, bins - 1)
    count = np.bincount(which, minlength=bins)
    gap = np.bincount(which, stated - on, minlength=bins)
    return float(np.abs(gap).sum() / max(1, count.sum()))
