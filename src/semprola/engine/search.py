"""Decoding and sampling: passes that choose, and have no derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.engine import native, passes
from semprola.engine.choice import use_native
from semprola.engine.literals import Literals
from semprola.engine.plan import Bucket, Plan

_MOST_NUMBERS = 2**25
"""Largest intermediate tensor of a sampling step; more samples are drawn in several steps."""


@torch.no_grad()
def maximize(plan: Plan, weights: Tensor | None, literals: Literals) -> tuple[Tensor, Tensor]:
    """The state of largest value, by max-product with trace back.

    Exact for deterministic circuits; otherwise the state of the best single path.

    Returns:
        states [variables, columns] and log-values [columns].
    """
    if use_native(literals.leaves):
        value, leaf_flows = native.maximize(plan, weights, literals.leaves)
        return _round(literals.probability_of_one(leaf_flows)), value + literals.constant
    value, shares = _evaluate(plan, weights, literals.leaves, passes.best)
    _, leaf_flows = passes.downward(plan, shares)
    return _round(literals.probability_of_one(leaf_flows)), value + literals.constant


@torch.no_grad()
def bound(plan: Plan, weights: Tensor, literals: Literals) -> tuple[Tensor, Tensor]:
    """An upper bound on the largest value of a circuit with several units, and the state that suggests it.

    Branches of the constraint exclude each other and are maximised over; units of one branch add up.

    Args:
        plan: a plan with choices, see :func:`semprola.engine.skeleton.group_branches`.
        weights: [W, columns]
        literals: scores.

    Returns:
        states [variables, columns] and bounds [columns].
    """
    value, shares = _evaluate(plan, weights, literals.leaves, passes.total)
    leaf_flows = passes.downward_choosing(plan, shares)
    return _round(literals.probability_of_one(leaf_flows)), value + literals.constant


@torch.no_grad()
def follow(plan: Plan, weights: Tensor, literals: Literals) -> Tensor:
    """The state reached by taking the largest local weight at every sum, blind to what lies below it.

    This is the decoder of the published code; it misses the mode and exists to reproduce published figures.

    Returns:
        states [variables, columns]
    """

    def local(bucket: Bucket, edges: Tensor, sums: Tensor, shares: Tensor | None) -> None:
        passes.best(bucket, edges, sums, None)
        assert shares is not None
        own = weights[bucket.edges.start - plan.num_fixed : bucket.edges.stop - plan.num_fixed].view_as(edges)
        shares.copy_(passes.one_hot_max(torch.where(passes.is_impossible(edges), edges, own)))

    _, shares = _evaluate(plan, weights, literals.leaves, local)
    return _round(literals.probability_of_one(passes.downward(plan, shares)[1]))


@torch.no_grad()
def sample(
    plan: Plan, weights: Tensor | None, literals: Literals, column: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Exact samples.

    Args:
        plan: the plan.
        weights: [W, columns] or None.
        literals: scores.
        column: which column each sample is drawn from [samples, batch].
        generator: source of randomness, or None for torch's own.

    Returns:
        states [variables, samples, batch]
    """
    if use_native(literals.leaves):
        seed = int(torch.randint(2**63 - 1, (), generator=generator))
        leaf_flows = native.sample(plan, weights, literals.leaves, column.reshape(-1), seed)
        return _fill(leaf_flows, literals, column, generator)
    _, shares = _evaluate(plan, weights, literals.leaves, passes.total)
    step = max(1, _MOST_NUMBERS // max(1, plan.num_edges * column.shape[1]))
    parts = [_sample_step(plan, shares, literals, part, generator) for part in column.split(step)]
    return torch.cat(parts, dim=1)


def _evaluate(plan: Plan, weights: Tensor | None, leaves: Tensor, rule: passes.Rule) -> tuple[Tensor, Tensor]:
    """Log-values [columns] and the shares of all edges [E, columns]."""
    shares = leaves.new_empty((plan.num_edges, leaves.shape[1]))
    values = passes.upward(plan, weights, leaves, rule, shares=shares)
    return passes.value_of_root(plan, values), shares


def _sample_step(
    plan: Plan, shares: Tensor, literals: Literals, column: Tensor, generator: torch.Generator | None
) -> Tensor:
    flat = column.reshape(-1)
    drawn = shares.new_empty((plan.num_edges, len(flat)))
    for bucket in plan.on(shares.device).buckets:
        part = shares[bucket.edges].unflatten(0, (bucket.sums, bucket.fan_in)).index_select(2, flat)
        if bucket.fan_in > 1:
            uniform = _uniform((bucket.sums, 1, len(flat)), part, generator)
            part = passes.draw(part, uniform)
        drawn[bucket.edges] = part.flatten(0, 1)
    _, leaf_flows = passes.downward(plan, drawn)
    return _fill(leaf_flows, literals, column, generator)


def _fill(leaf_flows: Tensor, literals: Literals, column: Tensor, generator: torch.Generator | None) -> Tensor:
    """States [variables, samples, batch] from their literals, with values drawn for the labels they leave open."""
    zero, one = leaf_flows[0::2], leaf_flows[1::2]
    absent = (zero + one) < 0.5
    default = literals.default.index_select(1, column.reshape(-1))
    filled = (_uniform(tuple(default.shape), default, generator) < default).to(one.dtype)
    states: Tensor = torch.where(absent, filled, one).unflatten(1, column.shape)
    return states


def _uniform(shape: tuple[int, ...], like: Tensor, generator: torch.Generator | None) -> Tensor:
    return torch.rand(shape, dtype=like.dtype, device=like.device, generator=generator)


def _round(values: Tensor) -> Tensor:
    return (values > 0.5).to(values.dtype)
