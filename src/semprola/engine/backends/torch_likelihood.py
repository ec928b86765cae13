"""The likelihood of states under a deterministic circuit whose sums are local softmaxes, on all weights at once."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from semprola.engine.literals import indicators
from semprola.engine.plan import Plan
from semprola.engine.softmax import log_softmax

Support = Callable[[Plan, Tensor, str], tuple[Tensor, Tensor]]
"""`Backend.support`, or an operator that does the same."""

_NEGATIVE_INFINITY = float("-inf")


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
    """The likelihood and its derivative times a cotangent."""
    terms = _Terms(plan, logits, rows, codes, labels, support)
    return terms.value(), terms.gradient(cotangent)


class _Terms:
    """The weights, and which of them each state uses."""

    def __init__(self, plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, labels: int, support: Support) -> None:
        self.plan, self.some_are_given = plan, len(rows) > labels
        weights = log_softmax(plan, logits.flatten(1), _alive(plan, logits, rows, labels, support))
        self.weights = weights.unflatten(1, logits.shape[1:])
        self.used, self.some = _used(plan, rows, codes, logits, support)

    def value(self) -> Tensor:
        weights, used = self.weights, self.used
        if self.some_are_given:
            weights = weights.masked_fill(weights == _NEGATIVE_INFINITY, 0.0)
        one = used.shape[1] == 1
        total = (used * weights).sum(0)[None] if one else torch.einsum("wsb,wcb->scb", used, weights)
        return total.masked_fill(~self.some[:, None], _NEGATIVE_INFINITY)

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
    """0/1 for the weights that each state uses [W, samples, batch], and whether it is possible [samples, batch]."""
    samples, batch, most = codes.shape
    if not most:
        with torch.no_grad():
            used, some = support(plan, leaves_of(rows.flatten(1).to(like.dtype)), "active")
        return used.to(like.dtype).unflatten(1, (samples, batch)), some.view(samples, batch)
    marks = like.new_zeros((plan.num_weights + 1, samples * batch))
    index = codes.flatten(0, 1).T.to(torch.int64)
    marks.scatter_(0, torch.where(index < 0, plan.num_weights, index), 1.0)
    return marks[:-1].view(plan.num_weights, samples, batch), (codes != -2).all(-1)


def _alive(plan: Plan, logits: Tensor, rows: Tensor, labels: int, support: Support) -> Tensor | None:
    """Which weights the given variables leave possible, bool [W, components * batch]; None if nothing is given."""
    if len(rows) <= labels:
        return None
    with torch.no_grad():
        given = rows[:, 0].clone()
        given[:labels] = float("nan")
        alive, _ = support(plan, leaves_of(given.to(logits.dtype)), "possible")
    return alive.repeat(1, logits.shape[1])


def leaves_of(rows: Tensor) -> Tensor:
    """Literal scores that allow only the given states [2 variables, columns]; NaN allows both values."""
    return torch.stack(indicators(rows, rows.dtype), dim=1).flatten(0, 1)
