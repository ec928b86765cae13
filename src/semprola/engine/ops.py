"""The passes as torch operators with exact derivatives.

They are opaque to `torch.compile`, which would otherwise unroll every level of the circuit. `log_value` has as
derivative the posterior flows, and these have as derivative a tangent pass, so that losses may contain marginals and
entropies, and gradients of gradients exist. Impossible columns have value -inf and derivative zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine import passes
from semprola.engine.plan import Bucket, Plan


def log_value(plan: Plan, weights: Tensor | None, leaves: Tensor) -> Tensor:
    """Log-value of the circuit.

    Args:
        plan: the plan, with W weights.
        weights: log-weights [W, columns], or None for weights of one.
        leaves: log-values of the literals [2 variables, columns].

    Returns:
        [columns]
    """
    result: Tensor = _log_value(_present(weights, leaves), leaves, plan.handle)
    return result


def posterior(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Probability that each weighted edge, and each literal, is part of the state; the derivative of `log_value`.

    Returns:
        [W, columns] and [2 variables, columns]
    """
    result: tuple[Tensor, Tensor] = _posterior(_present(weights, leaves), leaves, plan.handle)
    return result


def active(plan: Plan, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Which weighted edges and literals a state of a deterministic circuit uses; no derivatives.

    Args:
        plan: a plan whose sums are deterministic, with W weights.
        leaves: 0 for the literals of the state, -inf for the others [2 variables, columns].

    Returns:
        0/1 for each edge [W, columns], and whether the state is in the support [columns].
    """
    result: tuple[Tensor, Tensor] = _active(leaves, plan.handle)
    return result


def possible(plan: Plan, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Which weighted edges, and columns, have a value above zero; no derivatives.

    Returns:
        bools [W, columns] and [columns]
    """
    result: tuple[Tensor, Tensor] = _possible(leaves, plan.handle)
    return result


def log_softmax(plan: Plan, logits: Tensor, alive: Tensor | None = None) -> Tensor:
    """Normalise the logits of each sum.

    Args:
        plan: the plan, with W weights.
        logits: [W, columns]
        alive: which edges are possible, bools of the same shape; the others get a weight of exactly zero.

    Returns:
        log-weights [W, columns]
    """
    parts = []
    for first, sums, fan_in in plan.blocks:
        block = logits[first : first + sums * fan_in].unflatten(0, (sums, fan_in))
        if alive is None:
            parts.append(torch.log_softmax(block, 1).flatten(0, 1))
            continue
        live = alive[first : first + sums * fan_in].unflatten(0, (sums, fan_in))
        # sums that are dead altogether keep their logits: a softmax over nothing would be NaN
        block = block.masked_fill(~live & live.any(1, keepdim=True), float("-inf"))
        parts.append(torch.log_softmax(block, 1).masked_fill(~live, float("-inf")).flatten(0, 1))
    return torch.cat(parts) if parts else logits


def _present(weights: Tensor | None, leaves: Tensor) -> Tensor:
    return leaves.new_zeros((0, leaves.shape[1])) if weights is None else weights


def _weights(weights: Tensor) -> Tensor | None:
    return weights if len(weights) else None


@torch.library.custom_op("semprola::log_value", mutates_args=())
def _log_value(weights: Tensor, leaves: Tensor, plan: int) -> Tensor:
    layout = Plan.of(plan)
    values, _ = passes.upward(layout, _weights(weights), leaves)
    return values[layout.root_row].clone()


@torch.library.custom_op("semprola::posterior", mutates_args=())
def _posterior(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    layout = Plan.of(plan)
    values, shares = passes.upward(layout, _weights(weights), leaves, share=passes.posterior)
    assert shares is not None
    shares *= values[layout.root_row] > float("-inf")
    edge_flows, leaf_flows = passes.downward(layout, shares)
    return edge_flows[layout.num_fixed :].clone() if len(weights) else weights.clone(), leaf_flows


@torch.library.custom_op("semprola::active", mutates_args=())
def _active(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    layout = Plan.of(plan)
    values, shares = passes.upward(layout, None, leaves, share=passes.posterior)
    assert shares is not None
    possible = values[layout.root_row] > float("-inf")
    shares *= possible
    edge_flows, _ = passes.downward(layout, shares)
    return edge_flows[layout.num_fixed :].clone(), possible


@torch.library.custom_op("semprola::possible", mutates_args=())
def _possible(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    layout = Plan.of(plan)
    alive = leaves.new_empty((layout.num_edges, leaves.shape[1]), dtype=torch.bool)

    def keep(bucket: Bucket, edges: Tensor, sums: Tensor) -> None:
        alive[bucket.edges] = (edges > float("-inf")).flatten(0, 1)

    values, _ = passes.upward(layout, None, leaves, maximize=True, visit=keep)
    return alive[layout.num_fixed :].clone(), values[layout.root_row] > float("-inf")


@torch.library.custom_op("semprola::posterior_tangent", mutates_args=())
def _tangent(weights: Tensor, leaves: Tensor, d_weights: Tensor, d_leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    layout = Plan.of(plan)
    _, shares = passes.upward(layout, _weights(weights), leaves, share=passes.posterior)
    assert shares is not None
    flows, _ = passes.downward(layout, shares)
    d_flows, d_leaf_flows = passes.tangent(layout, shares, flows, _weights(d_weights), d_leaves)
    return d_flows[layout.num_fixed :].clone() if len(weights) else weights.clone(), d_leaf_flows


@_log_value.register_fake
def _(weights: Tensor, leaves: Tensor, plan: int) -> Tensor:
    return leaves.new_empty(leaves.shape[1])


@_posterior.register_fake
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weights), torch.empty_like(leaves)


@_active.register_fake
def _(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    columns = leaves.shape[1]
    return leaves.new_empty((Plan.of(plan).num_weights, columns)), leaves.new_empty(columns, dtype=torch.bool)


@_possible.register_fake
def _(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    columns = leaves.shape[1]
    shape = (Plan.of(plan).num_weights, columns)
    return leaves.new_empty(shape, dtype=torch.bool), leaves.new_empty(columns, dtype=torch.bool)


@_tangent.register_fake
def _(weights: Tensor, leaves: Tensor, d_weights: Tensor, d_leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weights), torch.empty_like(leaves)


def _save_inputs(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
    weights, leaves, ctx.plan = inputs
    ctx.save_for_backward(weights, leaves)


def _log_value_backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor, None]:
    weights, leaves = ctx.saved_tensors
    edge_flows, leaf_flows = _posterior(weights, leaves, ctx.plan)
    return gradient * edge_flows, gradient * leaf_flows, None


def _posterior_backward(ctx: Any, edge_gradient: Tensor, leaf_gradient: Tensor) -> tuple[Tensor, Tensor, None]:
    weights, leaves = ctx.saved_tensors
    return (*_tangent(weights, leaves, edge_gradient, leaf_gradient, ctx.plan), None)


_log_value.register_autograd(_log_value_backward, setup_context=_save_inputs)
_posterior.register_autograd(_posterior_backward, setup_context=_save_inputs)
