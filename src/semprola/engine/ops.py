"""The passes as torch operators with exact derivatives.

They are opaque to `torch.compile`, which would otherwise unroll every level of the circuit. `log_value` has as
derivative the posterior flows, and these have as derivative a tangent pass, so that losses may contain marginals and
entropies, and gradients of gradients exist. Impossible columns have value -inf and derivative zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine import direct, native, plain
from semprola.engine.choice import use_directly, use_native
from semprola.engine.operators import alias, define, fold_batch, register_meta, register_vmap, transforming
from semprola.engine.plan import Plan


def log_value(plan: Plan, weights: Tensor | None, leaves: Tensor) -> Tensor:
    """Log-value of the circuit.

    Args:
        plan: the plan, with W weights.
        weights: log-weights [W, columns], or None for weights of one.
        leaves: log-values of the literals [2 variables, columns].

    Returns:
        [columns]
    """
    if use_directly(leaves, *([] if weights is None else [weights])):
        return direct.log_value(plan, weights, leaves, posterior)
    weights = _present(weights, leaves)
    if transforming():
        value, _, _ = _transformable(weights, leaves, plan.handle)
    elif torch.is_grad_enabled() and (weights.requires_grad or leaves.requires_grad):
        value, _, _ = _evaluate(weights, leaves, plan.handle)
    else:
        value = _log_value(weights, leaves, plan.handle)
    result: Tensor = value
    return result


def posterior(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Probability that each weighted edge, and each literal, is part of the state; the derivative of `log_value`.

    Returns:
        [W, columns] and [2 variables, columns]
    """
    evaluate = _transformable if transforming() else _evaluate
    _, edge_flows, leaf_flows = evaluate(_present(weights, leaves), leaves, plan.handle)
    return edge_flows, leaf_flows


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


def supported(plan: Plan, leaves: Tensor) -> Tensor:
    """Whether the value of each column is above zero; bools [columns]."""
    result: Tensor = _supported(leaves, plan.handle)
    return result


def log_softmax(plan: Plan, logits: Tensor, alive: Tensor | None = None) -> Tensor:
    """Normalise the logits of each sum.

    Args:
        plan: the plan, with W weights.
        logits: [`plan.num_logits`, columns]
        alive: which edges are possible, bools [W, columns]; the others get a weight of exactly zero.

    Returns:
        log-weights [W, columns]
    """
    if not plan.blocks:
        return logits
    sizes = [sums * fan_in for _, sums, fan_in in plan.blocks]
    # one split in place of many slices: the gradient of a slice is a tensor full of zeros
    blocks = spread_logits(plan, logits).split(sizes)
    masks = [None] * len(sizes) if alive is None else alive.split(sizes)
    parts: list[Tensor] = []
    for (_, sums, fan_in), block, live in zip(plan.blocks, blocks, masks, strict=True):
        shape = (sums, fan_in, logits.shape[1])
        parts.append(_normalize(block.view(shape), None if live is None else live.view(shape)))
    return torch.cat([part.flatten(0, 1) for part in parts])


def spread_logits(plan: Plan, logits: Tensor) -> Tensor:
    """One logit per weight [W, ...] from the logits of a plan [`plan.num_logits`, ...]: the first of a pair is zero."""
    pairs = plan.num_pairs
    if not pairs:
        return logits
    second, others = logits.split([pairs, len(logits) - pairs])
    both = torch.stack([torch.zeros_like(second), second], 1).flatten(0, 1)
    return torch.cat([both, others]) if len(others) else both


def logits_of(plan: Plan, log_weights: Tensor) -> Tensor:
    """Logits [`plan.num_logits`, ...] whose `log_softmax` is the given log-weights [W, ...], once normalised."""
    pairs = plan.num_pairs
    first, second = log_weights[: 2 * pairs].unflatten(0, (pairs, 2)).unbind(1)
    return torch.cat([second - first, log_weights[2 * pairs :]])


