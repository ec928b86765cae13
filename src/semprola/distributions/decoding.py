"""Which states: decoders, the k best, candidates sorted by probability, and expected scores of label sets.

The mode is the evaluator's own. Expected F1 and Jaccard index are exact. For a set y of k labels,
F1(y, Y) = 2 |y ∩ Y| / (k + |Y|). Since 1 / (k + s) = ∫₀¹ t^(k+s-1) dt,

    E[F1] = Σ_{j ∈ y} Δ_jk   with   Δ_jk = 2 ∫₀¹ t^(k-1) E[Y_j t^|Y|] dt.

E[Y_j t^|Y|] is a marginal of the circuit whose positive literals are weighted by t. It is a polynomial in t, so
Gauss-Legendre quadrature is exact, and all Δ come from one batch of evaluations, for any layer. The Jaccard index of a
given y has |Y \\ y| in place of |Y|.
"""

from __future__ import annotations

import math
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from semprola.distributions.arguments import check_binary, check_labels, flat_rows, is_hidden
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.names import as_rows
from semprola.distributions.set_search import best_f1
from semprola.engine.numbers import NEGATIVE_INFINITY

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


def decode(p: Evaluator, utility: str | Tensor) -> Tensor:
    """The best state [labels, batch] for a named utility, or for gains [labels, batch] of a label being 1."""
    with torch.no_grad():
        if isinstance(utility, Tensor):
            return p.domain.best_total(utility)
        if utility == "mode":
            return p.best[0].clone()
        if utility == "hamming":
            # the expected number of right labels is Σ_j P(Y_j = y_j)
            return p.domain.best_total(2 * p.marginals() - 1)
        if utility in ("f1", "jaccard"):
            return decode_sets(p, utility)[0]
        if utility == "greedy":
            states = p.components.greedy()
            return states.gather(1, p.log_mixing.argmax(0).expand(len(states), 1, -1))[:, 0]
    raise ValueError(
        f"decode takes 'mode', 'hamming', 'f1', 'jaccard', 'greedy' or utilities by label, not {utility!r}"
    )


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


_MOST_NODES = 96
"""Most points of the quadrature: exact for polynomials of degree 191, and for t^1000 to 12 digits."""
_MOST_NUMBERS = 2**23
"""Largest tensor (in numbers) made at once."""
_PAIRS = 512
"""If the support has at most this many states, Jaccard is decoded by comparing all pairs of them."""
_TOP = 8
"""Number of most probable states that are candidates for Jaccard."""


def expected_f1(p: ConstrainedDistribution, value: Any) -> Tensor:
    """See :meth:`ConstrainedDistribution.expected_f1`."""
    evaluator = p.evaluator
    y, shape = _label_rows(p, value)
    total = [
        f1_of(gains(evaluator.select(rows)), empty_probability(evaluator)[rows], y[:, :, rows].double())
        for rows in torch.arange(evaluator.batch, device=y.device).split(batch_step(evaluator))
    ]
    return torch.cat(total, dim=1).to(y.dtype).reshape(shape) if total else y.new_zeros(shape)


def expected_jaccard(p: ConstrainedDistribution, value: Any) -> Tensor:
    """See :meth:`ConstrainedDistribution.expected_jaccard`."""
    y, shape = _label_rows(p, value)
    return _jaccard(p.evaluator, y.double()).to(y.dtype).reshape(shape)


def decode_with_bound(p: ConstrainedDistribution, utility: str) -> tuple[Tensor, Tensor, Tensor]:
    """See :meth:`ConstrainedDistribution.decode_with_bound`."""
    if utility not in ("f1", "jaccard"):
        raise ValueError(f"utility must be 'f1' or 'jaccard', not {utility!r}")
    with torch.no_grad():
        states, value, bound = decode_sets(p.evaluator, utility)
    shaped = states.T.reshape(*p.batch_shape, len(states))
    return shaped, value.reshape(p.batch_shape), bound.reshape(p.batch_shape)


def decode_sets(p: Evaluator, utility: str) -> tuple[Tensor, Tensor, Tensor]:
    """States [labels, batch], their expected utilities and upper bounds [batch]."""
    states, value, bound = _decode_f1(p)
    if utility == "jaccard":
        states, value, bound = _decode_jaccard(p, states, bound)
    dtype = p.domain.dtype
    return states.to(dtype), value.to(dtype), bound.to(dtype)


def gains(p: Evaluator) -> Tensor:
    """Δ_jk: how much label j adds to the expected F1 of a set of k labels [labels, k = 1 … labels, batch]."""
    labels = p.domain.circuit.num_labels
    nodes, weights = _quadrature(labels)
    blank = torch.zeros((labels, 1, 1), dtype=torch.float64, device=p.domain.device)
    tilted = _tilted(p, nodes.log().to(blank.device).reshape(1, -1, 1) + blank)
    powers = weights[:, None] * nodes[:, None] ** torch.arange(labels, dtype=torch.float64)
    return 2 * torch.einsum("jtb,tk->jkb", tilted, powers.to(tilted.device))


