"""The likelihood of states under a deterministic circuit whose sums are local softmaxes.

Of every sum that a state reaches, the state uses exactly one edge. So log p(y) is a sum of log-softmax terms over these
sums: nothing is propagated, no -inf occurs on the way, and sums that y does not reach cost nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine.backends import BACKENDS, select
from semprola.engine.backends.base import Backend
from semprola.engine.backends.torch_likelihood import dense, dense_gradient
from semprola.engine.ops.registration import (
    alias,
    apply_of,
    define,
    mapped,
    register_meta,
    scaled,
    transforming,
    watched,
)
from semprola.engine.ops.values import support
from semprola.engine.plan import Plan


def likelihood(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor | None, labels: int) -> Tensor:
    """Log-likelihood of states; -inf for those outside the support.

    Args:
        plan: a plan whose sums are deterministic and mention every label.
        logits: [`plan.num_logits`, components, batch]
        rows: 0/1 of every variable [variables, samples, batch]; labels may be left out if there are codes.
        codes: the states as encoded by :func:`encode` [samples, batch, most], or None.
        labels: number of labels; the variables after them are given, and softmaxes are taken only over edges that
            they leave possible.

    Returns:
        [samples, components, batch]
    """
    if not watched(logits, rows):
        rows = rows if rows.dtype == logits.dtype else rows.to(logits.dtype)
        result: Tensor = _direct(logits, rows, _shortest(select(logits, rows), plan, rows, codes), labels, plan)
        return result
    if codes is None:
        codes = torch.empty((rows.shape[1], rows.shape[2], 0), dtype=torch.int32, device=logits.device)
    if transforming():
        return dense(plan, logits, rows, codes, labels, support)
    result = _likelihood(logits, rows, codes, labels, plan.handle)
    return result


def encode(plan: Plan, rows: Tensor) -> Tensor:
    """The weights that each state uses, int32 [columns, most]: -1 past the last, -2 for impossible states.

    Args:
        plan: a plan whose sums are deterministic.
        rows: 0/1 of every variable [variables, columns].
    """
    return select(rows).encode(plan, rows)


def is_binary(values: Tensor) -> bool:
    """Whether a tensor holds nothing but zeros and ones."""
    return (BACKENDS[-1] if watched(values) else select(values)).is_binary(values)


def _shortest(backend: Backend, plan: Plan, rows: Tensor, codes: Tensor | None) -> Tensor | None:
    """The codes, or None if there are none or the back end prefers rows."""
    if codes is None or len(rows) < plan.shape.num_variables:
        return codes
    return None if backend.prefers_rows(plan, codes) else codes


@define("likelihood", "(Tensor logits, Tensor rows, Tensor codes, int labels, int plan) -> Tensor")
def _likelihood(logits: Tensor, rows: Tensor, codes: Tensor, labels: int, plan: int) -> Tensor:
    rows = rows.to(logits.dtype)
    value, _ = select(logits, rows).likelihood(Plan.of(plan), logits, rows, _some(codes), labels)
    return _wanted(value)


@define(
    "likelihood_gradient",
    "(Tensor logits, Tensor rows, Tensor codes, Tensor cotangent, int labels, int plan) -> Tensor",
)
def _gradient(logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, labels: int, plan: int) -> Tensor:
    return _slopes(Plan.of(plan), logits, rows.to(logits.dtype), _some(codes), labels, cotangent)


def _slopes(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor | None, labels: int, cotangent: Tensor) -> Tensor:
    backend = select(logits, rows, cotangent)
    return _wanted(backend.likelihood(plan, logits, rows, codes, labels, cotangent, value=False, gradient=True)[1])


def _some(codes: Tensor) -> Tensor | None:
    """The codes, or None: operators use codes of width zero for "no codes"."""
    return codes if codes.shape[-1] else None


def _wanted(result: Tensor | None) -> Tensor:
    if result is None:
        raise TypeError("a back end must return what it is asked for")
    return result


class _Direct(torch.autograd.Function):
    """The likelihood where nobody watches the computation: one call gives value and gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, codes: Tensor | None, labels: int, plan: Plan) -> Tensor:
        # with several samples, the gradient depends on all their cotangents and has to wait for them
        eager = ctx.needs_input_grad[0] and rows.shape[1] == 1
        value, slopes = select(logits, rows).likelihood(plan, logits, rows, codes, labels, gradient=eager)
        ctx.save_for_backward(logits, rows, codes)
        ctx.kept = slopes, labels, plan
        return _wanted(value)

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (cotangent,) = cotangents
        slopes, labels, plan = ctx.kept
        logits, rows, codes = ctx.saved_tensors
        # the gradient will be differentiated again, or is one of a batch
        if torch.is_grad_enabled() or (slopes is None and mapped(cotangent)):
            codes = rows.new_empty((*rows.shape[1:], 0), dtype=torch.int32) if codes is None else codes
            return _gradient(logits, rows, codes, cotangent, labels, plan.handle), None, None, None, None
        if slopes is None:
            return _slopes(plan, logits, rows, codes, labels, cotangent), None, None, None, None
        # scaled in place and handed over; a second backward pass computes it again
        ctx.kept = None, labels, plan
        return scaled(select(slopes), slopes, cotangent), None, None, None, None


_direct = apply_of(_Direct)


@register_meta("likelihood")
def _(logits: Tensor, rows: Tensor, codes: Tensor, labels: int, plan: int) -> Tensor:
    return logits.new_empty((codes.shape[0], logits.shape[1], logits.shape[2]))


@register_meta("likelihood_gradient")
def _(logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, labels: int, plan: int) -> Tensor:
    return logits.new_empty(logits.shape)


def _setup(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    *tensors, ctx.labels, ctx.plan = inputs
    ctx.save_for_backward(*tensors)


def _backward(ctx: Any, cotangent: Tensor) -> tuple[Tensor | None, ...]:
    return _gradient(*ctx.saved_tensors, cotangent, ctx.labels, ctx.plan), None, None, None, None


def _gradient_backward(ctx: Any, direction: Tensor) -> tuple[Tensor | None, ...]:
    logits, rows, codes, cotangent = ctx.saved_tensors
    again = torch.is_grad_enabled()
    with torch.enable_grad():
        inputs = alias(logits, cotangent)
        slope = dense_gradient(Plan.of(ctx.plan), inputs[0], rows, codes, inputs[1], ctx.labels, support)
        of_logits, of_cotangent = torch.autograd.grad(slope, inputs, direction, create_graph=again)
    return of_logits, None, None, of_cotangent, None, None


torch.library.register_autograd("semprola::likelihood", _backward, setup_context=_setup)
torch.library.register_autograd("semprola::likelihood_gradient", _gradient_backward, setup_context=_setup)
