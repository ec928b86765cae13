"""The likelihood of partly observed states under a circuit whose sums are local softmaxes."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine.backends import select
from semprola.engine.literals import Literals
from semprola.engine.ops.registration import alias, apply_of, scaled, watched
from semprola.engine.ops.values import log_value
from semprola.engine.plan import Plan
from semprola.engine.softmax import log_softmax


def marginal_likelihood(plan: Plan, logits: Tensor, observed: Tensor) -> Tensor:
    """Log-likelihood of the observed values; -inf where they are impossible.

    Args:
        plan: the plan of a single-circuit layer.
        logits: [`plan.num_logits`, components, batch]
        observed: 0, 1, or NaN where nothing is observed [variables, batch].

    Returns:
        [components, batch]
    """
    if watched(logits, observed) or not plan.all_mentioned or plan.weigh_all:
        return _by_weights(plan, logits, observed)
    if not torch.is_grad_enabled():  # a Function would not know, and prepare a gradient
        return select(logits, observed).marginal(plan, logits, observed.to(logits.dtype), gradient=False)[0]
    result: Tensor = _marginal(logits, observed.to(logits.dtype), plan)
    return result


class _Marginal(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, logits: Tensor, observed: Tensor, plan: Plan) -> Tensor:
        wanted = ctx.needs_input_grad[0]
        values, ctx.slopes = select(logits, observed).marginal(plan, logits, observed, gradient=wanted)
        ctx.save_for_backward(logits, observed)
        ctx.plan = plan
        return values

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (cotangent,) = cotangents
        logits, observed = ctx.saved_tensors
        if torch.is_grad_enabled():  # the gradient will be differentiated again
            with torch.enable_grad():
                (inputs,) = alias(logits)
                values = _by_weights(ctx.plan, inputs, observed)
                return *torch.autograd.grad(values, inputs, cotangent, create_graph=True), None, None
        backend = select(logits, observed)
        # scaled in place and handed over; a second backward pass computes it again
        slopes, ctx.slopes = ctx.slopes, None
        if slopes is None:
            _, slopes = backend.marginal(ctx.plan, logits, observed, gradient=True)
        return scaled(backend, slopes, cotangent), None, None


_marginal = apply_of(_Marginal)


def _by_weights(plan: Plan, logits: Tensor, observed: Tensor) -> Tensor:
    """The same, from the log-weights and the value of the circuit."""
    _, components, batch = logits.shape
    literals = Literals.of_observed(plan, observed.repeat(1, components), logits.dtype)
    value = log_value(plan, log_softmax(plan, logits.flatten(1)), literals.leaves) + literals.constant
    return value.view(components, batch)
