"""Sequences of a chain: the best one, the k best, and random ones."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.sequences.chains.passes import posterior
from semprola.sequences.chains.structure import Trellis

PADDING = -1
"""Stands in for the tag after the end of a sequence."""


def best(trellis: Trellis) -> tuple[Tensor, Tensor]:
    """The sequence of largest weight [positions, batch], and its log-weight [batch]."""
    values, scores = trellis.last(), trellis.scores[:-1, :, None]
    chain, readings = trellis.chain, []
    for position in range(trellis.positions - 1, 0, -1):
        reading = trellis.reading(position, values)
        values = trellis.held(position, (scores + reading).amax(1))
        readings.append(reading)
    weight, tag = trellis.first_steps(values).max(0)
    tags, by_tag = [tag], trellis.scores.T.contiguous()
    rows = torch.arange(trellis.batch, device=tag.device)
    node = tag if chain.simple else chain.targets[-1].index_select(0, tag)
    # the best step is needed only for the nodes on the way, so it is cheaper to find it here than above
    for reading in reversed(readings):
        here = reading if chain.simple else reading[node, :, rows].T
        tag = (by_tag.index_select(1, node) + here).max(0)[1]  # much faster than argmax
        node = tag if chain.simple else chain.targets[node, tag]
        tags.append(tag)
    return _ended(trellis, torch.stack(tags)), weight


def ranked(trellis: Trellis, k: int) -> tuple[Tensor, Tensor]:
    """The k sequences of largest weight, best first [positions, k, batch], and their log-weights [k, batch].

    If fewer than k sequences obey the rules, the rest repeat the best one and have log-weight -inf.
    """
    chain, batch = trellis.chain, trellis.batch
    worthless = trellis.emissions.new_full((chain.num_nodes, k - 1, batch), NEGATIVE_INFINITY)
    ended = torch.cat([trellis.last()[:, None], worthless], 1)
    values, choices = ended, []
    for position in range(trellis.positions - 1, 0, -1):
        # [nodes, tags * k, batch]: every tag, followed by each of the k best ways on
        options = torch.stack([trellis.steps(position, values[:, rank]) for rank in range(k)], 2).flatten(1, 2)
        top, choice = options.topk(k, 1)
        values = top if trellis.active is None else torch.where(trellis.active[position], top, ended)
        choices.append(choice)
    options = torch.stack([trellis.first_steps(values[:, rank]) for rank in range(k)], 1).flatten(0, 1)
    weights, choice = options.topk(k, 0)
    choice = torch.where(weights == NEGATIVE_INFINITY, choice[:1], choice)
    tag, rank = choice // k, choice % k
    tags, node = [tag], chain.targets[-1][tag]
    rows = torch.arange(batch, device=tag.device)
    for choice_here in reversed(choices):
        choice = choice_here[node, rank, rows]
        tag, rank = choice // k, choice % k
        node = chain.targets[node, tag]
        tags.append(tag)
    return _ended(trellis, torch.stack(tags)), weights


def draw(trellis: Trellis, count: int, generator: torch.Generator | None = None) -> Tensor:
    """Independent random sequences, drawn in proportion to their weights [positions, count, batch]."""
    found = posterior(trellis)
    chain = trellis.chain
    rows = torch.arange(trellis.batch, device=trellis.emissions.device)
    tag = _choose(found.log_first.T.expand(count, -1, -1), generator)
    tags, node = [tag], chain.targets[-1][tag]
    for log_steps in found.log_steps:
        tag = _choose(log_steps.permute(0, 2, 1)[node, rows], generator)
        node = chain.targets[node, tag]
        tags.append(tag)
    return _ended(trellis, torch.stack(tags))


def _choose(log_probabilities: Tensor, generator: torch.Generator | None) -> Tensor:
    """A random index of the last dimension, with these probabilities: the winner of a race of exponentials."""
    times = torch.empty_like(log_probabilities).exponential_(generator=generator)
    # a time of zero would win for a tag that has probability zero
    return (log_probabilities - times.clamp_min(torch.finfo(times.dtype).tiny).log()).argmax(-1)


def _ended(trellis: Trellis, tags: Tensor) -> Tensor:
    if trellis.active is None:
        return tags
    active = trellis.active if tags.dim() == 2 else trellis.active[:, None]
    return tags.masked_fill(~active, PADDING)
