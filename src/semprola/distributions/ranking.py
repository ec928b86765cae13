"""The most probable states, and given candidates sorted by probability."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from semprola.distributions.arguments import check_binary, is_hidden
from semprola.distributions.evaluator import Evaluator
from semprola.engine.numbers import NEGATIVE_INFINITY

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


def top_k(p: Evaluator, k: int) -> tuple[Tensor, Tensor]:
    """The k best states [labels, k, batch] and their log-probabilities [k, batch]."""
    if not p.is_single and p.domain.can_be_listed():
        candidates = p.domain.candidates()
    else:
        candidates, _ = p.components.ranked(k)
    states, log_probs = _score(p, candidates)
    states, log_probs = states[:, :k], log_probs[:k]
    states = torch.where(log_probs == NEGATIVE_INFINITY, states[:, :1], states)
    if states.shape[1] < k:
        missing = k - states.shape[1]
        states = torch.cat([states, states[:, :1].expand(-1, missing, -1)], dim=1)
        log_probs = torch.cat([log_probs, log_probs.new_full((missing, p.batch), NEGATIVE_INFINITY)])
    return states, log_probs


def rescore(p: ConstrainedDistribution, states: Any, log_prior: Any, weight: float) -> tuple[Tensor, Tensor]:
    """See :meth:`ConstrainedDistribution.rescore`."""
    like, labels = p.evaluator.log_mixing, len(p.labels)
    rows = _as_tensor(states, f"states must be numbers [*batch, n, {labels}]")
    if rows.dim() < 2 or rows.shape[-1] != labels:
        raise ValueError(f"expected candidates [*batch, n, {labels}], got shape {tuple(rows.shape)}")
    check_binary(rows, "states")
    shape, count = p.batch_shape, rows.shape[-2]
    prior = _as_tensor(log_prior, "log_prior must be numbers [*batch, n]").to(like)
    _check_prior(prior, weight)
    try:
        rows = rows.to(like).expand(*shape, count, labels)
        prior = prior.expand(*shape, count)
    except RuntimeError:
        fits = f"batch {tuple(shape)} of {count} candidates"
        raise ValueError(f"states {tuple(rows.shape)} or log_prior {tuple(prior.shape)} do not fit {fits}") from None
    own = p.log_prob(rows.movedim(-2, 0)).movedim(0, -1)
    # a prior of -inf excludes a state even if the weight is zero; states that violate the constraint stay excluded
    excluded = prior == NEGATIVE_INFINITY
    scores = own + weight * prior.masked_fill(excluded, 0.0)
    scores = scores.masked_fill(excluded | (own == NEGATIVE_INFINITY), NEGATIVE_INFINITY)
    scores, order = scores.sort(dim=-1, descending=True, stable=True)
    return rows.gather(-2, order.unsqueeze(-1).expand(rows.shape)), scores


def _as_tensor(value: Any, wanted: str) -> Tensor:
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"{wanted}, not {type(value).__name__}") from None


def _check_prior(prior: Tensor, weight: Any) -> None:
    """Refuse priors and weights that would rank a candidate first whatever its probability."""
    factor = _as_tensor(weight, "weight must be a finite number")
    if not is_hidden(factor) and not bool(torch.isfinite(factor).all()):
        raise ValueError(f"weight must be a finite number, not {weight}")
    if not is_hidden(prior) and not bool((prior < math.inf).all()):
        raise ValueError("log_prior must contain finite numbers, or -inf to leave a candidate out, but has NaN or inf")


def _score(p: Evaluator, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Candidates [labels, n, batch], best first, and their log-probabilities [n, batch] (-inf: a repetition)."""
    log_probs = p.log_probs(candidates).masked_fill(_repeated(candidates.permute(1, 2, 0)), NEGATIVE_INFINITY)
    log_probs, order = log_probs.sort(dim=0, descending=True, stable=True)
    return candidates.gather(1, order.expand(len(candidates), -1, -1)), log_probs


def _repeated(rows: Tensor) -> Tensor:
    """Whether a row equals an earlier one of its column: bool [n, batch] for rows [n, batch, labels]."""
    count, batch, _ = rows.shape
    number = torch.unique(rows.flatten(0, 1), dim=0, return_inverse=True)[1].view(count, batch)
    ordered, order = number.sort(dim=0, stable=True)
    same = torch.zeros_like(ordered, dtype=torch.bool)
    same[1:] = ordered[1:] == ordered[:-1]
    return torch.zeros_like(same).scatter(0, order, same)
