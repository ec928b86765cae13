"""One upward and one downward pass over a plan; a query is a choice of what flows.

Values are in log space, of shape [rows, columns]: one column for each batch element (times mixture components).
Upward, an edge is the sum of its factors' values plus its weight, and a sum reduces its edges by log-sum-exp or by
maximum. Each edge thereby gets a *share* of its sum: its posterior probability, a one-hot choice of the best edge, or a
one-hot random choice. Downward, the root hands out a flow of one in these shares; what arrives at a literal is its
marginal, or its value in the decoded or sampled state.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.engine.plan import Bucket, Plan

Share = Callable[[Bucket, Tensor, Tensor], Tensor]
"""From a bucket, its edges' values [sums, fan_in, columns] and its sums' values [sums, columns] to the shares."""

_NEGATIVE_INFINITY = float("-inf")


def upward(
    plan: Plan,
    weights: Tensor | None,
    leaves: Tensor,
    *,
    maximize: bool = False,
    share: Share | None = None,
    visit: Callable[[Bucket, Tensor, Tensor], None] | None = None,
) -> tuple[Tensor, Tensor | None]:
    """Values of all rows, and the shares of all edges if a rule for them is given.

    Args:
        plan: the plan, with E edges of which W carry weights.
        weights: log-weights of the edges that have one [W, columns]; None for weights of one.
        leaves: log-values of the literals [2 variables, columns].
        maximize: reduce every sum by maximum in place of log-sum-exp (the plan's own choices always are).
        share: rule for the shares of a bucket's edges.
        visit: called with each bucket, its edges' values and its sums' values, for whoever wants to look.

    Returns:
        values [rows, columns], shares [E, columns] or None.
    """
    columns = leaves.shape[1]
    values = leaves.new_empty((plan.num_rows, columns))
    values[: plan.num_leaves] = leaves
    shares = leaves.new_empty((plan.num_edges, columns)) if share is not None else None
    for bucket in plan.on(leaves.device).buckets:
        edges = gather_sum(values, bucket.factors, bucket.offsets)
        if weights is not None and bucket.edges.start >= plan.num_fixed:
            edges += weights[bucket.edges.start - plan.num_fixed : bucket.edges.stop - plan.num_fixed]
        edges = edges.view(bucket.sums, bucket.fan_in, columns)
        if bucket.fan_in == 1:
            sums = edges[:, 0]
        elif maximize or bucket.is_choice:
            sums = edges.amax(1)
        else:
            sums = torch.logsumexp(edges, 1)
        values[bucket.rows] = sums
        if shares is not None and share is not None:
            shares[bucket.edges] = share(bucket, edges, sums).flatten(0, 1)
        if visit is not None:
            visit(bucket, edges, sums)
    return values, shares


def downward(plan: Plan, shares: Tensor) -> tuple[Tensor, Tensor]:
    """Hand the root's flow of one down in the given shares [E, columns], which are overwritten.

    Returns:
        flow through each edge [E, columns], in place of its share, and into each literal [2 variables, columns].
    """
    flows = shares
    schedule = plan.on(shares.device)
    for bucket in reversed(schedule.buckets):
        arriving = _arriving(plan, flows, bucket)
        flows[bucket.edges].unflatten(0, (bucket.sums, bucket.fan_in)).mul_(arriving[:, None])
    return flows, gather_sum(flows, schedule.leaf_parents, schedule.leaf_offsets)


def downward_choosing(plan: Plan, shares: Tensor) -> Tensor:
    """Like :func:`downward`, but where the plan has choices all copies of a sum take the same branch.

    The branch is the one with the largest share, weighted by the flow that arrives at each copy.

    Returns:
        flow into each literal [2 variables, columns].
    """
    flows = torch.empty_like(shares)
    columns = shares.shape[1]
    schedule = plan.on(shares.device)
    for bucket in reversed(schedule.buckets):
        arriving = _arriving(plan, flows, bucket)
        part = shares[bucket.edges].view(bucket.sums, bucket.fan_in, columns)
        if bucket.is_choice:
            grouped = (part * arriving[:, None]).unflatten(0, (bucket.sums // bucket.copies, bucket.copies))
            best = one_hot_max(grouped.sum(1)).repeat_interleave(bucket.copies, 0)
            part = best.view(bucket.sums, bucket.fan_in, columns)
        flows[bucket.edges] = (part * arriving[:, None]).flatten(0, 1)
    return gather_sum(flows, schedule.leaf_parents, schedule.leaf_offsets)


def tangent(
    plan: Plan, shares: Tensor, flows: Tensor, d_weights: Tensor | None, d_leaves: Tensor
) -> tuple[Tensor, Tensor]:
    """Derivative of the posterior flows along a change of weights and leaves (a Hessian-vector product of log Z).

    Args:
        plan: the plan.
        shares: posterior shares of the edges [E, columns].
        flows: posterior flows of the edges [E, columns].
        d_weights: change of the weights [W, columns], or None.
        d_leaves: change of the leaves [2 variables, columns].

    Returns:
        change of the flow through each edge [E, columns] and into each literal [2 variables, columns].
    """
    columns = d_leaves.shape[1]
    d_values = d_leaves.new_empty((plan.num_rows, columns))
    d_values[: plan.num_leaves] = d_leaves
    d_shares = torch.empty_like(shares)
    schedule = plan.on(d_leaves.device)
    for bucket in schedule.buckets:
        d_edges = gather_sum(d_values, bucket.factors, bucket.offsets)
        if d_weights is not None and bucket.edges.start >= plan.num_fixed:
            d_edges += d_weights[bucket.edges.start - plan.num_fixed : bucket.edges.stop - plan.num_fixed]
        d_edges = d_edges.view(bucket.sums, bucket.fan_in, columns)
        part = shares[bucket.edges].view_as(d_edges)
        d_sums = (part * d_edges).sum(1)
        d_values[bucket.rows] = d_sums
        d_shares[bucket.edges] = (part * (d_edges - d_sums[:, None])).flatten(0, 1)
    d_flows = torch.empty_like(shares)
    for bucket in reversed(schedule.buckets):
        is_root = bucket.rows.stop - 1 == plan.root_row
        arriving = _arriving(plan, flows, bucket)
        d_arriving = (
            torch.zeros_like(arriving) if is_root else gather_sum(d_flows, bucket.parents, bucket.parent_offsets)
        )
        part = shares[bucket.edges].view(bucket.sums, bucket.fan_in, columns)
        d_part = d_shares[bucket.edges].view_as(part)
        d_flows[bucket.edges] = (d_part * arriving[:, None] + part * d_arriving[:, None]).flatten(0, 1)
    return d_flows, gather_sum(d_flows, schedule.leaf_parents, schedule.leaf_offsets)


def gather_sum(rows: Tensor, index: Tensor, offsets: Tensor | None) -> Tensor:
    """Sum of the listed rows of each bag (offsets of None: one row each)."""
    if offsets is None:
        return rows.index_select(0, index)
    if len(index) == 0:
        return rows.new_zeros((len(offsets), rows.shape[1]))
    # the fastest gather-and-add that torch has on CPU
    return F.embedding_bag(index, rows, offsets, mode="sum")


def posterior(bucket: Bucket, edges: Tensor, sums: Tensor) -> Tensor:
    """Share rule: the probability of each edge given its sum; zero where the sum is impossible."""
    reference = sums.masked_fill(sums == _NEGATIVE_INFINITY, 0.0)
    return (edges - reference[:, None]).exp_()


def alive(bucket: Bucket, edges: Tensor, sums: Tensor) -> Tensor:
    """Share rule: one for every possible edge (of a deterministic sum and a full state, there is one at most)."""
    return (edges > _NEGATIVE_INFINITY).to(edges.dtype)


def best(bucket: Bucket, edges: Tensor, sums: Tensor) -> Tensor:
    """Share rule: one for the best edge, zero for the others."""
    return one_hot_max(edges)


def one_hot_max(scores: Tensor) -> Tensor:
    """One at the maximum along dimension 1, zero elsewhere."""
    return torch.zeros_like(scores).scatter_(1, scores.argmax(1, keepdim=True), 1.0)


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """One-hot random choice along dimension 1 with the given (unnormalised) probabilities.

    Args:
        probabilities: [sums, fan_in, columns]
        uniform: numbers in [0, 1) [sums, 1, columns]
    """
    cumulative = probabilities.cumsum(1)
    total = cumulative[:, -1:]
    # strictly below the total, so that an edge of probability zero is never drawn
    threshold = torch.minimum(uniform * total, torch.nextafter(total, torch.zeros_like(total)))
    chosen = (cumulative <= threshold).sum(1, keepdim=True).clamp_(max=probabilities.shape[1] - 1)
    return torch.zeros_like(probabilities).scatter_(1, chosen, 1.0)


def _arriving(plan: Plan, flows: Tensor, bucket: Bucket) -> Tensor:
    if bucket.rows.stop - 1 == plan.root_row:
        return flows.new_ones((bucket.sums, flows.shape[1]))
    return gather_sum(flows, bucket.parents, bucket.parent_offsets)
