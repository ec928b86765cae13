"""Dual decomposition: bonuses on the literals of each circuit that make the circuits agree.

Let f(y) = Σ_j w_j log p_j(y) be the score of a pool. For bonuses λ_j with Σ_j λ_j = 0,

    max_{y ∈ K} f(y)  ≤  D(λ) = Σ_j max_{y ∈ R_j} (w_j log p_j(y) + λ_j · y),

and where the maximisers agree on one y that satisfies every rule, f(y) = D(λ), so y is the mode. A round takes an
accelerated gradient step (Nesterov 2005) on D with each maximum replaced by a soft one, whose temperature falls from
round to round (Jojic, Gould and Koller 2010); every few rounds D itself is computed. On sudokus and queens it takes a
tenth of the rounds of a subgradient method.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch
from torch import Tensor

from semprola.distributions.pool.oracles import Oracles

_EVERY = 4
"""D itself is computed after so many rounds."""
_HOT, _COLD = 0.3, 0.01
"""The first and the last temperature, relative to the size of the scores."""
_STEP = 3.0
_AGREE = 1e-9


@dataclass
class Rounds:
    """What some rounds found for each row of a batch.

    Attributes:
        bound: the smallest D so far [batch].
        bonus: the bonuses of that D [circuits, labels, batch].
        states: the state that all circuits agreed on [labels, batch]; of no meaning where they did not.
        agreed: where they did [batch].
        doubt: how much the circuits disagree about each label [labels, batch].
        leaning: how often a label is one in soft states [labels, batch].
        used: how many rounds each row took [batch].
    """

    bound: Tensor
    bonus: Tensor
    states: Tensor
    agreed: Tensor
    doubt: Tensor
    leaning: Tensor
    used: Tensor


@torch.no_grad()
def run_rounds(
    oracles: Oracles,
    bonus: Tensor,
    count: int,
    size: Tensor,
    floor: Tensor | None = None,
    *,
    hot: float = _HOT,
    until: float = float("inf"),
) -> Rounds:
    """Run rounds until the circuits agree or the bound falls below a floor, at most `count` for each row.

    Args:
        bonus: where to begin [circuits, labels, batch].
        size: the size of the scores, see `Oracles.size_of_scores` [batch].
        floor: the score of a known state [batch]; a bound below it settles the row.
    """
    said = oracles.mentions.to(bonus.device)[:, :, None].double()
    sharing = said.sum(0)
    batch = bonus.shape[2]
    blank = bonus.new_zeros(batch)
    result = Rounds(
        *(blank + float("inf"), bonus.clone(), torch.zeros_like(bonus[0]), blank > 0),
        *(torch.zeros_like(bonus[0]), torch.zeros_like(bonus[0]), blank.clone()),
    )
    rows, own = torch.arange(batch, device=bonus.device), oracles
    point, last, speed = bonus, bonus, blank + 1.0
    soft: Tensor | None = None
    for number in range(count + 1):
        late = time.monotonic() > until
        if number % _EVERY == 0 or number == count or late:
            states, value = own.best(last)
            mean = (said * states).sum(0) / sharing
            doubt = (said * (states - mean)).abs().sum(0)
            better = value < result.bound[rows]
            result.bonus[:, :, rows[better]], result.bound[rows[better]] = last[:, :, better], value[better]
            agreed = (doubt < _AGREE).all(0)
            result.states[:, rows[agreed]], result.agreed[rows[agreed]] = mean[:, agreed].round(), True
            result.doubt[:, rows], result.used[rows] = doubt, float(number)
            result.leaning[:, rows] = mean if soft is None else soft
            done = agreed if floor is None else agreed | (result.bound[rows] < floor[rows])
            keep = torch.nonzero(~done)[:, 0]
            if not len(keep) or number == count or late:
                break
            if len(keep) < len(rows):
                own, rows, speed = own.select(keep), rows[keep], speed[keep]
                point, last, size = point[:, :, keep], last[:, :, keep], size[keep]
                soft = None if soft is None else soft[:, keep]
        temperature = size * hot * (_COLD / hot) ** min(1.0, number / (0.8 * count))
        wanted = own.leaning(point, temperature)
        soft = (said * wanted).sum(0) / sharing
        slope = said * (wanted - soft)
        new = point - _STEP * temperature * slope
        restart = (slope * (new - last)).sum((0, 1)) > 0
        faster = torch.where(restart, 1.0, (1 + (1 + 4 * speed.square()).sqrt()) / 2)
        point = new + torch.where(restart, 0.0, (speed - 1) / faster) * (new - last)
        last, speed = new, faster
    return result
