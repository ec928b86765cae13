"""From a gate's logits to the weights of a plan, and back."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan


def log_softmax(plan: Plan, logits: Tensor, alive: Tensor | None = None, *, differentiable: bool = True) -> Tensor:
    """Normalise the logits of each sum.

    Args:
        plan: the plan, with W weights.
        logits: [`plan.num_logits`, columns]
        alive: which edges are possible, bools [W, columns]; the others get a weight of exactly zero.
        differentiable: false where nothing takes derivatives through this function, in either direction: it is faster.

    Returns:
        log-weights [W, columns]
    """
    if not plan.blocks:
        return logits
    if alive is None:
        return _log_softmax_of_all(plan, logits, differentiable)
    sizes = [sums * fan_in for _, sums, fan_in in plan.blocks]
    # one split instead of many slices: the gradient of each slice would be a full tensor of zeros
    blocks = spread_logits(plan, logits).split(sizes)
    parts: list[Tensor] = []
    for (_, sums, fan_in), block, live in zip(plan.blocks, blocks, alive.split(sizes), strict=True):
        shape = (sums, fan_in, logits.shape[1])
        parts.append(_normalize(block.view(shape), live.view(shape)))
    return torch.cat([part.flatten(0, 1) for part in parts])


def softmax_slopes(plan: Plan, logits: Tensor, flows: Tensor) -> Tensor:
    """Turn derivatives by log-weights [W, columns] into derivatives by logits [`plan.num_logits`, columns]."""
    if not plan.blocks:
        return flows
    sizes = [sums * fan_in for _, sums, fan_in in plan.blocks]
    blocks = blocks_of_logits(plan, logits)
    parts = []
    for (_, _, fan_in), block, flow in zip(plan.blocks, blocks, flows.split(sizes), strict=True):
        own = flow.unflatten(0, (-1, fan_in))
        if fan_in == 2:  # the first edge of a pair has no logit
            parts.append(torch.addcmul(own[:, 1], torch.sigmoid(block), own[:, 0] + own[:, 1], value=-1))
        else:
            shares = torch.softmax(block.unflatten(0, (-1, fan_in)), 1)
            parts.append(torch.addcmul(own, shares, own.sum(1, keepdim=True), value=-1).flatten(0, 1))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def spread_logits(plan: Plan, logits: Tensor) -> Tensor:
    """One logit per weight [W, ...] from the logits of a plan [`plan.num_logits`, ...]: the first of a pair is zero."""
    pairs = plan.num_pairs
    if not pairs:
        return logits
    second, others = logits.split([pairs, len(logits) - pairs])
    both = torch.stack([torch.zeros_like(second), second], 1).flatten(0, 1)
    return torch.cat([both, others]) if len(others) else both


def blocks_of_logits(plan: Plan, logits: Tensor) -> tuple[Tensor, ...]:
    """The logits of each block of a plan: one per sum where sums have two edges, else one per edge."""
    blocks: tuple[Tensor, ...] = logits.split(
        [sums * (1 if fan_in == 2 else fan_in) for _, sums, fan_in in plan.blocks]
    )
    return blocks


def logits_of(plan: Plan, log_weights: Tensor) -> Tensor:
    """Logits [`plan.num_logits`, ...] whose `log_softmax` is the given log-weights [W, ...], once normalised."""
    pairs = plan.num_pairs
    first, second = log_weights[: 2 * pairs].unflatten(0, (pairs, 2)).unbind(1)
    return torch.cat([second - first, log_weights[2 * pairs :]])


def _log_softmax_of_all(plan: Plan, logits: Tensor, differentiable: bool) -> Tensor:
    parts: list[Tensor] = []
    for (_, sums, fan_in), block in zip(plan.blocks, blocks_of_logits(plan, logits), strict=True):
        if fan_in == 2:  # much faster than a softmax over pairs that are far apart in memory
            pair = (
                torch.stack([F.logsigmoid(-block), F.logsigmoid(block)], 1) if differentiable else _log_sigmoids(block)
            )
            parts.append(pair.flatten(0, 1))
        else:
            parts.append(torch.log_softmax(block.view(sums, fan_in, -1), 1).flatten(0, 1))
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _log_sigmoids(odds: Tensor) -> Tensor:
    """Log-sigmoids of minus the odds and of the odds [sums, 2, columns]: log σ(x) = log σ(|x|) + min(x, 0).

    The numbers are those of two calls; there are no derivatives.
    """
    both = odds.new_empty((odds.shape[0], 2, *odds.shape[1:]))
    clipped = odds.abs()
    larger = F.logsigmoid(clipped)
    torch.sub(larger, torch.clamp(odds, min=0.0, out=clipped), out=both[:, 0])
    torch.add(larger, torch.clamp(odds, max=0.0, out=clipped), out=both[:, 1])
    return both


def _normalize(block: Tensor, live: Tensor) -> Tensor:
    # sums without a live edge keep their logits: a softmax over nothing would be NaN
    block = block.masked_fill(~live & live.any(1, keepdim=True), NEGATIVE_INFINITY)
    return torch.log_softmax(block, 1).masked_fill(~live, NEGATIVE_INFINITY)
