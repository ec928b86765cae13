"""From a gate's logits to the weights of a plan, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.engine.plan import Plan


def log_softmax(plan: Plan, logits: Tensor, alive: Tensor | None = None) -> Tensor:
    """Normalise the logits of each sum.

    Args:
        plan: the plan, with W weights.
        logits: [`plan.num_logits`, columns]
        alive: which edges are possible, bools [W, columns]; the others get a weight of exactly zero.

    Returns:
        log-weights [W, columns]
    """
    if not plan.blocks:
        return logits
    sizes = [sums * fan_in for _, sums, fan_in in plan.blocks]
    # one split in place of many slices: the gradient of a slice is a tensor full of zeros
    blocks = spread_logits(plan, logits).split(sizes)
    masks = [None] * len(sizes) if alive is None else alive.split(sizes)
    parts: list[Tensor] = []
    for (_, sums, fan_in), block, live in zip(plan.blocks, blocks, masks, strict=True):
        shape = (sums, fan_in, logits.shape[1])
        parts.append(_normalize(block.view(shape), None if live is None else live.view(shape)))
    return torch.cat([part.flatten(0, 1) for part in parts])


def spread_logits(plan: Plan, logits: Tensor) -> Tensor:
    """One logit per weight [W, ...] from the logits of a plan [`plan.num_logits`, ...]: the first of a pair is zero."""
    pairs = plan.num_pairs
    if not pairs:
        return logits
    second, others = logits.split([pairs, len(logits) - pairs])
    both = torch.stack([torch.zeros_like(second), second], 1).flatten(0, 1)
    return torch.cat([both, others]) if len(others) else both


def logits_of(plan: Plan, log_weights: Tensor) -> Tensor:
    """Logits [`plan.num_logits`, ...] whose `log_softmax` is the given log-weights [W, ...], once normalised."""
    pairs = plan.num_pairs
    first, second = log_weights[: 2 * pairs].unflatten(0, (pairs, 2)).unbind(1)
    return torch.cat([second - first, log_weights[2 * pairs :]])


def _normalize(block: Tensor, live: Tensor | None) -> Tensor:
    if live is None:
        return torch.log_softmax(block, 1)
    # sums that are dead altogether keep their logits: a softmax over nothing would be NaN
    block = block.masked_fill(~live & live.any(1, keepdim=True), float("-inf"))
    return torch.log_softmax(block, 1).masked_fill(~live, float("-inf"))
