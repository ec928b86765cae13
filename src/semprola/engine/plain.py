"""The engine's operators by torch: on any device, on as many columns at once as the memory allows.

The counterpart of `native`: both take a plan, log-weights [W, columns] or None, and literal scores [2 variables,
columns]. But for the last function nothing here has derivatives; `ops` knows them.
"""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.engine import passes
from semprola.engine.chunks import by_columns
from semprola.engine.plan import Plan

_NEGATIVE_INFINITY = float("-inf")


def log_value(plan: Plan, weights: Tensor | None, leaves: Tensor) -> Tensor:
    """Log-values [columns]."""

    def part(leaves: Tensor, weights: Tensor | None) -> Tensor:
        return passes.upward(plan, weights, leaves, passes.total)[plan.root_row].clone()

    result: Tensor = by_columns(plan, part, leaves, weights)
    return result


def evaluate(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Log-values [columns], posterior flows through weighted edges [W, columns] (none without weights) and literals."""

    def part(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        value, shares = _shares(plan, weights, leaves, passes.total)
        edge_flows, leaf_flows = passes.downward(plan, shares, value > _NEGATIVE_INFINITY)
        return value, _weighted(plan, weights, edge_flows), leaf_flows

    result: tuple[Tensor, Tensor, Tensor] = by_columns(plan, part, leaves, weights)
    return result


def tangent(
    plan: Plan, weights: Tensor | None, leaves: Tensor, d_weights: Tensor | None, d_leaves: Tensor
) -> tuple[Tensor, Tensor]:
    """Change of the posterior flows of :func:`evaluate` along a change of weights and literal scores."""

    def part(
        leaves: Tensor, weights: Tensor | None, d_leaves: Tensor, d_weights: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        value, shares = _shares(plan, weights, leaves, passes.total)
        root = (value > _NEGATIVE_INFINITY).to(shares.dtype)
        flows, _ = passes.downward(plan, shares.clone(), root)
        d_flows, d_leaf_flows = passes.tangent(plan, shares, flows, d_weights, d_leaves, root)
        return _weighted(plan, weights, d_flows), d_leaf_flows

    result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves, weights, d_leaves, d_weights)
    return result


def active(plan: Plan, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """0/1 for the weighted edges that a state of a deterministic circuit uses [W, columns], and if it is possible."""

    def part(leaves: Tensor) -> tuple[Tensor, Tensor]:
        # of a deterministic sum and a full state, one edge at most is possible: that is its share
        rows, shares = passes.support(plan, leaves, keep=True)
        assert shares is not None
        possible = rows[plan.root_row] == 0
        edge_flows, _ = passes.downward(plan, shares, possible)
        return edge_flows[plan.num_fixed :], possible

    result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves)
    return result


def possible(plan: Plan, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Whether each weighted edge [W, columns] and each column has a value above zero."""

    def part(leaves: Tensor) -> tuple[Tensor, Tensor]:
        rows, alive = passes.support(plan, leaves, keep=True)
        assert alive is not None
        return alive[plan.num_fixed :] > 0, rows[plan.root_row] == 0

    result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves)
    return result


def supported(plan: Plan, leaves: Tensor) -> Tensor:
    """Whether each column has a value above zero."""

    def part(leaves: Tensor) -> Tensor:
        return passes.support(plan, leaves, keep=False)[0][plan.root_row] == 0

    result: Tensor = by_columns(plan, part, leaves)
    return result


def choose(plan: Plan, weights: Tensor | None, leaves: Tensor, rule: passes.Rule) -> tuple[Tensor, Tensor]:
    """Log-values [columns] and the flow into each literal [2 variables, columns] by some rule for sums."""

    def part(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        value, shares = _shares(plan, weights, leaves, rule)
        return value, passes.downward(plan, shares)[1]

    result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves, weights)
    return result


def choose_branches(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """The same for a plan with choices, which all copies of a sum make alike."""

    def part(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        value, shares = _shares(plan, weights, leaves, passes.total)
        return value, passes.downward_choosing(plan, shares)

    result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves, weights)
    return result


def differentiable(plan: Plan, weights: Tensor | None, leaves: Tensor) -> Tensor:
    """Log-values [columns], 0 where impossible, by operations that can be differentiated as often as one likes.

    Slower than the others, for derivatives of the third order and beyond.
    """
    values = torch.cat([leaves, leaves.new_zeros((plan.num_rows - plan.num_leaves, leaves.shape[1]))])
    for bucket in plan.on(leaves.device).buckets:
        factors = values.index_select(0, bucket.factors)
        edges = leaves.new_zeros((bucket.sums * bucket.fan_in, leaves.shape[1]))
        edges = edges.index_add(0, bucket.edge_of_factor(), factors)
        if weights is not None and bucket.edges.start >= plan.num_fixed:
            own = weights[bucket.edges.start - plan.num_fixed : bucket.edges.stop - plan.num_fixed]
            edges = edges + own
        edges = edges.unflatten(0, (bucket.sums, bucket.fan_in))
        # a derivative of logsumexp is NaN where all is -inf: what is impossible takes no part in it
        dead = edges.detach() == _NEGATIVE_INFINITY
        sums = edges.masked_fill(dead, torch.finfo(edges.dtype).min).logsumexp(1)
        sums = sums.masked_fill(dead.all(1), _NEGATIVE_INFINITY)
        values = values.slice_scatter(sums, 0, bucket.rows.start, bucket.rows.stop)
    root = values[plan.root_row]
    return root.masked_fill(root.detach() == _NEGATIVE_INFINITY, 0.0)


def _shares(plan: Plan, weights: Tensor | None, leaves: Tensor, rule: passes.Rule) -> tuple[Tensor, Tensor]:
    """Log-values [columns] and shares of all edges [E, columns]."""
    shares = leaves.new_empty((plan.num_edges, leaves.shape[1]))
    values = passes.upward(plan, weights, leaves, rule, shares=shares)
    return values[plan.root_row].clone(), shares


def _weighted(plan: Plan, weights: Tensor | None, flows: Tensor) -> Tensor:
    return flows[plan.num_fixed :] if weights is not None else torch.empty_like(flows[:0])
