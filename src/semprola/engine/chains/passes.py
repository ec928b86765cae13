"""The two passes over a chain: what may follow, from the last position to the first; and who goes where, back again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from semprola.engine.chains.structure import Chain, Trellis
from semprola.engine.chains.sweeps import derivatives, sweep

_NEGATIVE_INFINITY = float("-inf")


@dataclass(frozen=True)
class Posterior:
    """Probabilities of the steps of a chain.

    Attributes:
        log_first: log-probabilities of the first tag [tags, batch].
        log_steps: log-probabilities of the next tag in each node, at positions 1, 2, … [positions - 1, nodes, tags,
            batch]; -inf after the end of a sequence.
        nodes: probabilities of the nodes after 1, 2, … tags [positions, nodes, batch]; 0 after the end.
        marginals: probabilities of the tags [positions, tags, batch]; 0 after the end.
        ends: probabilities of the last node [nodes, batch].
    """

    log_first: Tensor
    log_steps: Tensor
    nodes: Tensor
    marginals: Tensor
    ends: Tensor

    @property
    def steps(self) -> Tensor:
        """Probabilities of being in a node and reading a tag there [positions - 1, nodes, tags, batch]."""
        return self.nodes[:-1, :, None] * self.log_steps.exp()


def log_partition(trellis: Trellis) -> Tensor:
    """Log of the total weight of all sequences that obey [batch]; -inf if there are none. Differentiable.

    The derivative is the posterior, worked out in one pass when it is asked for.
    """
    if _is_watched():
        return _total(trellis, _inward(trellis, careful=True))
    inputs = (trellis.emissions, trellis.scores, trellis.final)
    value: Tensor = _LogPartition.apply(*inputs, trellis)  # type: ignore[no-untyped-call]
    return value


def posterior(trellis: Trellis) -> Posterior:
    """Probabilities of nodes, steps and tags; differentiable. Zero everywhere for sequences of which none obeys."""
    careful = torch.is_grad_enabled()
    return _outward(trellis, _inward(trellis, careful))


class _LogPartition(Function):
    """The total weight with its derivative by hand: autograd would keep and revisit every operation of the passes."""

    @staticmethod
    def forward(ctx: Any, emissions: Tensor, scores: Tensor, final: Tensor, trellis: Trellis) -> Tensor:
        ctx.save_for_backward(emissions, scores, final)
        ctx.trellis, ctx.sweeps, ctx.values = trellis, sweep(trellis), None
        if ctx.sweeps is not None:
            total: Tensor = ctx.sweeps.total
            return total
        ctx.values = _inward(trellis)
        return _total(trellis, ctx.values)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        if torch.is_grad_enabled():
            # for derivatives of the derivative, autograd has to see how the values come about
            emissions, scores, final = ctx.saved_tensors
            trellis = replace(ctx.trellis, emissions=emissions, scores=scores, final=final)
            return *_derivatives(trellis, _inward(trellis, careful=True), gradient), None
        if ctx.sweeps is not None:
            return *derivatives(ctx.sweeps, ctx.trellis.active, gradient), None
        return *_derivatives(ctx.trellis, ctx.values, gradient), None


def _derivatives(trellis: Trellis, values: list[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives of the total by emissions, scores and ends, from the values of the inward pass."""
    found = _outward(trellis, values)
    first = (found.log_first.exp() * gradient).sum(-1)
    steps = (found.nodes[:-1] * gradient)[:, :, None] * found.log_steps.exp()
    by_scores = torch.cat([steps.sum((0, 3)), first[None]])
    return found.marginals * gradient, by_scores, (found.ends * gradient).sum(-1)


def _inward(trellis: Trellis, careful: bool = False) -> list[Tensor]:
    """Log-weights of all that may follow, for each node after 1, 2, …, all tags: [nodes, batch] each."""
    reduce = _careful_log_sum if careful else torch.logsumexp
    values = [trellis.last()]
    for position in range(trellis.positions - 1, 0, -1):
        values.append(trellis.held(position, reduce(trellis.steps(position, values[-1]), 1)))
    return values[::-1]


