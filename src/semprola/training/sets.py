"""Split-conformal prediction sets: consistent label vectors that contain the truth with a stated probability."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola.circuit import Circuit
from semprola.compiler import compile
from semprola.constraints import table
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import IntractableError, LabelError

_LISTED = 2**12
"""Largest support for which the list of a mixture's best states is exact."""
_FIRST = 16
"""Number of states that are listed at first."""


@dataclass(frozen=True, eq=False)
class PredictionSet:
    """States of the constraint, most probable first.

    Args:
        labels: names of the columns.
        states: 0/1 [states, labels].
        probabilities: probabilities of the states [states].

    Example:
        >>> found = PredictionSet(("cat", "animal"), np.array([[1, 1], [0, 1]]), np.array([0.7, 0.2]))
        >>> len(found), [1, 1] in found, found.certain
        (2, True, {'animal': 1})
        >>> found.circuit.model_count()
        2
    """

    labels: tuple[str, ...]
    states: NDArray[np.int64]
    probabilities: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.states)

    def __contains__(self, state: Any) -> bool:
        """Whether a label vector is in the set."""
        wanted = np.asarray(state)
        if wanted.shape != (len(self.labels),):
            raise LabelError(f"a state has {len(self.labels)} labels, not shape {list(wanted.shape)}")
        return bool((self.states == wanted).all(1).any())

    @property
    def certain(self) -> dict[str, int]:
        """The labels that are the same in all states, with their values."""
        same = (self.states == self.states[0]).all(0)
        return {name: int(self.states[0, j]) for j, name in enumerate(self.labels) if same[j]}

    @cached_property
    def circuit(self) -> Circuit:
        """The set as a circuit, which can be counted, sampled, combined with rules and drawn."""
        return compile(table(self.states, labels=list(self.labels)), labels=list(self.labels))


def conformal_threshold(log_probs: Any, coverage: float) -> float:
    """The log-probability that a state needs to be in a prediction set.

    If calibration rows and new rows come from the same source, the set of all states that reach the threshold contains
    the truth with at least the stated probability, for any model.

    Args:
        log_probs: log-probabilities of the true states of rows that the model was not trained on [rows].
        coverage: the probability with which a set should contain the truth.

    Returns:
        The threshold; -inf if there are too few rows for this coverage, so that only the set of all states suffices.

    Raises:
        ValueError: if there are no rows, or the coverage is not between 0 and 1.

    Example:
        >>> conformal_threshold([-1.0, -2.0, -3.0, -4.0], 0.6)
        -3.0
    """
    if not 0 < coverage < 1:
        raise ValueError(f"coverage must be between 0 and 1, not {coverage!r}")
    values = np.sort(np.asarray(log_probs, np.float64).ravel())[::-1]
    if len(values) == 0:
        raise ValueError("there are no rows to calibrate with")
    rank = math.ceil((len(values) + 1) * coverage)
    return NEGATIVE_INFINITY if rank > len(values) else float(values[rank - 1])


def prediction_sets(p: Any, threshold: float, *, most: int = 2**16) -> list[PredictionSet]:
    """For each row of a distribution, all states whose log-probability reaches the threshold; at least the mode.

    Args:
        p: a distribution with batch shape [rows].
        threshold: from :func:`conformal_threshold`.
        most: largest number of states to list per set.

    Raises:
        IntractableError: if a set is larger, or the distribution is a mixture whose states cannot be ranked exactly.

    Example:
        >>> import semprola as sp
        >>> p = sp.constrain(torch.tensor([[2.0, 0.5]]), "cat | dog")
        >>> prediction_sets(p, -1.5)[0].states.tolist()
        [[1, 1], [1, 0]]
    """
    return grow_sets(lambda rows: p, p.batch_shape[0], threshold, most=most)


def grow_sets(
    distribution: Callable[[Tensor | None], Any], count: int, threshold: float, *, most: int = 2**16
) -> list[PredictionSet]:
    """Like :func:`prediction_sets`, but distributions are made on demand: longer lists are made for fewer rows.

    Args:
        distribution: returns the distribution of some rows, by index; it may ignore the index and return that of all.
    """
    if math.isnan(threshold):
        raise ValueError("the threshold must be a number, not NaN")
    found: dict[int, PredictionSet] = {}
    rows, k = torch.arange(count), _FIRST
    while len(rows):
        p = distribution(rows)
        _check(p)
        states, log_probs = p.top_k(k)
        if len(states) != len(rows):  # the distribution of all rows
            states, log_probs = states[rows], log_probs[rows]
        reaches = (log_probs >= threshold) & (log_probs > NEGATIVE_INFINITY)
        # a list that ends below the threshold, or with the support, is complete
        goes_on = reaches[:, -1] & (states.shape[1] == k)
        for i in torch.nonzero(~goes_on).flatten().tolist():
            found[int(rows[i])] = _set_of(p.labels, states[i], log_probs[i], reaches[i])
        rows = rows[goes_on]
        if len(rows) and k >= most:
            raise IntractableError(f"row {int(rows[0])}: more than {most} states reach the threshold: lower coverage")
        k = min(most, 8 * k)
    return [found[row] for row in range(count)]


def _check(p: Any) -> None:
    if p.log_mixing.shape[-1] > 1 and p.circuit.model_count() > _LISTED:
        raise IntractableError(
            f"states of a mixture over more than {_LISTED} models cannot be ranked exactly: use one component"
        )


def _set_of(labels: Sequence[str], states: Tensor, log_probs: Tensor, reaches: Tensor) -> PredictionSet:
    reaches = reaches.clone()
    reaches[0] = True  # the mode
    chosen, values = states[reaches].cpu().numpy(), log_probs[reaches].exp().cpu().numpy()
    return PredictionSet(tuple(labels), chosen.astype(np.int64), values.astype(np.float64))
