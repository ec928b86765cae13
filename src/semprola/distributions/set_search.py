"""The state of the constraint with the largest expected F1, and an upper bound for all states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from semprola.distributions.evaluator import Evaluator

_STEPS = 60
"""Most steps of the search for multipliers; it ends earlier in all but contrived cases."""
_TOLERANCE = 1e-9
"""Smaller differences of expected F1 count as rounding errors."""


def best_f1(
    p: Evaluator, delta: Tensor, empty: Tensor, score: Callable[[Tensor], Tensor]
) -> tuple[Tensor, Tensor, Tensor]:
    """The best state found [labels, batch], its expected F1 and an upper bound [batch].

    For every number k of labels, max { Σ y_j Δ_jk : y in the constraint, |y| = k } is bounded by the Lagrangian
    relaxation min_λ max_y Σ y_j (Δ_jk - λ) + λ k. One pass over the circuit finds the inner maximum. Each state is a
    line in λ; the next multiplier is where the lines of the best known states with fewer and with more labels meet.
    If no state lies above their crossing, the bound is tight. Sizes whose bound is below the value of a known state are
    dropped.

    Args:
        delta: Δ [labels, k = 1 … labels, batch].
        empty: probability of the empty set [batch]; 0 where it violates the constraint, so that it is never chosen.
        score: expected F1 [n, batch] of sets [labels, n, batch].
    """
    if p.domain.can_be_listed():
        return _best_listed(p, score)
    best = _Best(p, score)
    best.offer(torch.zeros_like(delta[:, 0]), torch.arange(p.batch, device=empty.device), empty)
    size = torch.arange(1, delta.shape[1] + 1, device=delta.device, dtype=delta.dtype)
    ordered = delta.sort(dim=0, descending=True).values
    relaxed = ordered.cumsum(0).diagonal(dim1=0, dim2=1).T  # without the constraint: the k largest Δ_jk
    tracks = _Tracks(p, delta, size, relaxed, best)
    after = torch.cat([ordered[1:], ordered[-1:] - 1.0])
    tracks.try_multipliers(((ordered + after) / 2).diagonal(dim1=0, dim2=1).T)
    tracks.bracket()
    for _ in range(_STEPS):
        if not tracks.step():
            break
    return best.states, best.value, torch.maximum(best.value, tracks.bound.amax(0))


class _Best:
    """The best state of each row found so far."""

    def __init__(self, p: Evaluator, score: Callable[[Tensor], Tensor]) -> None:
        self.score = score
        starts = [p.best[0], p.domain.best_total(2 * p.marginals() - 1)]
        candidates = torch.stack([y.double() for y in starts], dim=1)
        self.value, index = score(candidates).max(0)
        self.states = candidates.gather(1, index.expand(len(candidates), 1, -1))[:, 0]

    def offer(self, states: Tensor, row: Tensor, values: Tensor) -> None:
        """Offer states [labels, n] for the rows [n], with their expected F1 [n]."""
        top = self.value.scatter_reduce(0, row, values, "amax")
        winner = torch.nonzero((values == top[row]) & (values > self.value[row]))[:, 0]
        self.states[:, row[winner]] = states[:, winner]
        self.value = top


class _Tracks:
    """For each size k and row, the states with fewer and with more labels whose lines bound the maximum."""

    def __init__(self, p: Evaluator, delta: Tensor, size: Tensor, relaxed: Tensor, best: _Best) -> None:
        self.p, self.delta, self.best = p, delta, best
        self.size = size[:, None].expand_as(relaxed)
        self.row = torch.arange(relaxed.shape[1], device=size.device).expand_as(relaxed)
        self.bound = relaxed.clone()
        self.done = torch.zeros_like(self.bound, dtype=torch.bool)
        # value and number of labels of the state below and of the state above
        self.low = torch.zeros((2, *self.bound.shape), dtype=delta.dtype, device=delta.device)
        self.high = torch.zeros_like(self.low)

    @property
    def open(self) -> Tensor:
        """Which sizes may still have a better state than the best known one."""
        return ~self.done & (self.bound > self.best.value + _TOLERANCE)

    def try_multipliers(self, multiplier: Tensor) -> None:
        """Tighten the bounds with these multipliers [k, batch]."""
        where = self.open
        if bool(where.any()):
            self._solve(where, multiplier[where])

    def bracket(self) -> None:
        """Find the lines of the states with the fewest and with the most labels."""
        where = self.open
        if not bool(where.any()):
            return
        beyond = self.delta.sum(0)[where] + 1.0
        for lines, multiplier in ((self.low, beyond), (self.high, -beyond)):
            lines[:, where] = self._solve(where, multiplier)
        size = self.size
        impossible = where & ((self.low[1] > size) | (self.high[1] < size))
        self.bound = self.bound.masked_fill(impossible, 0.0)
        self.done |= impossible | (where & ((self.low[1] == size) | (self.high[1] == size)))

    def step(self) -> bool:
        """Try the multiplier where the two lines meet; returns whether anything was left to do."""
        where = self.open
        if not bool(where.any()):
            return False
        (low, fewer), (high, more) = self.low[:, where], self.high[:, where]
        multiplier = (high - low) / (more - fewer)
        found, count = self._solve(where, multiplier)
        size = self.size[where]
        settled = (found - multiplier * count <= low - multiplier * fewer + _TOLERANCE) | (count == size)
        below = count < size
        line = torch.stack([found, count])
        self.low[:, where] = torch.where(below, line, self.low[:, where])
        self.high[:, where] = torch.where(below, self.high[:, where], line)
        self.done[where] = settled
        return True

    def _solve(self, where: Tensor, multiplier: Tensor) -> Tensor:
        """Maximise Σ y_j (Δ_jk - λ): value Σ y_j Δ_jk and number of labels of the state, [2, chosen]."""
        delta, row, size = self.delta[:, where], self.row[where], self.size[where]
        states = self.p.domain.best_total(delta - multiplier, row)
        total, count = (states * delta).sum(0), states.sum(0)
        bound = total + multiplier * (size - count)
        self.bound[where] = torch.minimum(self.bound[where], bound)
        own = self.delta[:, (count.long() - 1).clamp(min=0), row]
        self.best.offer(states, row, torch.where(count == 0, -1.0, (states * own).sum(0)))
        return torch.stack([total, count])


def _best_listed(p: Evaluator, score: Callable[[Tensor], Tensor]) -> tuple[Tensor, Tensor, Tensor]:
    states = p.domain.all_states()
    everywhere = p.domain.candidates()
    allowed = p.domain.satisfied(everywhere)
    contradicted = p.domain.contradicts(everywhere)
    if contradicted is not None:
        allowed = allowed & ~contradicted
    candidates = states.T.double()
    value = torch.full((p.batch,), -1.0, dtype=torch.float64, device=states.device)
    best = torch.zeros((p.batch,), dtype=torch.int64, device=states.device)
    step = max(1, 2**22 // max(1, len(candidates) * p.batch))
    for first in range(0, len(states), step):
        some = candidates[:, first : first + step, None].expand(-1, -1, p.batch)
        top, index = score(some).masked_fill(~allowed[first : first + step], -1.0).max(0)
        best = torch.where(top > value, index + first, best)
        value = torch.maximum(top, value)
    return candidates[:, best], value, value
