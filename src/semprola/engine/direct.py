"""The value of a circuit by native kernels, called without an operator: on small circuits an operator costs more."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from semprola.engine import native
from semprola.engine.operators import apply_of
from semprola.engine.plan import Plan

Posterior = Callable[[Plan, Tensor | None, Tensor], tuple[Tensor, Tensor]]


def log_value(plan: Plan, weights: Tensor | None, leaves: Tensor, posterior: Posterior) -> Tensor:
    """Log-value of the circuit [columns], with a derivative.

    Args:
        plan: the plan, with W weights.
        weights: log-weights [W, columns], or None for weights of one.
        leaves: log-values of the literals [2 variables, columns].
        posterior: gives the derivative in a form that can be differentiated again.
    """
    if torch.is_grad_enabled() and (leaves.requires_grad or (weights is not None and weights.requires_grad)):
        result: Tensor = _apply(weights, leaves, plan, posterior)
        return result
    return native.evaluate(plan, weights, leaves, flows=False)[0]


class _LogValue(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor | None, leaves: Tensor, plan: Plan, posterior: Posterior) -> Tensor:
        value, *ctx.flows = native.evaluate(plan, weights, leaves, flows=True)
        ctx.save_for_backward(weights, leaves)
        ctx.plan, ctx.posterior = plan, posterior
        return value

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (cotangent,) = cotangents
        if torch.is_grad_enabled():  # the gradient is to be differentiated again
            weights, leaves = ctx.saved_tensors
            edges, literals = ctx.posterior(ctx.plan, weights, leaves)
            return None if weights is None else cotangent * edges, cotangent * literals, None, None
        # scaled in place and given away: a second backward pass works them out again
        flows, ctx.flows = ctx.flows, None
        if flows is None:
            weights, leaves = ctx.saved_tensors
            _, *flows = native.evaluate(ctx.plan, weights, leaves, flows=True)
        edges, literals = flows
        return None if edges is None else native.scale(edges, cotangent), native.scale(literals, cotangent), None, None


_apply = apply_of(_LogValue)
