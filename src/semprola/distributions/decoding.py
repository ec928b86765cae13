"""States: the mode, other decoders, the k best, samples."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from semprola.distributions import expected
from semprola.distributions.information import marginals
from semprola.distributions.numeric import log_sum_exp
from semprola.engine import Literals, indicators, search

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution

_NEGATIVE_INFINITY = float("-inf")
_LISTED = 256
"""A mixture with no more states than this settles an unproven mode by listing them."""


def mode(p: ConstrainedDistribution) -> tuple[Tensor, Tensor]:
    """The best state found [labels, batch] and whether it is proven best [batch].

    A single deterministic circuit has its exact maximum. For mixtures the candidates are every component's maximum,
    scored under the whole mixture; Σ_c π_c max f_c bounds what any state can reach.
    """
    candidates, bounds = p._component_bounds()
    if p._components == 1 and p._is_deterministic:
        return candidates[:, 0], torch.ones(p._batch, dtype=torch.bool, device=candidates.device)
    states, log_prob = _best_of(p, candidates)
    upper = log_sum_exp(p._log_mixing + bounds, 0) - p._log_partition
    proven = upper <= log_prob + _tolerance(log_prob)
    # a program that is traced cannot branch on what it computes
    if p._can_list_states(_LISTED) and (torch.compiler.is_compiling() or not bool(proven.all())):
        states, _ = _best_of(p, p._all_states().T[:, :, None].expand(-1, -1, p._batch))
        proven = torch.ones_like(proven)
    return states, proven


def decode(p: ConstrainedDistribution, utility: str | Tensor) -> Tensor:
    """See :meth:`ConstrainedDistribution.decode`; [labels, batch]."""
    with torch.no_grad():
        if isinstance(utility, Tensor):
            gains, shape = p._flat_rows(utility)
            if shape != p.batch_shape:
                raise ValueError(f"utilities of shape {tuple(utility.shape)} do not fit batch {tuple(p.batch_shape)}")
            if not bool(torch.isfinite(gains).all()):
                raise ValueError("utilities must be finite numbers")
            return _best_total(p, gains[:, 0])
        if utility == "mode":
            return p._best[0]
        if utility == "hamming":
            # the expected number of right labels is Σ_j P(Y_j = y_j)
            return _best_total(p, 2 * marginals(p) - 1)
        if utility in ("f1", "jaccard"):
            return expected.decode(p, utility)[0]
        if utility == "greedy":
            return _greedy(p)
    raise ValueError(
        f"decode takes 'mode', 'hamming', 'f1', 'jaccard', 'greedy' or utilities by label, not {utility!r}"
    )


def sample(p: ConstrainedDistribution, count: int, generator: torch.Generator | None) -> Tensor:
    """Samples [labels, count, batch]."""
    plan, literals = p._evaluation()
    device = literals.leaves.device
    columns = torch.arange(p._batch, device=device).expand(count, -1)
    if p._components > 1:
        share = p._responsibilities.T
        component = torch.multinomial(share, count, replacement=True, generator=generator).T if count else columns[:0]
        columns = component * p._batch + columns
    if count == 0:
        return literals.leaves.new_zeros((p.circuit.num_labels, 0, p._batch))
    return search.sample(plan, p._weights, literals, columns, generator)[: p.circuit.num_labels]


def top_k(p: ConstrainedDistribution, k: int) -> tuple[Tensor, Tensor]:
    """The k best states [labels, k, batch] and their log-probabilities [k, batch]."""
    if not (p._components == 1 and p._is_deterministic) and p._can_list_states():
        candidates = p._all_states().T[:, :, None].expand(-1, -1, p._batch)
    else:
        candidates = _ranked(p, k)
    states, log_probs = _score(p, candidates)
    states, log_probs = states[:, :k], log_probs[:k]
    states = torch.where(log_probs == _NEGATIVE_INFINITY, states[:, :1], states)
    if states.shape[1] < k:
        missing = k - states.shape[1]
        states = torch.cat([states, states[:, :1].expand(-1, missing, -1)], dim=1)
        log_probs = torch.cat([log_probs, log_probs.new_full((missing, p._batch), _NEGATIVE_INFINITY)])
    return states, log_probs


def _ranked(p: ConstrainedDistribution, k: int) -> Tensor:
    """The k best paths of every component, as candidate states [labels, components * k, batch]."""
    literals = Literals.of(p._structure.layer_explicit, *p._observed_scores(), maximize=True)
    states, _ = search.top_k(p._structure.layer_explicit, p._weights, literals.leaves, k)
    labels = p.circuit.num_labels
    return states[:labels].reshape(labels, states.shape[1] * p._components, p._batch)


def _best_of(p: ConstrainedDistribution, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The best of candidates [labels, n, batch] under the whole mixture [labels, batch], and its log-probability."""
    log_prob, best = _log_probs(p, candidates).max(0)
    return candidates.gather(1, best.expand(len(candidates), 1, -1))[:, 0], log_prob


