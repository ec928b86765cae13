"""The likelihood of states, computed from the inputs of a gate's last linear layer.

A state uses few of the weights of a large circuit. If the states are known beforehand, only the rows of the linear
layer that they use are multiplied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from semprola.engine.backends import select
from semprola.engine.ops.likelihoods import likelihood
from semprola.engine.ops.registration import alias, apply_of, mapped
from semprola.engine.plan import Plan

_LEAST_LOGITS = 1024
"""Gates with fewer logits are multiplied as a whole."""

_most_rows: WeakKeyDictionary[Plan, int] = WeakKeyDictionary()


def uses_few_rows(plan: Plan) -> bool:
    """Whether every state uses so little of a plan that it pays to multiply the gate's rows one by one."""
    if plan.num_logits < _LEAST_LOGITS:
        return False
    leaves = torch.zeros((plan.num_leaves, 1), dtype=torch.float64)
    backend = select(leaves)
    if plan not in _most_rows:
        # a sum that a state reaches uses all its logits, so the maximum is the largest total along one path
        sizes = [torch.full((sums * fan_in, 1), fan_in - (fan_in == 2)) for _, sums, fan_in in plan.blocks]
        _most_rows[plan] = int(backend.maximize(plan, torch.cat(sizes).to(leaves), leaves)[0])
    return _most_rows[plan] <= backend.few_rows * plan.num_logits


def gate_likelihood(
    plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, components: int
) -> tuple[Tensor, Tensor]:
    """Log-likelihood of encoded states under logits that are the first rows of ``matrix @ features + bias``.

    Args:
        plan: a plan whose sums are deterministic and mention every label.
        matrix: [logits * components + others, features]; row r * components + c is logit r of component c.
        bias: [logits * components + others]
        features: [batch, features]
        codes: the states as encoded by `encode` [batch, most].
        components: number of components.

    Returns:
        values [components, batch], -inf outside the support, and the other rows [others, batch].
    """
    values, others = _gate(matrix, bias, features.contiguous(), codes.contiguous(), components, plan)
    return values, others


class _Gate(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, components: int, plan: Plan
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(matrix, bias, features, codes)
        ctx.components, ctx.plan = components, plan
        values = select(matrix, bias, features).gate(plan, matrix, bias, features, codes, components)
        size = components * plan.num_logits
        return values, torch.addmm(bias[size:, None], matrix[size:], features.T)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        *inputs, codes = ctx.saved_tensors
        # the gradient will be differentiated again, or is one of a batch
        if torch.is_grad_enabled() or any(map(mapped, cotangents)):
            return *_through_all(ctx.plan, inputs, codes, ctx.components, cotangents), None, None, None
        matrix, bias, features = inputs
        of_values, of_others = cotangents
        slopes = select(matrix, bias, features, of_values).gate_gradients(
            ctx.plan, matrix, bias, features, codes, ctx.components, of_values
        )
        size = ctx.components * ctx.plan.num_logits
        if size < len(matrix):
            slopes[0][size:] = of_others @ features
            slopes[1][size:] = of_others.sum(1)
            slopes[2].addmm_(of_others.T, matrix[size:])
        return *slopes, None, None, None


_gate = apply_of(_Gate)


def _through_all(
    plan: Plan, tensors: Sequence[Tensor], codes: Tensor, components: int, cotangents: tuple[Tensor, ...]
) -> tuple[Tensor, ...]:
    """Gradients that can be differentiated again, by way of all logits."""
    with torch.enable_grad():
        matrix, bias, features = inputs = alias(*tensors)
        outputs = torch.addmm(bias[:, None], matrix, features.T)
        size = components * plan.num_logits
        logits = outputs[:size].view(plan.num_logits, components, len(features))
        rows = features.new_zeros((0, 1, len(features)))
        values = likelihood(plan, logits, rows, codes[None], plan.shape.num_variables)
        return torch.autograd.grad((values[0], outputs[size:]), inputs, cotangents, create_graph=True)
