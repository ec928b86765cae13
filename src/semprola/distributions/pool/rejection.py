"""Exact samples of a pool by rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from semprola.distributions.arguments import rows_named
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.numeric import log_sum_exp
from semprola.distributions.pool.propagation import propagation_of
from semprola.errors import IntractableError

if TYPE_CHECKING:
    from semprola.distributions.pool.distribution import PoolDistribution

_FIRST, _MOST_AT_ONCE = 32, 2**22
"""Draws of the first attempt; and the most numbers of one attempt."""


@dataclass(frozen=True)
class Drawn:
    """Samples by rejection.

    Attributes:
        states: exact samples [*sample_shape, *batch, labels].
        draws: how many draws each row of the batch took [*batch].
    """

    states: Tensor
    draws: Tensor


@torch.no_grad()
def draw(p: PoolDistribution, shape: torch.Size, generator: torch.Generator | None, most: int) -> Drawn:
    """See :meth:`PoolDistribution.draw`; draws stop for every row as soon as it has its samples."""
    wanted, batch, labels = shape.numel(), p.batch_shape.numel(), len(p.labels)
    like = p.members[0].evaluator.log_mixing
    states = torch.zeros((wanted, batch, labels), dtype=like.dtype, device=like.device)
    have = torch.zeros(batch, dtype=torch.int64, device=like.device)
    draws = torch.zeros_like(have)
    proposal = _proposal(p)
    attempt = max(_FIRST, 2 * wanted)
    while bool(((have < wanted) & (draws < most)).any()):
        rows = torch.nonzero((have < wanted) & (draws < most))[:, 0]
        count = max(1, min(attempt, most, _MOST_AT_ONCE // max(1, labels * len(rows))))
        y, accepted = proposal.attempt(rows, count, generator)
        for i, row in enumerate(rows.tolist()):
            good = torch.nonzero(accepted[:, i])[:, 0]
            need = wanted - int(have[row])
            taken = good[:need]
            states[int(have[row]) : int(have[row]) + len(taken), row] = y[:, taken, i].T
            have[row] += len(taken)
            draws[row] += count if len(good) < need else int(taken[-1]) + 1
        attempt *= 2
    short = have < wanted
    if bool(short.any()):
        rate = float(have[short].sum() / draws[short].sum())
        raise IntractableError(
            f"sampling by rejection is hopeless{rows_named(short, p.batch_shape)}: {int(have[short].sum()):,} of "
            f"{int(draws[short].sum()):,} draws satisfied all rules (a rate of {rate:.1g}): raise most= in p.draw, or "
            "use p.mode or p.top_k"
        )
    return Drawn(states.reshape(*shape, *p.batch_shape, labels), draws.reshape(p.batch_shape))


def _proposal(p: PoolDistribution) -> Any:
    parts = [member.evaluator.components for member in p.members]
    if all(isinstance(part, IndependentLabels) and part.count == 1 for part in parts):
        return _Pooled(p)
    return _Mixture(p)


class _Pooled:
    """For independent labels: their pooled log-odds on the circuit that leaves the fewest states."""

    def __init__(self, p: PoolDistribution) -> None:
        self.p = p
        evaluators = [member.evaluator for member in p.members]
        odds = sum(w * e.components.odds for w, e in zip(p.weights, evaluators, strict=True))  # type: ignore[attr-defined]
        self.choices = [
            type(e)(IndependentLabels(e.domain, torch.as_tensor(odds), 1), e.log_mixing) for e in evaluators
        ]
        self.best = torch.stack([choice.log_partition for choice in self.choices]).argmin(0)

    def attempt(self, rows: Tensor, count: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:

        y = rows.new_zeros((len(self.p.labels), count, len(rows)), dtype=self.p.members[0].evaluator.log_mixing.dtype)
        for number, choice in enumerate(self.choices):
            own = torch.nonzero(self.best[rows] == number)[:, 0]
            if len(own):
                y[:, :, own] = choice.select(rows[own]).sample(count, generator)
        return y, _obeys(self.p, y, rows)


class _Mixture:
    """For any members: the mixture Σ_j w_j p_j, which is nowhere smaller than Π_j p_j^w_j."""

    def __init__(self, p: PoolDistribution) -> None:
        self.p = p
        self.evaluators = [member.evaluator for member in p.members]

    def attempt(self, rows: Tensor, count: int, generator: torch.Generator | None) -> tuple[Tensor, Tensor]:

        own = [evaluator.select(rows) for evaluator in self.evaluators]
        member = torch.multinomial(self.p.weights, count * len(rows), replacement=True, generator=generator)
        member = member.reshape(count, len(rows))
        y = rows.new_zeros((len(self.p.labels), count, len(rows)), dtype=self.p.members[0].evaluator.log_mixing.dtype)
        for number, evaluator in enumerate(own):
            chosen = member == number
            most = int(chosen.sum(0).max())
            if most:
                drawn = evaluator.sample(most, generator)
                place = (chosen.cumsum(0) - 1).clamp(min=0)
                y = torch.where(chosen, drawn.gather(1, place.expand(len(y), -1, -1)), y)
        each = torch.stack([evaluator.log_probs(y) for evaluator in own])
        weights = self.p.weights[:, None, None]
        rate = (weights * each).sum(0) - log_sum_exp(weights.log() + each, 0)
        coin = torch.rand(rate.shape, generator=generator, dtype=torch.float64).log().to(rate)
        return y, (coin < rate) & _obeys(self.p, y, rows)


def _obeys(p: PoolDistribution, y: Tensor, rows: Tensor) -> Tensor:
    """Whether y [labels, samples, rows] satisfies all rules and the evidence: bool [samples, rows]."""
    inside = propagation_of(p.split).satisfied(y.flatten(1)).view(y.shape[1:])
    contradicted = p.members[0].evaluator.domain.select(rows).contradicts(y)
    return inside if contradicted is None else inside & ~contradicted
