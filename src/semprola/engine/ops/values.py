"""The value of a circuit, its posterior and its support, with exact derivatives.

They are torch operators, opaque to `torch.compile`, which would otherwise unroll every level of the circuit. The
derivative of `log_value` is the posterior, and the derivative of the posterior is a tangent pass. So losses may contain
marginals and entropies, and gradients of gradients exist. Impossible columns have value -inf and derivative zero.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine.backends import select
from semprola.engine.backends.torch import differentiable
from semprola.engine.ops.registration import (
    alias,
    apply_of,
    define,
    fold_batch,
    register_meta,
    register_vmap,
    scaled,
    traced,
    transforming,
    watched,
)
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
    if not watched(leaves, weights):
        if torch.is_grad_enabled() and (leaves.requires_grad or (weights is not None and weights.requires_grad)):
            result: Tensor = _with_derivative(weights, leaves, plan)
            return result
        return select(leaves, weights).evaluate(plan, weights, leaves, flows=False)[0]
    weights = _present(weights, leaves)
    if transforming():
        value, _, _ = _transformable(weights, leaves, plan.handle)
    elif torch.is_grad_enabled() and (weights.requires_grad or leaves.requires_grad):
        value, _, _ = _evaluate(weights, leaves, plan.handle)
    else:
        value = _log_value(weights, leaves, plan.handle)
    result = value
    return result


def posterior(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Probability that each weighted edge, and each literal, is part of the state; the derivative of `log_value`.

    Returns:
        [W, columns] and [2 variables, columns]
    """
    traced()  # raises for exporters that cannot record an operator
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
    used, some = support(plan, leaves, "active")
    return used.to(leaves.dtype), some


