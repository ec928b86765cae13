"""The likelihood of states straight from features: only those rows of the gate are multiplied that the states use.

Where a state uses a small part of a large circuit, computing all logits costs more than all the rest together.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine import native
from semprola.engine.choice import use_native
from semprola.engine.likelihood import likelihood
from semprola.engine.operators import alias, transforming
from semprola.engine.plan import Plan

_LEAST_WEIGHTS = 4096
"""Smaller gates are multiplied as a whole."""
_LARGEST_SHARE = 0.02
"""States that use a larger share of the weights are better served by one dense product."""


def may_gate(plan: Plan, features: Tensor) -> bool:
    """Whether gating row by row is worth a thought: a large circuit, native kernels, nothing traced or transformed."""
    if torch.compiler.is_compiling() or plan.num_weights < _LEAST_WEIGHTS:
        return False
    return use_native(features) and not transforming() and not torch.is_autocast_enabled("cpu")


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
        matrix, bias, features = inputs = alias(matrix, bias, features)
        logits = torch.addmm(bias[:, None], matrix, features.T).view(ctx.plan.num_weights, -1, len(features))
        rows = features.new_zeros((0, 1, len(features)))
        value = likelihood(ctx.plan, logits, rows, codes[None], ctx.plan.shape.num_variables)[0]
        return *torch.autograd.grad(value, inputs, cotangent, create_graph=True), None, None


_gated: Any = _Gated.apply
