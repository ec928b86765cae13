"""Decoding and sampling: passes that choose, and have no derivatives."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.engine import native, passes, plain
from semprola.engine.choice import use_directly, use_native
from semprola.engine.chunks import by_columns, columns_at_once
from semprola.engine.literals import Literals
from semprola.engine.operators import define, register_meta, register_vmap
from semprola.engine.plan import Bucket, Plan


@torch.no_grad()
def maximize(plan: Plan, weights: Tensor | None, literals: Literals) -> tuple[Tensor, Tensor]:
    """The state of largest value, by max-product with trace back.

    Exact for deterministic circuits; otherwise the state of the best single path.

    Returns:
        states [variables, columns] and log-values [columns].
    """
    if use_directly(literals.leaves):
        value, states = native.best_states(plan, weights, literals.leaves, literals.default)
        return states, value + literals.constant
    blank = literals.leaves.new_zeros((0, literals.leaves.shape[1]))
    value, leaf_flows = _maximize(blank if weights is None else weights, literals.leaves, plan.handle)
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
    value, leaf_flows = _maximize_branches(weights, literals.leaves, plan.handle)
    return _round(literals.probability_of_one(leaf_flows)), value + literals.constant


@torch.no_grad()
def follow(plan: Plan, weights: Tensor, literals: Literals) -> Tensor:
    """The state reached by taking the largest local weight at every sum, blind to what lies below it.

    This is the decoder of the published code; it misses the mode and exists to reproduce published figures.

    Returns:
        states [variables, columns]
    """

    offset = plan.num_fixed

    def part(leaves: Tensor, weights: Tensor) -> Tensor:
        def local(bucket: Bucket, edges: Tensor, sums: Tensor, shares: Tensor | None) -> None:
            assert shares is not None
            own = weights[bucket.edges.start - offset : bucket.edges.stop - offset].view_as(edges)
            passes.best(bucket, edges, sums, None)
            shares.copy_(passes.one_hot_max(torch.where(edges == float("-inf"), edges, own)))

        shares = leaves.new_empty((plan.num_edges, leaves.shape[1]))
        passes.upward(plan, weights, leaves, local, shares=shares)
        return passes.downward(plan, shares)[1]

    return _round(literals.probability_of_one(by_columns(plan, part, literals.leaves, weights)))


@define("maximize", "(Tensor weights, Tensor leaves, int plan) -> (Tensor, Tensor)")
def _maximize(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    """Largest log-values [columns] and 0/1 for the literals of a state that has it [2 variables, columns]."""
    layout, own = Plan.of(plan), weights if len(weights) else None
    if use_native(leaves, weights):
        return native.maximize(layout, own, leaves)
    return plain.choose(layout, own, leaves, passes.best)


@register_meta("maximize")
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return leaves.new_empty(leaves.shape[1]), torch.empty_like(leaves)


@define("maximize_branches", "(Tensor weights, Tensor leaves, int plan) -> (Tensor, Tensor)")
def _maximize_branches(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return plain.choose_branches(Plan.of(plan), weights, leaves)


@register_meta("maximize_branches")
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return leaves.new_empty(leaves.shape[1]), torch.empty_like(leaves)


register_vmap("maximize")
register_vmap("maximize_branches")


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
        drawn = native.sample(plan, weights, literals.leaves, literals.default, column.reshape(-1), seed)
        return drawn.view(len(drawn), *column.shape)
    # the samples of some columns at a time, and of each as many as a step has room for
    flat, step = column.reshape(-1), columns_at_once(plan, literals.leaves)
    leaf_flows = literals.leaves.new_empty((plan.num_leaves, len(flat)))
    for first in range(0, literals.leaves.shape[1], step):
        some = slice(first, first + step)
        shares = literals.leaves.new_empty((plan.num_edges, literals.leaves[:, some].shape[1]))
        own = None if weights is None else weights[:, some]
        passes.upward(plan, own, literals.leaves[:, some], passes.total, shares=shares)
        wanted = torch.nonzero((flat >= first) & (flat < first + step))[:, 0]
        for part in wanted.split(step):
            leaf_flows[:, part] = _draw(plan, shares, flat[part] - first, generator)
    return _fill(leaf_flows, literals, column, generator)


def _draw(plan: Plan, shares: Tensor, column: Tensor, generator: torch.Generator | None) -> Tensor:
    """0/1 for the literals of a sample of each listed column [2 variables, samples]."""
    drawn = shares.new_empty((plan.num_edges, len(column)))
    for bucket in plan.on(shares.device).buckets:
        part = shares[bucket.edges].index_select(1, column).unflatten(0, (bucket.sums, bucket.fan_in))
        if bucket.fan_in > 1:
            part = passes.draw(part, _uniform((bucket.sums, 1, len(column)), part, generator))
        drawn[bucket.edges] = part.flatten(0, 1)
    return passes.downward(plan, drawn)[1]


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