def possible(plan: Plan, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Which weighted edges, and columns, have a value above zero; no derivatives.

    Returns:
        bools [W, columns] and [columns]
    """
    return support(plan, leaves, "possible")


def supported(plan: Plan, leaves: Tensor) -> Tensor:
    """Whether the value of each column is above zero; bools [columns]."""
    return support(plan, leaves, None)[1]


def support(plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
    """Which weighted edges and columns are possible; see `Backend.support`."""
    if not watched(leaves):
        return select(leaves).support(plan, leaves, edges)
    result: tuple[Tensor, Tensor] = _support(leaves, edges or "", plan.handle)
    return result


def _present(weights: Tensor | None, leaves: Tensor) -> Tensor:
    return leaves.new_zeros((0, leaves.shape[1])) if weights is None else weights


def _weights(weights: Tensor) -> Tensor | None:
    return weights if len(weights) else None


class _LogValue(torch.autograd.Function):
    """The value where nobody watches the computation: one call gives value and derivative."""

    @staticmethod
    def forward(ctx: Any, weights: Tensor | None, leaves: Tensor, plan: Plan) -> Tensor:
        value, *ctx.flows = select(leaves, weights).evaluate(plan, weights, leaves, flows=True)
        ctx.save_for_backward(weights, leaves)
        ctx.plan = plan
        return value

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (cotangent,) = cotangents
        weights, leaves = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient will be differentiated again
            edges, literals = posterior(ctx.plan, weights, leaves)
            return None if weights is None else cotangent * edges, cotangent * literals, None
        backend = select(leaves, weights)
        # scaled in place and handed over; a second backward pass computes them again
        flows, ctx.flows = ctx.flows, None
        if flows is None:
            _, *flows = backend.evaluate(ctx.plan, weights, leaves, flows=True)
        edges, literals = flows
        return None if edges is None else scaled(backend, edges, cotangent), scaled(backend, literals, cotangent), None


_with_derivative = apply_of(_LogValue)


@define("log_value", "(Tensor weights, Tensor leaves, int plan) -> Tensor")
def _log_value(weights: Tensor, leaves: Tensor, plan: int) -> Tensor:
    own = _weights(weights)
    return select(leaves, own).evaluate(Plan.of(plan), own, leaves, flows=False)[0]


@define("evaluate", "(Tensor weights, Tensor leaves, int plan) -> (Tensor, Tensor, Tensor)")
def _evaluate(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor, Tensor]:
    """Log-value and posterior flows at once, so that the gradient comes with the value."""
    own = _weights(weights)
    value, edges, literals = select(leaves, own).evaluate(Plan.of(plan), own, leaves, flows=True)
    if literals is None:
        raise TypeError("a back end must return flows where they are asked for")
    return value, torch.empty_like(weights) if edges is None else edges, literals


@define("support", "(Tensor leaves, str edges, int plan) -> (Tensor, Tensor)")
def _support(leaves: Tensor, edges: str, plan: int) -> tuple[Tensor, Tensor]:
    return select(leaves).support(Plan.of(plan), leaves, edges or None)


@define(
    "posterior_tangent",
    "(Tensor weights, Tensor leaves, Tensor d_weights, Tensor d_leaves, int plan) -> (Tensor, Tensor)",
)
def _tangent(weights: Tensor, leaves: Tensor, d_weights: Tensor, d_leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    own, d_own = _weights(weights), _weights(d_weights)
    edges, literals = select(leaves, own, d_leaves, d_own).tangent(Plan.of(plan), own, leaves, d_own, d_leaves)
    return torch.empty_like(weights) if edges is None else edges, literals


@register_meta("log_value")
def _(weights: Tensor, leaves: Tensor, plan: int) -> Tensor:
    return leaves.new_empty(leaves.shape[1])


@register_meta("evaluate")
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor, Tensor]:
    return leaves.new_empty(leaves.shape[1]), torch.empty_like(weights), torch.empty_like(leaves)


@register_meta("support")
def _(leaves: Tensor, edges: str, plan: int) -> tuple[Tensor, Tensor]:
    columns = leaves.shape[1]
    shape = (Plan.of(plan).num_weights if edges else 0, columns)
    return leaves.new_empty(shape, dtype=torch.bool), leaves.new_empty(columns, dtype=torch.bool)


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
        # the Hessian of log Z is symmetric, so multiplying it by the cotangents is a tangent pass along them
        d_edges, d_leaves = _tangent(weights, leaves, along_edges, along_leaves, ctx.plan)
        weights_gradient = d_edges if weights_gradient is None else weights_gradient + d_edges
        leaves_gradient = d_leaves if leaves_gradient is None else leaves_gradient + d_leaves
    return weights_gradient, leaves_gradient, None


torch.library.register_autograd("semprola::evaluate", _derivative, setup_context=_setup)


def _setup_tangent(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, Tensor]) -> None:
    *tensors, ctx.plan = inputs
    ctx.save_for_backward(*tensors)


def _tangent_derivative(ctx: Any, of_edges: Tensor, of_leaves: Tensor) -> tuple[Tensor | None, ...]:
    """The third derivative. There is no pass for it, so plain operations are differentiated."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        weights, leaves, d_weights, d_leaves = inputs = alias(*ctx.saved_tensors)
        by = [weights, leaves] if len(weights) else [leaves]
        along = [d_weights, d_leaves] if len(weights) else [d_leaves]
        cotangents = [of_edges, of_leaves] if len(weights) else [of_leaves]
        value = differentiable(Plan.of(ctx.plan), _weights(weights), leaves)
        slopes = torch.autograd.grad(value.sum(), by, create_graph=True)
        changes = torch.autograd.grad(slopes, by, along, create_graph=True)
        gradients = torch.autograd.grad(changes, inputs, cotangents, create_graph=again, allow_unused=True)
    return *gradients, None


torch.library.register_autograd("semprola::posterior_tangent", _tangent_derivative, setup_context=_setup_tangent)


class _Evaluate(torch.autograd.Function):
    """The operator `evaluate` for torch.func: registered operators do not support forward derivatives."""

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

for _name in ("log_value", "support", "posterior_tangent"):
    register_vmap(_name)
