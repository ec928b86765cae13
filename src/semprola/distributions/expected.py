"""Expected F1 and Jaccard index of a label set, exactly, and the states that maximise them.

For a set y of k labels, F1(y, Y) = 2 |y ∩ Y| / (k + |Y|). Since 1 / (k + s) = ∫₀¹ t^(k+s-1) dt,

    E[F1] = Σ_{j ∈ y} Δ_jk   with   Δ_jk = 2 ∫₀¹ t^(k-1) E[Y_j t^|Y|] dt.

E[Y_j t^|Y|] is a marginal of the circuit whose positive literals are weighted by t, and a polynomial in t, so that
Gauss-Legendre quadrature is exact: all Δ come from one batch of evaluations, of any layer. The Jaccard index of a given
y has |Y \\ y| in place of |Y|.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from semprola.distributions.names import as_rows
from semprola.distributions.set_search import best_f1
from semprola.engine import Literals, log_value, posterior

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution

_MOST_NODES = 96
"""Points of the quadrature. Enough for polynomials of degree 191, and for t^1000 to 12 digits."""
_MOST_NUMBERS = 2**23
"""Largest tensor made at once."""
_PAIRS = 512
"""A support with no more states than this is decoded for Jaccard by comparing all pairs of them."""
_TOP = 8
"""Most probable states that are candidates for Jaccard."""


def expected_f1(p: ConstrainedDistribution, value: Any) -> Tensor:
    """See :meth:`ConstrainedDistribution.expected_f1`."""
    y, shape = p._flat_rows(as_rows(value, p.labels, "y", p.log_mixing))
    total = [
        f1_of(gains(p, rows), empty_probability(p)[rows], y[:, :, rows].double())
        for rows in torch.arange(p._batch, device=y.device).split(batch_step(p))
    ]
    return torch.cat(total, dim=1).to(p._dtype).reshape(shape) if total else y.new_zeros(shape)


def expected_jaccard(p: ConstrainedDistribution, value: Any) -> Tensor:
    """See :meth:`ConstrainedDistribution.expected_jaccard`."""
    y, shape = p._flat_rows(as_rows(value, p.labels, "y", p.log_mixing))
    return _jaccard(p, y.double()).to(p._dtype).reshape(shape)


def decode_with_bound(p: ConstrainedDistribution, utility: str) -> tuple[Tensor, Tensor, Tensor]:
    """See :meth:`ConstrainedDistribution.decode_with_bound`."""
    if utility not in ("f1", "jaccard"):
        raise ValueError(f"utility must be 'f1' or 'jaccard', not {utility!r}")
    with torch.no_grad():
        states, value, bound = decode(p, utility)
    return p._shaped(states), value.reshape(p.batch_shape), bound.reshape(p.batch_shape)


def decode(p: ConstrainedDistribution, utility: str) -> tuple[Tensor, Tensor, Tensor]:
    """States [labels, batch], their expected utilities and upper bounds [batch]."""
    states, value, bound = _decode_f1(p)
    if utility == "jaccard":
        states, value, bound = _decode_jaccard(p, states, bound)
    return states.to(p._dtype), value.to(p._dtype), bound.to(p._dtype)


def gains(p: ConstrainedDistribution, rows: Tensor) -> Tensor:
    """Δ, what label j adds to the expected F1 of a set of k labels, for some rows [labels, k = 1 … labels, rows]."""
    nodes, weights = _quadrature(p.circuit.num_labels)
    some = p if len(rows) == p._batch else _rows(p, rows)
    blank = torch.zeros((p.circuit.num_labels, 1, 1), dtype=torch.float64, device=p._log_mixing.device)
    tilted = _tilted(some, nodes.log().to(blank.device).reshape(1, -1, 1) + blank)
    powers = weights[:, None] * nodes[:, None] ** torch.arange(p.circuit.num_labels, dtype=torch.float64)
    return 2 * torch.einsum("jtb,tk->jkb", tilted, powers.to(tilted.device))


def f1_of(delta: Tensor, empty: Tensor, y: Tensor) -> Tensor:
    """Expected F1 [n, rows] of label sets y [labels, n, rows]."""
    count = y.sum(0).long()
    chosen = delta.gather(1, (count - 1).clamp(min=0).expand(len(y), *count.shape))
    return torch.where(count == 0, empty, (chosen * y).sum(0))


def empty_probability(p: ConstrainedDistribution) -> Tensor:
    """The probability that no label holds [batch]."""
    nothing = torch.zeros(p.circuit.num_labels, dtype=p._dtype, device=p._log_mixing.device)
    return p.log_prob(nothing.expand(*p.batch_shape, -1)).reshape(p._batch).exp().double()


def batch_step(p: ConstrainedDistribution) -> int:
    """Rows whose Δ are made at once."""
    return max(1, _MOST_NUMBERS // p.circuit.num_labels**2)


def _decode_f1(p: ConstrainedDistribution) -> tuple[Tensor, Tensor, Tensor]:
    empty, found = empty_probability(p), []
    if p._batch == 0:
        return empty.new_zeros((p.circuit.num_labels, 0)), empty, empty
    for rows in torch.arange(p._batch, device=empty.device).split(batch_step(p)):
        some = p if len(rows) == p._batch else _rows(p, rows)
        delta = gains(some, torch.arange(len(rows)))
        found.append(best_f1(some, delta, empty[rows], partial(f1_of, delta, empty[rows])))
    states, values, bounds = zip(*found, strict=True)
    return torch.cat(states, dim=1), torch.cat(values), torch.cat(bounds)


def _decode_jaccard(p: ConstrainedDistribution, by_f1: Tensor, bound: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The best of some candidates; F1 is never below the Jaccard index, so that its bound is one."""
    if p._can_list_states(_PAIRS):
        return _jaccard_of_all(p)
    top, _ = p.top_k(_TOP)
    listed = top.reshape(p._batch, _TOP, -1).permute(2, 1, 0).double()
    hamming = p.decode("hamming").reshape(p._batch, -1).T.double()
    candidates = torch.cat([by_f1[:, None].double(), hamming[:, None], listed], dim=1)
    values = _jaccard(p, candidates)
    value, best = values.max(0)
    return candidates.gather(1, best.expand(len(candidates), 1, -1))[:, 0], value, torch.maximum(bound, value)