def _normalize(block: Tensor, live: Tensor | None) -> Tensor:
    if live is None:
        return torch.log_softmax(block, 1)
    # sums that are dead altogether keep their logits: a softmax over nothing would be NaN
    block = block.masked_fill(~live & live.any(1, keepdim=True), float("-inf"))
    return torch.log_softmax(block, 1).masked_fill(~live, float("-inf"))


def _present(weights: Tensor | None, leaves: Tensor) -> Tensor:
    return leaves.new_zeros((0, leaves.shape[1])) if weights is None else weights


def _weights(weights: Tensor) -> Tensor | None:
    return weights if len(weights) else None


@define("log_value", "(Tensor weights, Tensor leaves, int plan) -> Tensor")
def _log_value(weights: Tensor, leaves: Tensor, plan: int) -> Tensor:
    layout = Plan.of(plan)
    if use_native(leaves, weights):
        return native.evaluate(layout, _weights(weights), leaves, flows=False)[0]
    return plain.log_value(layout, _weights(weights), leaves)


@define("evaluate", "(Tensor weights, Tensor leaves, int plan) -> (Tensor, Tensor, Tensor)")
def _evaluate(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log-value and posterior flows at once: the gradient is at hand when the value is."""
    layout = Plan.of(plan)
    if use_native(leaves, weights):
        value, edges, literals = native.evaluate(layout, _weights(weights), leaves, flows=True)
        assert literals is not None
        return value, torch.empty_like(weights) if edges is None else edges, literals
    return plain.evaluate(layout, _weights(weights), leaves)


@define("active", "(Tensor leaves, int plan) -> (Tensor, Tensor)")
def _active(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    layout = Plan.of(plan)
    if use_native(leaves):
        used, possible = native.support(layout, leaves, "active")
        return used.to(leaves.dtype), possible
    return plain.active(layout, leaves)


@define("possible", "(Tensor leaves, int plan) -> (Tensor, Tensor)")
def _possible(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    layout = Plan.of(plan)
    if use_native(leaves):
        return native.support(layout, leaves, "possible")
    return plain.possible(layout, leaves)


@define("supported", "(Tensor leaves, int plan) -> Tensor")
def _supported(leaves: Tensor, plan: int) -> Tensor:
    layout = Plan.of(plan)
    if use_native(leaves):
        return native.support(layout, leaves, None)[1]
    return plain.supported(layout, leaves)


@define(
    "posterior_tangent",
    "(Tensor weights, Tensor leaves, Tensor d_weights, Tensor d_leaves, int plan) -> (Tensor, Tensor)",
)
def _tangent(weights: Tensor, leaves: Tensor, d_weights: Tensor, d_leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return plain.tangent(Plan.of(plan), _weights(weights), leaves, _weights(d_weights), d_leaves)


@register_meta("log_value")
def _(weights: Tensor, leaves: Tensor, plan: int) -> Tensor:
    return leaves.new_empty(leaves.shape[1])


@register_meta("evaluate")
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor, Tensor]:
    return leaves.new_empty(leaves.shape[1]), torch.empty_like(weights), torch.empty_like(leaves)


@register_meta("active")
def _(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    columns = leaves.shape[1]
    return leaves.new_empty((Plan.of(plan).num_weights, columns)), leaves.new_empty(columns, dtype=torch.bool)


@register_meta("possible")
def _(leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    columns = leaves.shape[1]
    shape = (Plan.of(plan).num_weights, columns)
    return leaves.new_empty(shape, dtype=torch.bool), leaves.new_empty(columns, dtype=torch.bool)


@register_meta("supported")
def _(leaves: Tensor, plan: int) -> Tensor:
    return leaves.new_empty(leaves.shape[1], dtype=torch.bool)


@register_meta("posterior_tangent")
def _(weights: Tensor, leaves: Tensor, d_weights: Tensor, d_leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(weights), torch.empty_like(leaves)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
    weights, leaves, ctx.plan = inputs
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(weights, leaves, *output[1:])


def _derivative(
    ctx: Any, of_value: Tensor | None, of_edges: Tensor | None, of_leaves: Tensor | None
) -> tuple[Tensor | None, Tensor | None, None]:
    weights, leaves, edge_flows, leaf_flows = ctx.saved_tensors
    weights_gradient = leaves_gradient = None
    if of_value is not None:
        weights_gradient, leaves_gradient = of_value * edge_flows, of_value * leaf_flows
    if of_edges is not None or of_leaves is not None:
        along_edges = torch.zeros_like(edge_flows) if of_edges is None else of_edges
        along_leaves = torch.zeros_like(leaf_flows) if of_leaves is None else of_leaves
        # the Hessian of log Z is symmetric: its transpose applied to the cotangents is a tangent pass along them
        d_edges, d_leaves = _tangent(weights, leaves, along_edges, along_leaves, ctx.plan)
        weights_gradient = d_edges if weights_gradient is None else weights_gradient + d_edges
        leaves_gradient = d_leaves if leaves_gradient is None else leaves_gradient + d_leaves
    return weights_gradient, leaves_gradient, None


torch.library.register_autograd("semprola::evaluate", _derivative, setup_context=_setup)


def _setup_tangent(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.plan = inputs
    ctx.save_for_backward(*tensors)


def _tangent_derivative(ctx: Any, of_edges: Tensor, of_leaves: Tensor) -> tuple[Tensor | None, ...]:
    """The third derivative, which no pass is written for, by differentiating plain operations."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        weights, leaves, d_weights, d_leaves = inputs = alias(*ctx.saved_tensors)
        by = [weights, leaves] if len(weights) else [leaves]
        along = [d_weights, d_leaves] if len(weights) else [d_leaves]
        cotangents = [of_edges, of_leaves] if len(weights) else [of_leaves]
        value = plain.differentiable(Plan.of(ctx.plan), _weights(weights), leaves)
        slopes = torch.autograd.grad(value.sum(), by, create_graph=True)
        changes = torch.autograd.grad(slopes, by, along, create_graph=True)
        gradients = torch.autograd.grad(changes, inputs, cotangents, create_graph=again, allow_unused=True)
    return *gradients, None


torch.library.register_autograd("semprola::posterior_tangent", _tangent_derivative, setup_context=_setup_tangent)


class _Evaluate(torch.autograd.Function):
    """The operator `evaluate` for torch.func: registered operators know nothing of forward derivatives."""

    @staticmethod
    def forward(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor, Tensor]:
        result: tuple[Tensor, Tensor, Tensor] = _evaluate(weights, leaves, plan)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor, Tensor]) -> None:
        _setup(ctx, inputs, output)
        ctx.save_for_forward(*inputs[:2], *output[1:])

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor | None) -> Any:
        return _derivative(ctx, *cotangents)

    @staticmethod
    def jvp(ctx: Any, d_weights: Tensor | None, d_leaves: Tensor | None, _: None) -> Any:
        weights, leaves, edge_flows, leaf_flows = ctx.saved_tensors
        d_weights = torch.zeros_like(weights) if d_weights is None else d_weights
        d_leaves = torch.zeros_like(leaves) if d_leaves is None else d_leaves
        d_value = (edge_flows * d_weights).sum(0) + (leaf_flows * d_leaves).sum(0)
        return d_value, *_tangent(weights, leaves, d_weights, d_leaves, ctx.plan)

    @staticmethod
    def vmap(info: Any, in_dims: tuple[int | None, ...], weights: Tensor, leaves: Tensor, plan: int) -> Any:
        return fold_batch(_transformable, info, in_dims, weights, leaves, plan)


_transformable: Any = _Evaluate.apply

for _name in ("log_value", "active", "possible", "supported", "posterior_tangent"):
    register_vmap(_name)