def _total(trellis: Trellis, values: list[Tensor]) -> Tensor:
    return _careful_log_sum(trellis.first_steps(values[0]), 0)


def _outward(trellis: Trellis, values: list[Tensor]) -> Posterior:
    """Probabilities, from the values of the inward pass."""
    first = _log_shares(trellis.first_steps(values[0]), 0, _total(trellis, values))
    chain, count = trellis.chain, trellis.positions
    log_steps = _all_log_steps(trellis, values)
    shares = log_steps.exp()
    first_share = first.exp()
    nodes = [first_share if chain.simple else _arriving(chain, chain.targets[-1], first_share)]
    marginals = [first_share]
    for position in range(1, count):
        edges = nodes[-1][:, None] * shares[position - 1]
        if chain.simple:
            nodes.append(edges.sum(0))
        else:
            nodes.append(_arriving(chain, chain.targets[:-1].reshape(-1), edges.flatten(0, 1)))
            marginals.append(edges.sum(0))
    stacked = torch.stack(nodes)
    return Posterior(
        first, log_steps, stacked, stacked if chain.simple else torch.stack(marginals), _ends(trellis, stacked)
    )


def _all_log_steps(trellis: Trellis, values: list[Tensor]) -> Tensor:
    """Log-probabilities of the steps at positions 1, 2, … [positions - 1, nodes, tags, batch]."""
    if trellis.positions == 1:
        shape = (0, trellis.chain.num_nodes, trellis.chain.num_tags, trellis.batch)
        return trellis.emissions.new_zeros(shape)
    here, after = torch.stack(values[:-1]), torch.stack(values[1:])
    if trellis.chain.simple:
        reading = (trellis.emissions[1:] + after)[:, None]
    else:
        targets = trellis.chain.targets[:-1]
        following = after.index_select(1, targets.reshape(-1)).unflatten(1, targets.shape)
        reading = trellis.emissions[1:, None] + following
    shares = _log_shares(trellis.scores[:-1, :, None] + reading, 2, here)
    if trellis.active is None:
        return shares
    return shares.masked_fill(~trellis.active[1:, None, None], _NEGATIVE_INFINITY)


def _log_shares(scores: Tensor, dim: int, total: Tensor) -> Tensor:
    """Scores relative to their log-sum; -inf where that is -inf."""
    return scores - total.masked_fill(total == _NEGATIVE_INFINITY, 0.0).unsqueeze(dim)


def _arriving(chain: Chain, targets: Tensor, flows: Tensor) -> Tensor:
    """What arrives in each node [nodes, batch], from flows through the steps [steps, batch]."""
    return torch.index_add(flows.new_zeros((chain.num_nodes, flows.shape[1])), 0, targets, flows)


def _ends(trellis: Trellis, nodes: Tensor) -> Tensor:
    if trellis.active is None:
        return nodes[-1]
    following = torch.cat([trellis.active[1:], torch.zeros_like(trellis.active[:1])])
    return (nodes * (trellis.active & ~following)[:, None]).sum(0)


def _careful_log_sum(scores: Tensor, dim: int) -> Tensor:
    """log-sum-exp whose derivatives are zero, not NaN, where everything is -inf."""
    dead = (scores == _NEGATIVE_INFINITY).all(dim)
    total = torch.logsumexp(scores.masked_fill(dead.unsqueeze(dim), 0.0), dim)
    return total.masked_fill(dead, _NEGATIVE_INFINITY)


def _is_watched() -> bool:
    """Whether a compiler, a tracer or a function transform has to see every operation."""
    transformed = torch._C._functorch.peek_interpreter_stack() is not None
    return torch.compiler.is_compiling() or torch._C._is_tracing() or transformed