def f1_of(delta: Tensor, empty: Tensor, y: Tensor) -> Tensor:
    """Expected F1 [n, rows] of label sets y [labels, n, rows]."""
    count = y.sum(0).long()
    chosen = delta.gather(1, (count - 1).clamp(min=0).expand(len(y), *count.shape))
    return torch.where(count == 0, empty, (chosen * y).sum(0))


def empty_probability(p: Evaluator) -> Tensor:
    """The probability that all labels are 0 [batch]."""
    domain = p.domain
    nothing = torch.zeros((domain.circuit.num_labels, 1, p.batch), dtype=domain.dtype, device=domain.device)
    return p.log_probs(nothing)[0].exp().double()


def batch_step(p: Evaluator) -> int:
    """Number of rows whose Δ are computed at once."""
    return max(1, _MOST_NUMBERS // p.domain.circuit.num_labels**2)


def _decode_f1(p: Evaluator) -> tuple[Tensor, Tensor, Tensor]:
    empty, found = empty_probability(p), []
    if p.batch == 0:
        return empty.new_zeros((p.domain.circuit.num_labels, 0)), empty, empty
    for rows in torch.arange(p.batch, device=empty.device).split(batch_step(p)):
        some = p if len(rows) == p.batch else p.select(rows)
        delta = gains(some)
        found.append(best_f1(some, delta, empty[rows], partial(f1_of, delta, empty[rows])))
    states, values, bounds = zip(*found, strict=True)
    return torch.cat(states, dim=1), torch.cat(values), torch.cat(bounds)


def _decode_jaccard(p: Evaluator, by_f1: Tensor, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best of some candidates; F1 is never below the Jaccard index, so the bound on F1 also bounds it."""
    if p.domain.can_be_listed(_PAIRS):
        return _jaccard_of_all(p)
    listed, _ = top_k(p, _TOP)
    hamming = p.domain.best_total(2 * p.marginals() - 1)
    candidates = torch.cat([by_f1[:, None].double(), hamming[:, None].double(), listed.double()], dim=1)
    value, best = _jaccard(p, candidates).max(0)
    return candidates.gather(1, best.expand(len(candidates), 1, -1))[:, 0], value, torch.maximum(bound, value)


def _jaccard_of_all(p: Evaluator) -> tuple[Tensor, Tensor, Tensor]:
    states = p.domain.all_states().double()
    both = states @ states.T
    either = states.sum(1)[:, None] + states.sum(1) - both
    index = torch.where(either == 0, 1.0, both / either.clamp(min=1))
    log_probs = p.log_probs(p.domain.candidates()).double()
    value, best = (index @ log_probs.exp()).masked_fill(log_probs == NEGATIVE_INFINITY, -1.0).max(0)
    return states[best].T, value, value


def _jaccard(p: Evaluator, y: Tensor) -> Tensor:
    """Expected Jaccard index [n, batch] of label sets y [labels, n, batch]."""
    labels, count, _ = y.shape
    nodes, weights = _quadrature((labels + 1) // 2)
    size = y.sum(0)
    # |Y \ y| counts only the labels outside y
    tilt = (1 - y)[:, :, None] * nodes.log()[:, None].to(y)
    inside = (_tilted(p, tilt.flatten(1, 2)).unflatten(1, (count, len(nodes))) * y[:, :, None]).sum(0)
    powers = nodes[:, None].to(y) ** (size - 1).clamp(min=0)[:, None]
    total = (inside * powers * weights[:, None].to(y)).sum(1)
    return torch.where(size == 0, empty_probability(p), total)


def _tilted(p: Evaluator, tilt: Tensor) -> Tensor:
    """E[Y_j Π_i exp(tilt_i)^Y_i] for each label j [labels, n, batch], for tilts [labels, n, batch or 1]."""
    labels, count, _ = tilt.shape
    if p.batch == 0 or count == 0:
        return tilt.new_zeros((labels, count, p.batch))
    share = p.log_mixing.double() - p.log_partition.double()
    step = max(1, _MOST_NUMBERS // max(1, p.components.size * p.batch))
    every = torch.arange(p.batch, device=tilt.device)
    parts = []
    for first in range(0, count, step):
        some = tilt[:, first : first + step].expand(-1, -1, p.batch)
        copies = some.shape[1]
        ones = some.reshape(labels, 1, copies * p.batch)
        components = p.components.select(every.repeat(copies)).tilted(torch.zeros_like(ones), ones)
        expected = components.marginals() * (components.log_z + share.repeat(1, copies)).exp()
        parts.append(expected.sum(1).view(labels, copies, p.batch))
    return torch.cat(parts, dim=1)


def _label_rows(p: ConstrainedDistribution, value: Any) -> tuple[Tensor, torch.Size]:
    """Label vectors [labels, samples, batch] from a user's argument, and the shape [*sample, *batch]."""
    like = p.evaluator.log_mixing
    y = as_rows(value, p.labels, "y", like)
    found = flat_rows(y, len(p.labels), p.batch_shape, like)
    if p._validate_args:
        check_labels(y)
    return found


def _quadrature(nodes: int) -> tuple[Tensor, Tensor]:
    """Points in (0, 1) and weights, float64."""
    points, weights = np.polynomial.legendre.leggauss(max(1, min(nodes, _MOST_NODES)))
    return torch.from_numpy((points + 1) / 2), torch.from_numpy(weights / 2)
