"""What is checked of a constraint that is split: the circuits state it, and the answers of their pool."""

from __future__ import annotations

import random

import torch

import semprola as sp
from semprola.distributions.pool import Limits, independent

from .cases import Compiled

_LIMITS = Limits(rounds=20, nodes=2000, seconds=60)


def _pool(c: Compiled) -> None:
    if c.given or not c.columns:
        return
    rng = random.Random(c.source.seed)
    torch.manual_seed(c.source.seed)
    split = sp.split(c.formula, labels=c.columns, max_nodes=rng.choice([1, 3, 10, 30]))
    states = torch.cartesian_prod(*[torch.tensor([0.0, 1.0], dtype=torch.float64)] * len(c.columns))
    states = states.reshape(-1, len(c.columns))
    inside = torch.as_tensor(c.meant.table)
    assert torch.equal(split.satisfied(states), inside)
    scale = rng.choice([0.0, 0.3, 3.0])
    logits = [scale * torch.randn(2, 1, len(c.columns), dtype=torch.float64) for _ in split.circuits]
    p = independent(split, logits, limits=_LIMITS)
    score = p.log_score(states[:, None].expand(-1, 2, -1))
    assert torch.equal(score > float("-inf"), inside[:, None].expand(-1, 2))
    log_prob = score - score.logsumexp(0)
    lower, upper = p.log_prob_bounds(states[:, None].expand(-1, 2, -1))
    assert bool((lower <= log_prob + 1e-8).all())
    assert bool((log_prob <= upper + 1e-8).all())
    k = min(3, int(inside.sum()))
    found, scores = p.top_k(k)
    assert bool(split.satisfied(found).all())
    assert torch.allclose(scores.T, score.sort(0, descending=True).values[:k])
    assert bool(p.mode_is_exact.all())


CHECKS = (_pool,)
