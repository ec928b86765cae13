"""The likelihood of states straight from features, without all logits.

Where a state uses a small part of a large circuit, only those rows of the gate are multiplied that it uses. Where all
sums have two edges, only differences of logits matter, and there are half as many.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine import native
from semprola.engine.choice import use_directly
from semprola.engine.likelihood import encode, likelihood, shortest
from semprola.engine.operators import alias
from semprola.engine.plan import Plan

_LEAST_WEIGHTS = 4096
"""Smaller gates are multiplied as a whole."""
_LARGEST_SHARE = 0.02
"""States that use a larger share of the weights are better served by one dense product."""


def may_gate(plan: Plan, features: Tensor) -> bool:
    """Whether a likelihood may want other than all logits: native kernels, nothing traced or transformed, and a circuit
    that is large or has pairs of edges only."""
    if plan.num_weights < _LEAST_WEIGHTS and not is_paired(plan):
        return False
    return use_directly(features) and not torch.is_autocast_enabled("cpu")


def linear_likelihood(
    plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, rows: Tensor, codes: Tensor | None
) -> Tensor | None:
    """Log-likelihood of states under logits ``matrix @ features + bias`` with less work than all of them take.

    Args:
        plan: a plan whose sums are deterministic, with W weights; nothing is given.
        matrix: [W * components, features]; row w * components + c is for weight w of component c.
        bias: [W * components]
        features: [batch, features]
        rows: 0/1 of every variable [variables, 1, batch].
        codes: what `encode` makes of the states [1, batch, most], or None.

    Returns:
        [1, components, batch], or None where it is best to compute all logits.
    """
    if plan.num_weights >= _LEAST_WEIGHTS:
        used = encode(plan, rows[:, 0]) if codes is None else codes[0]
        if is_sparse(plan, used):
            return gated_likelihood(plan, matrix, bias, features, used)[None]
    if is_paired(plan) and len(matrix) == plan.num_weights:
        return paired_likelihood(plan, matrix, bias, features, rows, codes)
    return None


def is_paired(plan: Plan) -> bool:
    """Whether every sum with weights has two: then the likelihood depends on no more than their difference."""
    return len(plan.blocks) == 1 and plan.blocks[0][2] == 2


def is_sparse(plan: Plan, codes: Tensor) -> bool:
    """Whether encoded states [..., most] use so little of the weights that rows should be gated one by one."""
    edges = codes.shape[-1] * plan.num_weights / max(1, sum(sums for _, sums, _ in plan.blocks))
    return edges <= _LARGEST_SHARE * plan.num_weights


def gated_likelihood(plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor) -> Tensor:
    """Log-likelihood of encoded states under logits ``matrix @ features + bias``.

    Args:
        plan: a plan whose sums are deterministic, with W weights.
        matrix: [W * components, features]; row w * components + c is for weight w of component c.
        bias: [W * components]
        features: [batch, features]
        codes: what `encode` makes of the states [batch, most].

    Returns:
        [components, batch]
    """
    result: Tensor = _gated(matrix.contiguous(), bias.contiguous(), features.contiguous(), codes, plan)
    return result


def paired_likelihood(
    plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, rows: Tensor, codes: Tensor | None
) -> Tensor:
    """Log-likelihood of states under logits ``matrix @ features + bias``, for a plan with pairs of edges only.

    The gate's rows are subtracted before they are multiplied, which halves the work.

    Args:
        plan: a plan whose sums are deterministic, with W weights, for which :func:`is_paired` holds.
        matrix: [W, features]
        bias: [W]
        features: [batch, features]
        rows: 0/1 of every variable [variables, 1, batch]; may be left out if there are codes.
        codes: what `encode` makes of the states [1, batch, most], or None.

    Returns:
        [1, 1, batch]
    """
    result: Tensor = _paired(matrix, bias, features, rows.to(features.dtype), shortest(plan, rows, codes), plan)
    return result


class _Paired(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, matrix: Tensor, bias: Tensor, features: Tensor, rows: Tensor, codes: Tensor | None, plan: Plan
    ) -> Tensor:
        first, second = matrix.view(-1, 2, matrix.shape[1]).unbind(1)
        difference = second - first
        start = bias[1::2] - bias[0::2]
        logits = torch.addmm(start[:, None], difference, features.T)[:, None]
        wanted = any(ctx.needs_input_grad)
        value, ctx.slopes = native.likelihood(
            plan, logits, rows, codes, plan.shape.num_variables, gradient=wanted, paired=True
        )
        ctx.save_for_backward(matrix, bias, features, rows, codes, difference)
        ctx.plan = plan
        assert value is not None
        return value

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        matrix, bias, features, rows, codes, difference = ctx.saved_tensors
        (cotangent,) = cotangents
        # scaled in place: a second backward pass, like one to be differentiated again, goes through all logits
        slopes, ctx.slopes = ctx.slopes, None
        if slopes is None or torch.is_grad_enabled():
            return *_through_all(ctx.plan, (matrix, bias, features), rows, codes, cotangent), None, None, None
        slopes = native.scale(slopes, cotangent)[:, 0]
        of_matrix = of_bias = of_features = None
        if ctx.needs_input_grad[0]:
            of_matrix = _opposite(slopes @ features).view(matrix.shape)
        if ctx.needs_input_grad[1]:
            of_bias = _opposite(slopes.sum(1)).view(bias.shape)
        if ctx.needs_input_grad[2]:
            of_features = slopes.T @ difference
        return of_matrix, of_bias, of_features, None, None, None


_paired: Any = _Paired.apply


def _opposite(second: Tensor) -> Tensor:
    """Gradients [pairs, 2, ...] of both logits of a pair from those of the second."""
    both = second.new_empty((len(second), 2, *second.shape[1:]))
    torch.neg(second, out=both[:, 0])
    both[:, 1] = second
    return both


def _through_all(
    plan: Plan, tensors: tuple[Tensor, ...], rows: Tensor, codes: Tensor | None, cotangent: Tensor
) -> tuple[Tensor, ...]:
    """Gradients of matrix, bias and features by way of all logits, to be differentiated again if need be."""
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        matrix, bias, features = inputs = alias(*tensors)
        logits = torch.addmm(bias[:, None], matrix, features.T).view(plan.num_weights, -1, len(features))
        value = likelihood(plan, logits, rows, codes, plan.shape.num_variables)
        return torch.autograd.grad(value, inputs, cotangent, create_graph=again)


class _Gated(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, plan: Plan) -> Tensor:
        ctx.save_for_backward(matrix, bias, features, codes)
        ctx.plan = plan
        return native.gated_likelihood(plan, matrix, bias, features, codes)[0]

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        matrix, bias, features, codes = ctx.saved_tensors
        (cotangent,) = cotangents
        if not torch.is_grad_enabled():
            return *native.gated_likelihood(ctx.plan, matrix, bias, features, codes, cotangent), None, None
        # a gradient that is to be differentiated again goes through all logits
        rows = features.new_zeros((0, 1, len(features)))
        return *_through_all(ctx.plan, (matrix, bias, features), rows, codes[None], cotangent[None]), None, None


_gated: Any = _Gated.apply
