"""One upward and one downward pass over a plan; a query is a choice of what flows.

Values are in log space, of shape [rows, columns]: one column for each batch element (times mixture components).
Upward, the value of an edge is the sum of its factors' values plus its weight. A *rule* computes a sum from its edges:
its value, by log-sum-exp or by maximum, and each edge's *share* of it, which is its posterior probability or a one-hot
choice of the best edge. Downward, the root hands out a flow of one in these shares; what arrives at a literal is its
marginal, or its value in the decoded or sampled state.

Impossible edges have the value -inf and a share of exactly zero. Only if all edges of a sum are impossible do the rules
replace -inf by a finite number, because differences of infinities are NaN. The shares there are meaningless, but no
flow reaches them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan, Step

Rule = Callable[[Step, Tensor, Tensor, Tensor | None], None]
"""From a step and its edges' values [sums, fan_in, columns], fill in its sums' values [sums, columns] and, unless
None, its edges' shares [sums, fan_in, columns]."""

Visitor = Callable[[Step, Tensor, Tensor], None]
"""Called with a step, its edges' values and its sums' values."""


def upward(
    plan: Plan,
    weights: Tensor | None,
    leaves: Tensor,
    rule: Rule,
    *,
    values: Tensor | None = None,
    shares: Tensor | None = None,
    visit: Visitor | None = None,
) -> Tensor:
    """Values of all rows.

    Args:
        weights: log-weights of the edges that have one [W, columns]; None for weights of one.
        leaves: log-values of the literals [2 variables, columns]; with `values`, fewer columns are repeated.
        values: to be filled with the result [rows, columns]; made if None.
        shares: to be filled with the shares of all edges [E, columns], if wanted.

    Returns:
        values [rows, columns]
    """
    values = leaves.new_empty((plan.num_rows, leaves.shape[1])) if values is None else values
    columns = values.shape[1]
    if columns:
        values[: plan.num_leaves].view(len(leaves), -1, leaves.shape[1]).copy_(leaves[:, None])
    for step in plan.on(leaves.device).steps:
        edges = gather_sum(values, step.factors, step.offsets)
        if weights is not None and step.edges.start >= plan.num_fixed:
            edges += weights[step.edges.start - plan.num_fixed : step.edges.stop - plan.num_fixed]
        edges = edges.view(step.sums, step.fan_in, columns)
        sums, part = values[step.rows], None if shares is None else shares[step.edges].view_as(edges)
        if step.fan_in == 1:
            sums.copy_(edges[:, 0])
            if part is not None:
                part.fill_(1.0)
        else:
            rule(step, edges, sums, part)
        if visit is not None:
            visit(step, edges, sums)
    return values


