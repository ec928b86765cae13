"""Independent labels times a constraint: log Z, the likelihood of states and the best state, straight from log-odds.

The same numbers as from literals' scores and `log_value`, but one call of a back end gives a value and its gradient.
Compilers, exporters and function transforms cannot look inside: ask `watched` first, and use `log_value` for them.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine.backends import BACKENDS, select
from semprola.engine.backends.torch_independent import with_states
from semprola.engine.literals import Literals
from semprola.engine.ops.registration import alias, apply_of, mapped
from semprola.engine.ops.values import log_value, supported
from semprola.engine.plan import Plan
from semprola.engine.torch_internals import has_saved_tensor_hooks


def log_partition(plan: Plan, odds: Tensor) -> Tensor:
    """log Z [columns] of independent labels with finite log-odds [variables, columns]."""
    return _value(plan, plan, odds, None)


def log_likelihood(plan: Plan, referee: Plan, odds: Tensor, states: Tensor) -> Tensor:
    """Log-likelihood of states; exactly -inf, with a gradient of zero, outside the support.

    Args:
        odds: finite log-odds [variables, columns].

    Returns:
        [columns]
    """
    return _value(plan, referee, odds, states)


def likeliest(plan: Plan, odds: Tensor) -> Tensor:
    """The most probable state, 0/1 [variables, columns], for finite log-odds of the same shape."""
    return select(odds).likeliest(plan, odds)


def largest_norm(rows: Tensor) -> float:
    """The largest Euclidean norm of a row [rows, numbers]; infinite or NaN if a number is, or may be."""
    return select(rows).largest_norm(rows)


def _value(plan: Plan, referee: Plan, odds: Tensor, states: Tensor | None) -> Tensor:
    if torch.is_grad_enabled() and odds.requires_grad:
        result: Tensor = _with_gradient(odds, states, plan, referee)
        return result
    return select(odds, states).independent(plan, referee, odds, states, gradient=False)[0]


def _plain(plan: Plan, referee: Plan, odds: Tensor, states: Tensor | None) -> Tensor:
    """The same, differentiable as often as wanted."""
    literals = Literals.of_odds(plan, odds)
    log_z = log_value(plan, None, literals.leaves) + literals.constant
    if states is None:
        return log_z
    return with_states(lambda leaves: supported(referee, leaves), odds, states, log_z, None)[0]


class _Value(torch.autograd.Function):
    """One call gives value and gradient."""

    @staticmethod
    def forward(ctx: Any, odds: Tensor, states: Tensor | None, plan: Plan, referee: Plan) -> Tensor:
        # hooks, such as those of checkpoints, have to see all that is kept, so the gradient is then computed afterwards
        now = not has_saved_tensor_hooks()
        value, ctx.slopes = select(odds, states).independent(plan, referee, odds, states, gradient=now)
        # copies: callers may change states and values in place
        kept = (None, None) if states is None else (states.clone(), value.clone())
        ctx.save_for_backward(odds, *kept)
        ctx.plans = plan, referee
        return value

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (cotangent,) = cotangents
        odds, states, value = ctx.saved_tensors
        plan, referee = ctx.plans
        if torch.is_grad_enabled():  # the gradient will be differentiated again
            (own,) = alias(odds)
            again = _plain(plan, referee, own, states)
            return *torch.autograd.grad(again, own, cotangent, create_graph=True), None, None, None
        # scaled in place and handed over; a second backward pass computes them again
        slopes, ctx.slopes = ctx.slopes, None
        if slopes is None:
            _, slopes = select(odds, states).independent(plan, referee, odds, states, gradient=True)
        backend = BACKENDS[-1] if mapped(cotangent) else select(slopes)
        return backend.scale_possible(slopes, cotangent, value), None, None, None


_with_gradient = apply_of(_Value)
