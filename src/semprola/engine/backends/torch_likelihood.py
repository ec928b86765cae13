"""The likelihood of states under a deterministic circuit whose sums are local softmaxes, on all weights at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.engine.literals import indicators
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan
from semprola.engine.softmax import blocks_of_logits, log_softmax

Support = Callable[[Plan, Tensor, str], tuple[Tensor, Tensor]]
"""`Backend.support`, or an operator that does the same."""

_LOGITS_PER_CODE = 4
"""How many logits are passed over in the time in which one is looked up."""
_NUMBERS_AT_ONCE = 2**17
"""Sums are taken in portions of about this many logits, so that temporary tensors stay in the caches."""


def dense(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, labels: int, support: Support) -> Tensor:
    """Log-likelihood of states [samples, components, batch] by torch operations on all weights.

    It can be differentiated any number of times. See `Backend.likelihood`; codes of width zero mean "no codes".
    """
    return _Terms(plan, logits, rows, codes, labels, support).value()


def dense_gradient(
    plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, labels: int, support: Support
) -> Tensor:
    """Derivative of the likelihood times a cotangent [samples, components, batch], by torch operations."""
    return _Terms(plan, logits, rows, codes, labels, support).gradient(cotangent)


def dense_both(
    plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, labels: int, support: Support
) -> tuple[Tensor, Tensor]:
    """The likelihood and its derivative times a cotangent, for a caller that does not differentiate them."""
    if rows.shape[1] == 1 and len(rows) <= labels:
        return _both_of_one(plan, logits, rows, codes, cotangent, support)
    terms = _Terms(plan, logits, rows, codes, labels, support)
    return terms.value(), terms.gradient(cotangent)


def _both_of_one(
    plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, support: Support
) -> tuple[Tensor, Tensor]:
    """The same for one sample per row and no given variable, with few passes over the logits."""
    pairs, coded = plan.num_pairs, codes.shape[-1]
    only_pairs = 2 * pairs == plan.num_weights
    if coded and pairs and only_pairs and coded * _LOGITS_PER_CODE <= pairs:
        value, slope = _taken_pairs(logits, codes)
        some = (codes != -2).all(-1)
    else:
        used, some = _used(plan, rows, codes, logits, support)
        value, slope = _all_sums(plan, logits, used)
    return value[None].masked_fill(~some[:, None], NEGATIVE_INFINITY), slope.mul_(cotangent * some)


def _taken_pairs(logits: Tensor, codes: Tensor) -> tuple[Tensor, Tensor]:
    """Value and slopes, by the logits of the sums that the states reach; every sum has two edges."""
    code = codes[0].T.to(torch.int64)[:, None]
    pair = code.clamp(min=0).div(2, rounding_mode="floor").expand(-1, logits.shape[1], -1)
    # 1 for the second edge of a sum, -1 for the first
    side = (code % 2 * 2 - 1).to(logits.dtype)
    signed = logits.gather(0, pair) * side
    # past the last code, a factor that is certain: it adds nothing
    signed = torch.where(code < 0, float("inf"), signed)
    slope = torch.zeros_like(logits, memory_format=torch.contiguous_format)
    slope.scatter_add_(0, pair, torch.sigmoid(-signed) * side)
    return F.logsigmoid(signed).sum(0), slope


def _all_sums(plan: Plan, logits: Tensor, used: Tensor) -> tuple[Tensor, Tensor]:
    """Value and slopes, by all logits; `used` says which weights count [W, 1, batch]."""
    value = logits.new_zeros(logits.shape[1:])
    slope = torch.empty_like(logits, memory_format=torch.contiguous_format)
    at_once = max(1, _NUMBERS_AT_ONCE // max(1, value.numel()))
    parts = zip(plan.blocks, blocks_of_logits(plan, logits), blocks_of_logits(plan, slope), strict=True)
    for (first, sums, fan_in), block, slopes in parts:
        pieces = used[first : first + sums * fan_in].unflatten(0, (sums, fan_in)).split(at_once)
        rows = at_once if fan_in == 2 else at_once * fan_in
        for taken, odds, result in zip(pieces, block.split(rows), slopes.split(rows), strict=True):
            value += _pairs(taken, odds, result) if fan_in == 2 else _larger_sums(taken, odds, result)
    return value, slope


def _pairs(taken: Tensor, logits: Tensor, slopes: Tensor) -> Tensor:
    """The value of sums with two edges; writes their slopes."""
    # 1 where the state takes the second edge, -1 where it takes the first, 0 where it does not reach the sum
    side = taken[:, 1].to(logits.dtype) - taken[:, 0].to(logits.dtype)
    signed = logits * side
    torch.mul(torch.sigmoid(-signed), side, out=slopes)
    return F.logsigmoid(signed).mul_(side.abs()).sum(0)


def _larger_sums(taken: Tensor, logits: Tensor, slopes: Tensor) -> Tensor:
    """The same for sums with any number of edges."""
    chosen = taken.to(logits.dtype)
    weights = torch.log_softmax(logits.unflatten(0, taken.shape[:2]), 1)
    value = (weights * chosen).sum((0, 1))
    torch.sub(chosen, weights.exp_().mul_(chosen.sum(1, keepdim=True)), out=slopes.view_as(weights))
    return value


class _Terms:
    """The weights, and which of them each state uses."""

    def __init__(self, plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, labels: int, support: Support) -> None:
        self.plan, self.some_are_given = plan, len(rows) > labels
        weights = log_softmax(plan, logits.flatten(1), _alive(plan, logits, rows, labels, support))
        self.weights = weights.unflatten(1, logits.shape[1:])
        used, self.some = _used(plan, rows, codes, logits, support)
        self.used = used.to(logits.dtype)

    def value(self) -> Tensor:
        weights, used = self.weights, self.used
        if self.some_are_given:
            weights = weights.masked_fill(weights == NEGATIVE_INFINITY, 0.0)
        one = used.shape[1] == 1
        total = (used * weights).sum(0)[None] if one else torch.einsum("wsb,wcb->scb", used, weights)
        return total.masked_fill(~self.some[:, None], NEGATIVE_INFINITY)

    def gradient(self, cotangent: Tensor) -> Tensor:
        used = self.used * self.some
        # one for all edges of a sum that the state reaches
        reached = []
        sizes = [sums * fan_in for _, sums, fan_in in self.plan.blocks]
        for part, (_, sums, fan_in) in zip(used.split(sizes), self.plan.blocks, strict=True):
            total = part.unflatten(0, (sums, fan_in)).sum(1, keepdim=True)
            reached.append(total.expand(-1, fan_in, -1, -1).flatten(0, 1))
        slopes = _times(used, cotangent)
        if reached:
            slopes = slopes - self.weights.exp() * _times(torch.cat(reached), cotangent)
        pairs = self.plan.num_pairs
        return torch.cat([slopes[1 : 2 * pairs : 2], slopes[2 * pairs :]]) if pairs else slopes


def _times(used: Tensor, cotangent: Tensor) -> Tensor:
    """[W, components, batch] from [W, samples, batch] and [samples, components, batch]."""
    return used * cotangent if used.shape[1] == 1 else torch.einsum("wsb,scb->wcb", used, cotangent)


def _used(plan: Plan, rows: Tensor, codes: Tensor, like: Tensor, support: Support) -> tuple[Tensor, Tensor]:
    """Which weights each state uses, 0/1 or bool [W, samples, batch], and whether it is possible [samples, batch]."""
    samples, batch, most = codes.shape
    if not most:
        with torch.no_grad():
            used, some = support(plan, leaves_of(rows.flatten(1).to(like.dtype)), "active")
        return used.unflatten(1, (samples, batch)), some.view(samples, batch)
    marks = like.new_zeros((plan.num_weights + 1, samples * batch))
    index = codes.flatten(0, 1).T.to(torch.int64)
    marks.scatter_(0, torch.where(index < 0, plan.num_weights, index), 1.0)
    return marks[:-1].view(plan.num_weights, samples, batch), (codes != -2).all(-1)


def _alive(plan: Plan, logits: Tensor, rows: Tensor, labels: int, support: Support) -> Tensor | None:
    """Which weights the given variables leave possible, bool [W, components * batch].

    None if nothing is given, or there are no states.
    """
    if len(rows) <= labels or rows.shape[1] == 0:
        return None
    with torch.no_grad():
        given = rows[:, 0].clone()
        given[:labels] = float("nan")
        alive, _ = support(plan, leaves_of(given.to(logits.dtype)), "possible")
    return alive.repeat(1, logits.shape[1])


def leaves_of(rows: Tensor) -> Tensor:
    """Literal scores that allow only the given states [2 variables, columns]; NaN allows both values."""
    return torch.stack(indicators(rows, rows.dtype), dim=1).flatten(0, 1)