def downward(plan: Plan, shares: Tensor, root: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Hand the root's flow down in the given shares [E, columns], which are overwritten.

    Args:
        shares: of all edges [E, columns].
        root: the flow to hand out [columns]; one if None.

    Returns:
        flow through each edge [E, columns], in place of its share, and into each literal [2 variables, columns].
    """
    flows = through_edges(plan, shares, root)
    steps = plan.on(shares.device)
    return flows, gather_sum(flows, steps.leaf_parents, steps.leaf_offsets)


def through_edges(plan: Plan, shares: Tensor, root: Tensor | None = None) -> Tensor:
    """The first result of :func:`downward` alone."""
    flows = shares
    for step in reversed(plan.on(shares.device).steps):
        arriving = _arriving(plan, flows, step, root)
        flows[step.edges].unflatten(0, (step.sums, step.fan_in)).mul_(arriving[:, None])
    return flows


def downward_choosing(plan: Plan, shares: Tensor) -> Tensor:
    """Like :func:`downward`, but in a plan's choices all copies of a sum take the same branch.

    The branch is the one with the largest share, weighted by the flow that arrives at each copy.

    Returns:
        flow into each literal [2 variables, columns].
    """
    flows = torch.empty_like(shares)
    columns = shares.shape[1]
    steps = plan.on(shares.device)
    for step in reversed(steps.steps):
        arriving = _arriving(plan, flows, step)
        part = shares[step.edges].view(step.sums, step.fan_in, columns)
        if step.is_choice:
            grouped = (part * arriving[:, None]).unflatten(0, (step.sums // step.copies, step.copies))
            chosen = one_hot_max(grouped.sum(1)).repeat_interleave(step.copies, 0)
            part = chosen.view(step.sums, step.fan_in, columns)
        flows[step.edges] = (part * arriving[:, None]).flatten(0, 1)
    return gather_sum(flows, steps.leaf_parents, steps.leaf_offsets)


def tangent(
    plan: Plan, shares: Tensor, flows: Tensor, d_weights: Tensor | None, d_leaves: Tensor, root: Tensor
) -> tuple[Tensor, Tensor]:
    """Derivative of the posterior flows along a change of weights and leaves (a Hessian-vector product of log Z).

    Args:
        shares: posterior shares of the edges [E, columns].
        flows: posterior flows of the edges [E, columns].
        d_weights: change of the weights [W, columns], or None.
        d_leaves: change of the leaves [2 variables, columns].
        root: the flow that the root handed out [columns].

    Returns:
        change of the flow through each edge [E, columns] and into each literal [2 variables, columns].
    """
    columns = d_leaves.shape[1]
    d_values = d_leaves.new_empty((plan.num_rows, columns))
    d_values[: plan.num_leaves] = d_leaves
    d_shares = torch.empty_like(shares)
    steps = plan.on(d_leaves.device)
    for step in steps.steps:
        d_edges = gather_sum(d_values, step.factors, step.offsets)
        if d_weights is not None and step.edges.start >= plan.num_fixed:
            d_edges += d_weights[step.edges.start - plan.num_fixed : step.edges.stop - plan.num_fixed]
        d_edges = d_edges.view(step.sums, step.fan_in, columns)
        part = shares[step.edges].view_as(d_edges)
        d_sums = (part * d_edges).sum(1)
        d_values[step.rows] = d_sums
        d_shares[step.edges] = (part * (d_edges - d_sums[:, None])).flatten(0, 1)
    d_flows = torch.empty_like(shares)
    for step in reversed(steps.steps):
        arriving = _arriving(plan, flows, step, root)
        d_arriving = _arriving(plan, d_flows, step, torch.zeros_like(root))
        part = shares[step.edges].view(step.sums, step.fan_in, columns)
        d_part = d_shares[step.edges].view_as(part)
        d_flows[step.edges] = (d_part * arriving[:, None] + part * d_arriving[:, None]).flatten(0, 1)
    return d_flows, gather_sum(d_flows, steps.leaf_parents, steps.leaf_offsets)


def support(plan: Plan, leaves: Tensor, *, keep: bool) -> tuple[Tensor, Tensor | None]:
    """Which rows are possible, 0 or -1 [rows, columns], and on request which edges are, 1 or 0 [E, columns].

    Args:
        leaves: log-values of the literals [2 variables, columns]; it only matters whether they are -inf.
    """
    values = leaves.new_empty((plan.num_rows, leaves.shape[1]))
    values[: plan.num_leaves] = leaves > NEGATIVE_INFINITY
    values[: plan.num_leaves] -= 1.0
    alive = leaves.new_empty((plan.num_edges, leaves.shape[1])) if keep else None
    for step in plan.on(leaves.device).steps:
        edges = gather_sum(values, step.factors, step.offsets).clamp_(min=-1.0)
        torch.amax(edges.view(step.sums, step.fan_in, leaves.shape[1]), 1, out=values[step.rows])
        if alive is not None:
            torch.add(edges, 1.0, out=alive[step.edges])
    return values, alive


def gather_sum(rows: Tensor, index: Tensor, offsets: Tensor | None) -> Tensor:
    """Sum of the rows listed in each bag (one row per bag if offsets is None)."""
    if offsets is None:
        return rows.index_select(0, index)
    if len(index) == 0:
        return rows.new_zeros((len(offsets), rows.shape[1]))
    # the fastest gather-and-add that torch has on CPU
    return F.embedding_bag(index, rows, offsets, mode="sum")


# rules ----------------------------------------------------------------------------------------------------------------


def total(step: Step, edges: Tensor, sums: Tensor, shares: Tensor | None) -> None:
    """Rule: log-sum-exp (the maximum for a plan's choices); a share is the probability of the edge given its sum.

    On CPU, `exp` takes twenty times as long where it underflows, and `logsumexp` takes as long as five softmaxes, so
    both are built from functions that are fast everywhere. The largest share is at least 1 / fan_in, so the value can
    be computed from it without loss.
    """
    if step.is_choice:
        torch.amax(edges, 1, out=sums)
        if shares is not None:
            torch.exp2((edges - finite(sums)[:, None]).mul_(1 / math.log(2.0)), out=shares)
    elif step.fan_in == 2:
        first, second = edges.unbind(1)
        if shares is None:
            torch.logaddexp(first, second, out=sums)
            return
        difference = torch.nan_to_num_(first - second, 0.0, math.inf, -math.inf)
        torch.sigmoid(difference, out=shares[:, 0])
        torch.sigmoid(difference.neg_(), out=shares[:, 1])
        largest = torch.maximum(shares[:, 0], shares[:, 1], out=difference)
        torch.sub(torch.maximum(first, second, out=sums), largest.log_(), out=sums)
    elif shares is None:
        torch.sub(edges.amax(1), torch.log_softmax(finite(edges), 1).amax(1), out=sums)
    else:
        torch.softmax(finite(edges), 1, out=shares)
        torch.sub(edges.amax(1), shares.amax(1).log_(), out=sums)


def best(step: Step, edges: Tensor, sums: Tensor, shares: Tensor | None) -> None:
    """Rule: the maximum; the first edge that attains it gets a share of one, the others zero."""
    torch.amax(edges, 1, out=sums)
    if shares is not None:
        shares.copy_(_first_of(edges, sums[:, None]))


def one_hot_max(scores: Tensor) -> Tensor:
    """One at the (first) maximum along dimension 1, zero elsewhere."""
    return _first_of(scores, scores.amax(1, keepdim=True))


def draw(probabilities: Tensor, uniform: Tensor) -> Tensor:
    """One-hot random choice along dimension 1 with the given (unnormalised) probabilities.

    Args:
        probabilities: [sums, fan_in, columns]
        uniform: numbers in [0, 1) [sums, 1, columns]
    """
    cumulative = probabilities.cumsum(1)
    whole = cumulative[:, -1:]
    # strictly below the total, so that an edge of probability zero is never drawn
    threshold = torch.minimum(uniform * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    passed = cumulative.sub_(threshold).sign_().clamp_(min=0.0)
    chosen = passed.clone()
    chosen[:, 1:] -= passed[:, :-1]
    return chosen


# impossible values ----------------------------------------------------------------------------------------------------


def finite(values: Tensor) -> Tensor:
    """The values with -inf replaced by the lowest finite number, which vanishes next to any possible value."""
    return values.clamp(min=torch.finfo(values.dtype).min)


def _first_of(scores: Tensor, largest: Tensor) -> Tensor:
    """One at the first of the scores [sums, fan_in, columns] that equal the largest [sums, 1, columns]."""
    # argmax along a short dimension that is not the last takes a hundred times as long on CPU
    equal = (finite(scores) - finite(largest)).sign_().add_(1.0)
    rank = torch.arange(scores.shape[1], 0, -1, dtype=scores.dtype, device=scores.device)[:, None]
    equal.mul_(rank)
    return equal.sub_(equal.amax(1, keepdim=True)).sign_().add_(1.0)


def _arriving(plan: Plan, flows: Tensor, step: Step, root: Tensor | None = None) -> Tensor:
    """What the parents hand down to the sums of a step and, at the root, what it hands out (one if None)."""
    arriving = gather_sum(flows, step.parents, step.parent_offsets)
    if step.rows.start <= plan.root_row < step.rows.stop:
        arriving[plan.root_row - step.rows.start] = 1.0 if root is None else root
    return arriving
