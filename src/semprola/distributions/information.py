"""Entropies and divergences."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.distributions.evaluator import Evaluator
from semprola.distributions.numeric import intractable, log_sum_exp, not_negative
from semprola.engine.numbers import NEGATIVE_INFINITY


def entropy(p: Evaluator) -> Tensor:
    """Exact entropy [batch]."""
    if p.is_single:
        return not_negative(p.components.entropies()[0])
    if p.domain.can_be_listed():
        log_probs = listed(p)
        return not_negative(-(log_probs.exp() * log_probs.masked_fill(log_probs == NEGATIVE_INFINITY, 0.0)).sum(0))
    raise intractable("entropy", "entropy_bounds() or entropy_estimate(samples)")


def entropy_bounds(p: Evaluator) -> tuple[Tensor, Tensor]:
    """Bounds from H(Y | C) ≤ H(Y) ≤ H(Y, C), where C is the choice of component and path, and from the marginals."""
    share, mean, entropies = p.responsibilities, p.marginals(), not_negative(p.components.entropies())
    independent = torch.special.entr(mean).sum(0) + torch.special.entr(1 - mean).sum(0)
    joint = torch.special.entr(share).sum(0) + (share * entropies).sum(0)
    upper = torch.minimum(joint, independent)
    if p.components.is_deterministic:
        return torch.minimum((share * entropies).sum(0), upper), upper
    # paths through several units are not states, so bound from below by the probability of the best state, which has
    # no derivative
    _, bounds = p.components.best()
    best = log_sum_exp(p.log_mixing + bounds, 0) - p.log_partition
    return torch.minimum((-best.detach()).clamp(min=0.0), upper), upper


def divergence(p: Evaluator, q: Evaluator) -> Tensor:
    """KL(p || q) [batch], exact; +inf where q excludes what p allows."""
    if p.is_single and q.is_single and p.domain.has_givens_of(q.domain):
        cross = p.components.expected_log_scores(q.components)
        if cross is not None:
            gap = -p.components.entropies()[0] - (cross[0] - q.log_partition)
            return not_negative(gap).masked_fill(p.domain.may_contradict(q.domain), float("inf"))
    if p.domain.can_be_listed():
        of_p, of_q = listed(p), listed(q)
        impossible, excluded = of_p == NEGATIVE_INFINITY, of_q == NEGATIVE_INFINITY
        gap = of_p.masked_fill(impossible, 0.0) - of_q.masked_fill(excluded, 0.0)
        return not_negative((of_p.exp() * gap).sum(0)).masked_fill((excluded & ~impossible).any(0), float("inf"))
    raise intractable("kl_divergence", "the mean of p.log_prob(y) - q.log_prob(y) over samples y of p")


def listed(p: Evaluator) -> Tensor:
    """Log-probability of every state of the circuit [states, batch]."""
    return p.log_probs(p.domain.candidates())
