"""Both passes over a simple chain at once, in linear space: a few small products per position, and no logarithms.

One pass runs from left to right and gives the weight of all beginnings that end in a tag. The other runs from right to
left and gives the weight of all continuations of a tag. Each step is a product with the matrix of step weights, so both
passes run as one batched product of two matrices. Weights are rescaled every few positions. If logits are so far apart
that a positive weight becomes too small for full precision, there is no result, and the caller uses logarithms instead.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from semprola.sequences.chains.structure import Trellis

_EVERY = 4
"""Number of positions from one rescaling to the next."""
_LEAST = {torch.float32: 1e-28, torch.float64: 1e-280}
"""Smallest weight without loss: terms that underflow are below the type's precision relative to it."""


@dataclass(frozen=True)
class Sweeps:
    """Weights of beginnings and continuations, each up to a factor per position and sequence.

    Attributes:
        total: log-weight of all sequences [batch].
        weights: of the steps from tag to tag [tags, tags].
        arriving: of beginnings, before the tag of the position is read [positions, tags, batch].
        beginnings: the same after it is read.
        continuations: of what follows a tag [positions, tags, batch].
        reading: of what follows, including the tag itself.
    """

    total: Tensor
    weights: Tensor
    arriving: Tensor
    beginnings: Tensor
    continuations: Tensor
    reading: Tensor


def sweep(trellis: Trellis) -> Sweeps | None:
    """Both passes; None if the chain or its scores do not suit linear space, or there are no sequences."""
    chain = trellis.chain
    if not chain.simple or not chain.mixes or trellis.is_masked or trellis.emissions.dtype not in _LEAST:
        return None
    if trellis.batch == 0:
        return None
    top, top_end = trellis.scores.amax(), trellis.final.amax()
    weights, ends = (trellis.scores - top).exp(), (trellis.final - top_end).exp()
    positions = trellis.positions
    lengths, mirror = trellis.lengths, _mirror(trellis)
    emissions = trellis.emissions.exp()
    stacked = torch.stack([emissions, _reversed(emissions, mirror)], 1).unbind()
    matrices = torch.stack([weights[:-1].T, weights[:-1]])
    before = torch.stack([weights[-1], ends])[:, :, None].expand(-1, -1, trellis.batch)
    state = before * stacked[0]
    befores, states, scales = [before], [state], []
    for position in range(1, positions):
        before = torch.bmm(matrices, state)
        state = before * stacked[position]
        if position % _EVERY == 0:
            scale = state.amax(1, keepdim=True)
            state = state / scale
            scales.append(scale[0, 0])
        befores.append(before)
        states.append(state)
    every = torch.stack(states)
    if not bool(_smallest(trellis, every) >= _LEAST[every.dtype]):
        return None
    arriving, continuations = torch.stack(befores).unbind(1)
    beginnings = every[:, 0]
    continuations = _reversed(continuations, mirror)
    total = _total(beginnings, ends, scales, lengths) + top_end + top * (positions if lengths is None else lengths)
    return Sweeps(total, weights[:-1], arriving, beginnings, continuations, continuations * emissions)


def derivatives(found: Sweeps, active: Tensor | None, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives of the total by emissions [positions, tags, batch], step scores [tags + 1, tags], ends [tags].

    Args:
        active: positions within their sequence [positions, batch], or None.
        gradient: by the total [batch].
    """
    if active is not None:
        gradient = gradient * active
    joint = found.beginnings * found.continuations
    by_emissions = joint * (gradient / joint.sum(1)).unsqueeze(1)
    each = gradient[1:] if active is not None else gradient
    share = each / (found.arriving[1:] * found.reading[1:]).sum(1)
    left = found.beginnings[:-1].transpose(0, 1).flatten(1)
    right = (found.reading[1:] * share.unsqueeze(1)).transpose(0, 1).flatten(1)
    by_steps = (left @ right.T) * found.weights
    by_scores = torch.cat([by_steps, by_emissions[0].sum(-1)[None]])
    if active is None:
        return by_emissions, by_scores, by_emissions[-1].sum(-1)
    is_last = active & ~torch.cat([active[1:], torch.zeros_like(active[:1])])
    return by_emissions, by_scores, (by_emissions * is_last[:, None]).sum((0, 2))


def _total(beginnings: Tensor, ends: Tensor, scales: list[Tensor], lengths: Tensor | None) -> Tensor:
    """Log-weight of all sequences, without the maxima that were subtracted from the scores [batch]."""
    if lengths is None:
        last = beginnings[-1]
        total = (last * ends[:, None]).sum(0).log()
        return total + torch.stack(scales).log().sum(0) if scales else total
    last = beginnings.gather(0, (lengths - 1).expand(1, beginnings.shape[1], -1))[0]
    total = (last * ends[:, None]).sum(0).log()
    if not scales:
        return total
    scaled_at = torch.arange(_EVERY, _EVERY * (len(scales) + 1), _EVERY, device=lengths.device)
    return total + torch.stack(scales).log().mul(scaled_at[:, None] < lengths).sum(0)


def _mirror(trellis: Trellis) -> Tensor | None:
    """For each position, the mirrored one, as far from the end of its sequence [positions, tags, batch]."""
    if trellis.lengths is None:
        return None
    positions = torch.arange(trellis.positions, device=trellis.lengths.device)[:, None]
    return (trellis.lengths - 1 - positions).clamp_(min=0)[:, None].expand_as(trellis.emissions)


def _reversed(values: Tensor, mirror: Tensor | None) -> Tensor:
    """Values [positions, tags, batch] of each sequence from its end to its beginning."""
    return values.flip(0) if mirror is None else values.gather(0, mirror)


def _smallest(trellis: Trellis, states: Tensor) -> Tensor:
    """The smallest of the weights [positions, 2, tags, batch] that the rules allow to be positive."""
    if trellis.chain.is_free:
        return states.amin()
    possible = trellis.chain.possible_nodes(trellis.positions)
    return torch.where(possible[..., None], states, 1.0).amin()
