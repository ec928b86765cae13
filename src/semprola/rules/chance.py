"""Is a pattern of labels rarer than chance explains? Fisher's exact test, and the control of false discoveries."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Real = NDArray[np.float64]
_NEGLIGIBLE = 40.0


def log_chance(seen: Whole, first: Whole, second: Whole, rows: Whole) -> Real:
    """The log-probability of so few common rows, if two sets of rows were independent: Fisher's exact test, one-sided.

    Returns:
        log P(X <= seen), where X is hypergeometric; arrays may have any common shape.
    """
    table = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, int(rows.max(initial=0)) + 1)))])
    total = np.full(seen.shape, -np.inf)
    whole = _log_choose(table, rows, second)
    least = np.maximum(0, first + second - rows)
    term_of = seen.copy()
    while (open_ := term_of >= least).any():
        k = np.where(open_, term_of, least)
        term = _log_choose(table, first, k) + _log_choose(table, rows - first, second - k) - whole
        total = np.logaddexp(total, np.where(open_, term, -np.inf))
        term_of -= 1
        rising = term > total - _NEGLIGIBLE
        term_of = np.where(rising, term_of, -1)
    return np.asarray(np.minimum(total, 0.0), dtype=np.float64)


def _log_choose(table: Real, n: Whole, k: Whole) -> Real:
    return np.asarray(table[n] - table[k] - table[n - k], dtype=np.float64)


def q_values(log_p: Real) -> Real:
    """The smallest false-discovery rate at which each hypothesis is rejected (Benjamini and Hochberg 1995)."""
    order = np.argsort(log_p, kind="stable")
    scaled = np.exp(log_p[order]) * len(log_p) / np.arange(1, len(log_p) + 1)
    found = np.empty(len(log_p))
    found[order] = np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
    return found