def _jaccard_of_all(p: ConstrainedDistribution) -> tuple[Tensor, Tensor, Tensor]:
    states = p._all_states().double()
    both = states @ states.T
    either = states.sum(1)[:, None] + states.sum(1) - both
    index = torch.where(either == 0, 1.0, both / either.clamp(min=1))
    log_probs = p.log_prob(states.to(p._dtype).reshape(-1, *[1] * len(p.batch_shape), states.shape[1]))
    log_probs = log_probs.reshape(len(states), p._batch).double()
    value, best = (index @ log_probs.exp()).masked_fill(log_probs == float("-inf"), -1.0).max(0)
    return states[best].T, value, value


def _jaccard(p: ConstrainedDistribution, y: Tensor) -> Tensor:
    """Expected Jaccard index [n, batch] of label sets y [labels, n, batch]."""
    labels, count, _ = y.shape
    nodes, weights = _quadrature((labels + 1) // 2)
    size = y.sum(0)
    # |Y \ y| counts the labels outside of y only
    tilt = (1 - y)[:, :, None] * nodes.log()[:, None].to(y)
    inside = (_tilted(p, tilt.flatten(1, 2)).unflatten(1, (count, -1)) * y[:, :, None]).sum(0)
    powers = nodes[:, None].to(y) ** (size - 1).clamp(min=0)[:, None]
    total = (inside * powers * weights[:, None].to(y)).sum(1)
    return torch.where(size == 0, empty_probability(p), total)


def _tilted(p: ConstrainedDistribution, tilt: Tensor) -> Tensor:
    """E[Y_j Π_i exp(tilt_i)^Y_i] for each label j [labels, n, batch], for tilts [labels, n, batch or 1]."""
    labels, count, _ = tilt.shape
    if p._batch == 0:
        return tilt.new_zeros((labels, count, 0))
    zeros, ones = (scores.double() for scores in p._observed_scores())
    weights = p._weights
    plan = p._plan(explicit=p._needs_explicit)
    share = (p._log_mixing.double() - p._log_partition.double())[None]
    step = max(1, _MOST_NUMBERS // max(1, (plan.num_edges + len(zeros)) * zeros.shape[1]))
    parts = []
    for first in range(0, count, step):
        some = tilt[:, first : first + step, None].expand(-1, -1, p._components, p._batch).flatten(1)
        copies = some.shape[1] // zeros.shape[1]
        more = ones.repeat(1, copies)
        more = torch.cat([more[:labels] + some, more[labels:]])
        literals = Literals.of(plan, zeros.repeat(1, copies), more)
        own = weights.double().repeat(1, copies) if weights is not None else None
        log_z = log_value(plan, own, literals.leaves) + literals.constant
        if own is None:
            own = literals.leaves.new_zeros((plan.num_weights, literals.leaves.shape[1]))
        _, leaf_flows = posterior(plan, own, literals.leaves)
        marginal = literals.probability_of_one(leaf_flows)[:labels].unflatten(1, (copies, p._components, p._batch))
        ratio = (log_z.view(copies, p._components, p._batch) + share).exp()
        parts.append((marginal * ratio).sum(2))
    return torch.cat(parts, dim=1)


def _quadrature(nodes: int) -> tuple[Tensor, Tensor]:
    """Points in (0, 1) and weights, float64."""
    points, weights = np.polynomial.legendre.leggauss(max(1, min(nodes, _MOST_NODES)))
    return torch.from_numpy((points + 1) / 2), torch.from_numpy(weights / 2)


def _rows(p: ConstrainedDistribution, rows: Tensor) -> Any:
    observed = None if p._observed is None else p._observed[:, rows]
    return p._select(rows, torch.Size([len(rows)]), observed, p._has_evidence)
