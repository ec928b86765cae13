"""Marginals, entropies and divergences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from semprola.distributions.numeric import intractable, log_sum_exp

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


def marginals(p: ConstrainedDistribution) -> Tensor:
    """P(Y_j = 1) [labels, batch]."""
    _, ones = p._posterior_on(p._plan(explicit=p._needs_explicit))
    of_components = p._split_columns(ones[: p.circuit.num_labels])
    return (of_components * p._responsibilities).sum(1).clamp(0.0, 1.0)


def entropy(p: ConstrainedDistribution) -> Tensor:
    """Exact entropy [batch]."""
    if p._components == 1 and p._is_deterministic:
        return component_entropies(p)[0]
    if p._can_list_states():
        log_probs = listed(p)
        return -_expectation(log_probs.exp(), log_probs)
    raise intractable("entropy", "entropy_bounds() or entropy_estimate(samples)")


def component_entropies(p: ConstrainedDistribution) -> Tensor:
    """Entropy of each (normalised) component over its circuit's paths [components, batch]; its own if deterministic.

    -E[log f(y) / Z] = log Z - Σ_edges flow · weight - Σ_labels E[log-score].
    """
    return p._component_log_z - expected_log_value(p, p)


def entropy_bounds(p: ConstrainedDistribution) -> tuple[Tensor, Tensor]:
    """Bounds from H(Y | C) ≤ H(Y) ≤ H(Y, C), with C the choice of component and path; and from the marginals."""
    share = p._responsibilities
    mean = marginals(p)
    independent = torch.special.entr(mean).sum(0) + torch.special.entr(1 - mean).sum(0)
    joint = torch.special.entr(share).sum(0) + (share * component_entropies(p)).sum(0)
    upper = torch.minimum(joint, independent)
    if p._is_deterministic:
        return (share * component_entropies(p)).sum(0), upper
    # paths through several units are not states: bound from below by the probability of the best state, which is a
    # number without derivatives
    _, bounds = p._component_bounds()
    best = log_sum_exp(p._log_mixing + bounds, 0) - p._log_partition
    return (-best.detach()).clamp(min=0.0), upper


def expected_log_value(p: ConstrainedDistribution, q: ConstrainedDistribution) -> Tensor:
    """E_p[log f_q(y)] for each component of p [components, batch]; q is p itself or has a single component."""
    zeros, ones = q._observed_scores()
    weights = q._weights
    plan = q._plan(explicit=p._needs_explicit) if weights is not None else p._plan(explicit=p._needs_explicit)
    edge_flows, probability = p._posterior_on(plan)
    total = _expectation(probability, ones) + _expectation(1 - probability, zeros)
    if weights is not None:
        total = total + _expectation(edge_flows, weights)
    return total.view(p._components, p._batch)


def listed(p: ConstrainedDistribution) -> Tensor:
    """Log-probability of every state of the circuit [states, batch]."""
    states = p._all_states()
    return p.log_prob(states.reshape(-1, *[1] * len(p.batch_shape), states.shape[1])).reshape(len(states), p._batch)


def _expectation(probability: Tensor, score: Tensor) -> Tensor:
    """Σ probability · score, with 0 · (-inf) = 0 (and a probability that is zero but for rounding is zero)."""
    impossible = (score == float("-inf")) & (probability <= 64 * torch.finfo(score.dtype).eps)
    return (probability * score.masked_fill(impossible, 0.0)).sum(0)
