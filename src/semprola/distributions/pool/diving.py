"""Diving: a first state of rows for which the circuits do not agree on one.

A dive fixes the labels that the circuits are surest of, and all that follows from them, runs some rounds on what is
left, and repeats until all labels are fixed. Where nothing is left, it begins again with noise and smaller steps.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import torch
from torch import Tensor

from semprola.distributions.pool.oracles import Oracles
from semprola.distributions.pool.propagation import Propagation
from semprola.distributions.pool.rounds import run_rounds
from semprola.engine.numbers import NEGATIVE_INFINITY

_ROUNDS = 8
_WARM = 0.05
"""The temperature at which the rounds of a step begin, relative to the size of the scores."""
_SHARE, _SMALLER = 0.25, 0.6
"""The share of the doubtful labels that a step fixes, and how much less the next attempt does."""
_LIKELY, _DOUBTFUL, _NOISE = 0.25, 0.1, 0.4
"""Ones imply more than zeros: a step begins with labels that are the likeliest ones, if they are that likely. A label
counts as doubtful from the second on."""
_MOST_TRIES = 12
"""Of each attempt."""


@torch.no_grad()
def dive(
    oracles: Oracles,
    propagation: Propagation,
    row: Tensor,
    fixed: Tensor,
    bonus: Tensor,
    size: Tensor,
    until: float,
    found: Callable[[Tensor, Tensor], Tensor],
    settled: Callable[[int], bool],
) -> None:
    """Look for states until every row has one or time is up; attempts go on side by side.

    Args:
        row: the row of each attempt [n].
        fixed: what is known beforehand [labels, n].
        bonus: where to begin [circuits, labels, n].
        size: the size of each attempt's scores [n].
    """
    generator = torch.Generator().manual_seed(0)
    start, dead = propagation.extend(fixed)
    keep = torch.nonzero(~dead)[:, 0]
    row, start, first, size = row[keep], start[:, keep], bonus[:, :, keep], size[keep]
    fixed, own, share = start, first, torch.full((len(row),), _SHARE, dtype=torch.float64)
    noise, tries = torch.zeros_like(start), torch.ones(len(row), dtype=torch.int64)
    for attempt in range(len(row)):
        if attempt and int(row[attempt]) == int(row[attempt - 1]):
            noise[:, attempt] = _fresh(noise[:, attempt], generator)
    while len(row) and time.monotonic() < until:
        made = run_rounds(oracles.select(row, fixed), own, _ROUNDS, size, hot=_WARM, until=until)
        fixed = torch.where(made.agreed, torch.where(fixed.isnan(), made.states, fixed), fixed)
        fixed = _with_surest(fixed, made.leaning + noise, share)
        fixed, dead = propagation.extend(fixed)
        whole = ~dead & ~fixed.isnan().any(0)
        found(row[whole], fixed[:, whole])
        again = dead | whole
        tries = tries + again
        share = torch.where(again, share * _SMALLER, share)
        fixed, own = torch.where(again, start, fixed), torch.where(again, first, made.bonus)
        for attempt in torch.nonzero(again)[:, 0].tolist():
            noise[:, attempt] = _fresh(noise[:, attempt], generator)
        keep = torch.nonzero(tries <= _MOST_TRIES)[:, 0]
        keep = keep[[not settled(r) for r in row[keep].tolist()]]
        row, fixed, start, noise = row[keep], fixed[:, keep], start[:, keep], noise[:, keep]
        own, first, size = own[:, :, keep], first[:, :, keep], size[keep]
        share, tries = share[keep], tries[keep]


def _with_surest(fixed: Tensor, leaning: Tensor, share: Tensor) -> Tensor:
    """Fixed labels, and the surest of the others: a share of those that are doubtful, at least one."""
    free = fixed.isnan()
    least = leaning.masked_fill(~free, NEGATIVE_INFINITY).max(0).values.clamp(_LIKELY, 0.5)
    one = leaning >= least
    sure = torch.where(one, 1 + leaning, -leaning).masked_fill(~free, NEGATIVE_INFINITY)
    count = (share * (free & (leaning > _DOUBTFUL)).sum(0)).long().clamp(min=1)
    rank = sure.argsort(dim=0, descending=True, stable=True).argsort(dim=0)
    return torch.where(free & (rank < count), one.double(), fixed)


def _fresh(like: Tensor, generator: torch.Generator) -> Tensor:
    return _NOISE * (torch.rand(like.shape, generator=generator, dtype=torch.float64).to(like) - 0.5)