def _score(p: ConstrainedDistribution, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """Candidates [labels, n, batch], best first, and their log-probabilities [n, batch] (-inf: a repetition)."""
    log_probs = _log_probs(p, candidates).masked_fill(_repeated(candidates.permute(1, 2, 0)), _NEGATIVE_INFINITY)
    log_probs, order = log_probs.sort(dim=0, descending=True, stable=True)
    return candidates.gather(1, order.expand(len(candidates), -1, -1)), log_probs


def _log_probs(p: ConstrainedDistribution, candidates: Tensor) -> Tensor:
    """Log-probabilities [n, batch] of candidates [labels, n, batch]."""
    rows = candidates.permute(1, 2, 0).reshape(candidates.shape[1], *p.batch_shape, len(candidates))
    return p.log_prob(rows).reshape(candidates.shape[1], p._batch)


def _repeated(rows: Tensor) -> Tensor:
    """Whether a row equals an earlier one of its column: bool [n, batch] for rows [n, batch, labels]."""
    count, batch, _ = rows.shape
    number = torch.unique(rows.flatten(0, 1), dim=0, return_inverse=True)[1].view(count, batch)
    ordered, order = number.sort(dim=0, stable=True)
    same = torch.zeros_like(ordered, dtype=torch.bool)
    same[1:] = ordered[1:] == ordered[:-1]
    return torch.zeros_like(same).scatter(0, order, same)


def _best_total(p: ConstrainedDistribution, gains: Tensor) -> Tensor:
    """The state of the support with the largest Σ_j gains_j y_j [labels, batch], for gains [labels, batch]."""
    plan = p._structure.constraint_explicit if p._needs_explicit else p._structure.constraint
    ones = torch.cat([gains, gains.new_zeros((len(p.circuit.given), p._batch))])
    zeros = torch.zeros_like(ones)
    if p._observed is not None:
        no_zero, no_one = indicators(p._observed, p._dtype)
        zeros, ones = zeros + no_zero, ones + no_one
    states, _ = search.maximize(plan, None, Literals.of(plan, zeros, ones, maximize=True))
    return states[: len(gains)]


def _greedy(p: ConstrainedDistribution) -> Tensor:
    weights = p._weights
    if weights is None:
        raise ValueError("decode('greedy') is the published decoder of single-circuit layers; use 'mode'")
    plan, literals = p._evaluation()
    states = search.follow(plan, weights, literals)[: p.circuit.num_labels]
    states = p._split_columns(states)
    chosen = p._log_mixing.argmax(0)
    return states.gather(1, chosen.expand(len(states), 1, -1))[:, 0]


def _tolerance(log_probs: Tensor) -> Tensor:
    """Rounding errors below which a bound and a value are the same number."""
    return 64 * torch.finfo(log_probs.dtype).eps * (1 + log_probs.abs())
