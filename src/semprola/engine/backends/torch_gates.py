"""The likelihood of states, computed from a gate's features: only the rows that a state uses are multiplied."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan


@dataclass(frozen=True)
class _Terms:
    """Every logit that contributes to the likelihood of some state, in one list.

    Attributes:
        row: the logit, counted without components; any row for the first of a pair, whose logit is zero.
        is_zero: whether it is the first of a pair.
        chosen: whether the state uses its edge.
        group: which sum of which state it belongs to.
        state: the state that it belongs to.
        state_of_group: the state that each group belongs to.
    """

    row: Tensor
    is_zero: Tensor
    chosen: Tensor
    group: Tensor
    state: Tensor
    state_of_group: Tensor


def gate_values(plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, components: int) -> Tensor:
    """Log-likelihood of encoded states [components, batch]; see `Backend.gate`."""
    terms = _terms(plan, codes)
    possible = (codes != -2).all(-1)
    values = []
    for component in range(components):
        logits, normalizer = _logits(terms, matrix, bias, features, components, component)
        total = features.new_zeros(len(features))
        total.index_add_(0, terms.state, logits * terms.chosen).index_add_(0, terms.state_of_group, -normalizer)
        values.append(total.masked_fill(~possible, NEGATIVE_INFINITY))
    return torch.stack(values)


def gate_gradients(
    plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, components: int, cotangent: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of matrix, bias and features; see `Backend.gate_gradients`."""
    terms = _terms(plan, codes)
    slopes = torch.zeros_like(matrix), torch.zeros_like(bias), torch.zeros_like(features)
    for component in range(components):
        logits, normalizer = _logits(terms, matrix, bias, features, components, component)
        share = torch.exp(logits - normalizer[terms.group])
        slope = (terms.chosen.to(share.dtype) - share) * cotangent[component][terms.state]
        slope = slope.masked_fill(terms.is_zero, 0.0)
        row = terms.row * components + component
        slopes[0].index_add_(0, row, slope[:, None] * features[terms.state])
        slopes[1].index_add_(0, row, slope)
        slopes[2].index_add_(0, terms.state, slope[:, None] * matrix[row])
    return slopes


def _logits(
    terms: _Terms, matrix: Tensor, bias: Tensor, features: Tensor, components: int, component: int
) -> tuple[Tensor, Tensor]:
    """The logit of each term [terms], and the log-normaliser of each group [groups]."""
    row = terms.row * components + component
    logits = torch.einsum("tf,tf->t", matrix[row], features[terms.state]) + bias[row]
    logits = logits.masked_fill(terms.is_zero, 0.0)
    groups = len(terms.state_of_group)
    top = logits.new_full((groups,), NEGATIVE_INFINITY).scatter_reduce_(0, terms.group, logits, "amax")
    total = logits.new_zeros(groups).index_add_(0, terms.group, torch.exp(logits - top[terms.group]))
    return logits, top + torch.log(total)


def _terms(plan: Plan, codes: Tensor) -> _Terms:
    """The terms of encoded states [batch, most]; impossible states have none."""
    state, place = torch.nonzero(codes >= 0, as_tuple=True)
    weight = codes[state, place].to(torch.int64)
    # find the sum of each weight: the weights of all sums with the same fan-in form a block
    blocks = torch.tensor(plan.blocks, dtype=torch.int64, device=codes.device).reshape(-1, 3)
    block = torch.bucketize(weight, blocks[:, 0].contiguous(), right=True) - 1
    start, fan_in = blocks[block, 0], blocks[block, 2]
    first = start + (weight - start) // fan_in * fan_in
    group = torch.repeat_interleave(torch.arange(len(weight), device=codes.device), fan_in)
    within = torch.arange(len(group), device=codes.device) - (fan_in.cumsum(0) - fan_in)[group]
    weights = first[group] + within
    pairs = plan.num_pairs
    row = torch.where(weights < 2 * pairs, weights // 2, weights - pairs)
    is_zero = (weights < 2 * pairs) & (weights % 2 == 0)
    return _Terms(row, is_zero, weights == weight[group], group, state[group], state)
