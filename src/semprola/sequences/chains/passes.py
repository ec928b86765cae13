"""The two passes over a chain: inward, from the last position to the first, and outward, from the first to the last.

The inward pass gives the weight of all continuations of each node, the outward pass the probabilities of steps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function

from semprola.distributions.numeric import log_sum_exp
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.torch_internals import is_traced, is_transformed
from semprola.sequences.chains.structure import Chain, Trellis
from semprola.sequences.chains.sweeps import Sweeps, derivatives, sweep

_Path = tuple[Tensor, Tensor, Tensor]
"""Tags, the indices of the steps that they take, and the last nodes; see `Trellis.passed`."""


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


@dataclass(frozen=True)
class Sums:
    """The total weight, and what its derivatives need; numbers without derivatives of their own.

    Attributes:
        total: log-weight of all sequences that obey the rules [batch].
        sweeps: both passes in linear space, or None if linear space does not suit.
        values: in that case, the log-weights of all continuations; see `_inward`.
    """

    total: Tensor
    sweeps: Sweeps | None
    values: list[Tensor]

    def derivatives(self, trellis: Trellis, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Derivatives of the total by emissions, scores and ends, for a gradient [batch] by the total."""
        if self.sweeps is not None:
            return derivatives(self.sweeps, trellis.active, gradient)
        return _derivatives(trellis, self.values, gradient)


@torch.no_grad()
def sums(trellis: Trellis) -> Sums:
    """The total weight, by one or two passes."""
    found = sweep(trellis)
    if found is not None:
        return Sums(found.total, found, [])
    values = _inward(trellis)
    return Sums(_total(trellis, values), None, values)


def log_partition(trellis: Trellis, known: Sums | None = None) -> Tensor:
    """Log of the total weight of all sequences that obey the rules [batch]; -inf if there are none. Differentiable.

    The derivative is the posterior, computed by hand on demand: autograd would keep and revisit every operation of the
    passes.
    """
    if is_watched():
        return _total(trellis, _inward(trellis, careful=True))
    known = sums(trellis) if known is None else known
    inputs = (trellis.emissions, trellis.scores, trellis.final)
    value: Tensor = _LogPartition.apply(*inputs, trellis, known)  # type: ignore[no-untyped-call]
    return value


def log_likelihood(trellis: Trellis, y: Tensor, known: Sums | None = None) -> Tensor:
    """Log-probabilities [samples, batch] of tags [positions, samples, batch]; -inf where they break the rules.

    Differentiable; the derivatives of impossible sequences are zero.
    """
    steps, last = trellis.passed(y)
    if is_watched():
        scores = trellis.scores_of(y, steps, last)
        total = _total(trellis, _inward(trellis, careful=True))
        return torch.where(scores == NEGATIVE_INFINITY, NEGATIVE_INFINITY, scores - total)
    known = sums(trellis) if known is None else known
    inputs = (trellis.emissions, trellis.scores, trellis.final)
    path = (y, steps, last)
    value: Tensor = _LogLikelihood.apply(*inputs, trellis, known, path)  # type: ignore[no-untyped-call]
    return value


def posterior(trellis: Trellis) -> Posterior:
    """Probabilities of nodes, steps and tags; differentiable. All are zero where no sequence obeys the rules."""
    return _outward(trellis, _inward(trellis, careful=torch.is_grad_enabled()))


def is_watched() -> bool:
    """Whether a compiler, a tracer or a function transform has to see every operation."""
    return torch.compiler.is_compiling() or is_traced() or is_transformed()


class _LogPartition(Function):
    @staticmethod
    def forward(ctx: Any, emissions: Tensor, scores: Tensor, final: Tensor, trellis: Trellis, known: Sums) -> Tensor:
        ctx.save_for_backward(emissions, scores, final)
        ctx.trellis, ctx.known = trellis, known
        return known.total.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        return *_total_derivatives(ctx, gradient), None, None


class _LogLikelihood(Function):
    @staticmethod
    def forward(
        ctx: Any, emissions: Tensor, scores: Tensor, final: Tensor, trellis: Trellis, known: Sums, path: _Path
    ) -> Tensor:
        ctx.save_for_backward(emissions, scores, final)
        ctx.trellis, ctx.known, ctx.path = trellis, known, path
        value = trellis.scores_of(*path) - known.total
        # if no sequence obeys the rules, -inf minus -inf is NaN
        ctx.possible = value > NEGATIVE_INFINITY
        return torch.where(ctx.possible, value, NEGATIVE_INFINITY)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        y, steps, last = ctx.path
        gradient = torch.where(ctx.possible, gradient, 0.0)
        by_emissions, by_scores, by_final = _total_derivatives(ctx, -gradient.sum(0))
        active = ctx.trellis.active
        each = gradient.expand(y.shape) if active is None else gradient * active[:, None]
        by_emissions = by_emissions.scatter_add(1, y, each)
        by_scores = by_scores.reshape(-1).index_add(0, steps, each.reshape(-1)).reshape(by_scores.shape)
        return by_emissions, by_scores, by_final.index_add(0, last, gradient.reshape(-1)), None, None, None


def _total_derivatives(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    if not torch.is_grad_enabled():
        found: tuple[Tensor, Tensor, Tensor] = ctx.known.derivatives(ctx.trellis, gradient)
        return found
    # for second derivatives, autograd has to see how the values are computed
    emissions, scores, final = ctx.saved_tensors
    trellis = replace(ctx.trellis, emissions=emissions, scores=scores, final=final)
    return _derivatives(trellis, _inward(trellis, careful=True), gradient)


def _derivatives(trellis: Trellis, values: list[Tensor], gradient: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Derivatives of the total by emissions, scores and ends, from the values of the inward pass."""
    found = _outward(trellis, values)
    first = (found.log_first.exp() * gradient).sum(-1)
    steps = (found.nodes[:-1] * gradient)[:, :, None] * found.log_steps.exp()
    by_scores = torch.cat([steps.sum((0, 3)), first[None]])
    return found.marginals * gradient, by_scores, (found.ends * gradient).sum(-1)


def _inward(trellis: Trellis, careful: bool = False) -> list[Tensor]:
    """Log-weights of all continuations of each node after 1, 2, …, all tags: [nodes, batch] each."""
    reduce = log_sum_exp if careful else torch.logsumexp
    values = [trellis.last()]
    for position in range(trellis.positions - 1, 0, -1):
        values.append(trellis.held(position, reduce(trellis.steps(position, values[-1]), 1)))
    return values[::-1]


def _total(trellis: Trellis, values: list[Tensor]) -> Tensor:
    return log_sum_exp(trellis.first_steps(values[0]), 0)


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
    return shares.masked_fill(~trellis.active[1:, None, None], NEGATIVE_INFINITY)


def _log_shares(scores: Tensor, dim: int, total: Tensor) -> Tensor:
    """Scores relative to their log-sum; -inf where that is -inf."""
    return scores - total.masked_fill(total == NEGATIVE_INFINITY, 0.0).unsqueeze(dim)


def _arriving(chain: Chain, targets: Tensor, flows: Tensor) -> Tensor:
    """What arrives in each node [nodes, batch], from flows through the steps [steps, batch]."""
    return torch.index_add(flows.new_zeros((chain.num_nodes, flows.shape[1])), 0, targets, flows)


def _ends(trellis: Trellis, nodes: Tensor) -> Tensor:
    if trellis.active is None:
        return nodes[-1]
    following = torch.cat([trellis.active[1:], torch.zeros_like(trellis.active[:1])])
    return (nodes * (trellis.active & ~following)[:, None]).sum(0)
