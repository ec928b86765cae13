"""The likelihood of states under a deterministic circuit whose sums are local softmaxes.

Exactly one edge of every sum that a state reaches is part of it, so log p(y) is a sum of log-softmax terms over these
sums: there is nothing to propagate and no -inf on the way, and what y does not reach costs nothing.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.engine import native
from semprola.engine.choice import use_directly, use_native
from semprola.engine.literals import indicators
from semprola.engine.operators import alias, apply_of, define, register_meta, transforming
from semprola.engine.ops import active, log_softmax, possible
from semprola.engine.plan import Plan

_NEGATIVE_INFINITY = float("-inf")
_WEIGHTS_A_CODE = 8
"""How many weights of a plan are gone through, for 64 states, while one code of each of them is read."""


def likelihood(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor | None, labels: int) -> Tensor:
    """Log-likelihood of states; -inf for those outside of the support.

    Args:
        plan: a plan whose sums are deterministic and mention every label.
        logits: [`plan.num_logits`, components, batch]
        rows: 0/1 of every variable [variables, samples, batch]; labels may be left out if there are codes.
        codes: what :func:`encode` makes of the states [samples, batch, most], or None.
        labels: number of labels; the variables after them are given, and only edges that they leave possible share in
            a softmax.

    Returns:
        [samples, components, batch]
    """
    if use_directly(logits):
        rows = rows if rows.dtype == logits.dtype else rows.to(logits.dtype)
        result: Tensor = _direct(logits, rows, shortest(plan, rows, codes), labels, plan)
        return result
    if codes is None:
        codes = torch.empty((rows.shape[1], rows.shape[2], 0), dtype=torch.int32, device=logits.device)
    # a tracing compiler takes the operator, which knows what to do without native kernels
    if not torch.compiler.is_compiling() and (transforming() or not use_native(logits)):
        return _dense(plan, logits, rows, codes, labels)
    result = _likelihood(logits, rows, codes, labels, plan.handle)
    return result


def encode(plan: Plan, rows: Tensor) -> Tensor:
    """The weights that each state uses, int32 [columns, most]: -1 past the last, -2 for a state that is impossible.

    Args:
        plan: a plan whose sums are deterministic.
        rows: 0/1 of every variable [variables, columns].
    """
    if use_native(rows):
        return native.encode(plan, rows)
    used, some = active(plan, _leaves(rows))
    column, weight = torch.nonzero(used.T, as_tuple=True)
    counts = torch.bincount(column, minlength=rows.shape[1])
    most = max(1, int(counts.max())) if len(counts) else 1
    codes = torch.full((rows.shape[1], most), -1, dtype=torch.int32, device=rows.device)
    first = counts.cumsum(0) - counts
    codes[column, torch.arange(len(column), device=rows.device) - first[column]] = weight.to(torch.int32)
    codes[~some] = -2
    return codes


def shortest(plan: Plan, rows: Tensor, codes: Tensor | None) -> Tensor | None:
    """The codes, or None where native kernels are faster with rows: these they read 64 at a time, codes one by one."""
    if codes is None or len(rows) < plan.shape.num_variables:
        return codes
    return codes if codes.shape[-1] * _WEIGHTS_A_CODE <= plan.num_weights else None


def is_binary(values: Tensor) -> bool:
    """Whether a tensor holds nothing but zeros and ones."""
    if use_directly(values) and values.is_contiguous():
        return native.is_binary(values)
    return bool(((values == 0) | (values == 1)).all())


def _dense(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, labels: int) -> Tensor:
    """The same by torch operations on all weights; differentiable as often as one likes."""
    weights = log_softmax(plan, logits.flatten(1), _alive(plan, logits, rows, labels)).unflatten(1, logits.shape[1:])
    if len(rows) > labels:
        weights = weights.masked_fill(weights == _NEGATIVE_INFINITY, 0.0)
    used, some = _used(plan, rows, codes, logits)
    one = used.shape[1] == 1
    total = (used * weights).sum(0)[None] if one else torch.einsum("wsb,wcb->scb", used, weights)
    return total.masked_fill(~some[:, None], _NEGATIVE_INFINITY)


def _dense_gradient(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, labels: int) -> Tensor:
    """Derivative of the likelihood times a cotangent [samples, components, batch], as torch operations."""
    share = log_softmax(plan, logits.flatten(1), _alive(plan, logits, rows, labels)).exp()
    share = share.unflatten(1, logits.shape[1:])
    used, some = _used(plan, rows, codes, logits)
    used = used * some
    reached = []
    for part, (_, sums, fan_in) in zip(used.split([n * k for _, n, k in plan.blocks]), plan.blocks, strict=True):
        total = part.unflatten(0, (sums, fan_in)).sum(1, keepdim=True)
        reached.append(total.expand(-1, fan_in, -1, -1).flatten(0, 1))
    used_part = torch.einsum("wsb,scb->wcb", used, cotangent)
    slopes = used_part - share * torch.einsum("wsb,scb->wcb", torch.cat(reached) if reached else used, cotangent)
    pairs = plan.num_pairs
    return torch.cat([slopes[1 : 2 * pairs : 2], slopes[2 * pairs :]]) if pairs else slopes


def _used(plan: Plan, rows: Tensor, codes: Tensor, like: Tensor) -> tuple[Tensor, Tensor]:
    """0/1 for the weights that each state uses [W, samples, batch], and whether it is possible [samples, batch]."""
    samples, batch, most = codes.shape
    if not most:
        with torch.no_grad():
            used, some = active(plan, _leaves(rows.flatten(1).to(like.dtype)))
        return used.unflatten(1, (samples, batch)), some.view(samples, batch)
    marks = like.new_zeros((plan.num_weights + 1, samples * batch))
    index = codes.flatten(0, 1).T.to(torch.int64)
    marks.scatter_(0, torch.where(index < 0, plan.num_weights, index), 1.0)
    return marks[:-1].view(plan.num_weights, samples, batch), (codes != -2).all(-1)


def _alive(plan: Plan, logits: Tensor, rows: Tensor, labels: int) -> Tensor | None:
    """Which weights the given variables leave possible, bool [W, components * batch]; None if nothing is given."""
    if len(rows) <= labels:
        return None
    with torch.no_grad():
        given = rows[:, 0].clone()
        given[:labels] = float("nan")
        alive, _ = possible(plan, _leaves(given.to(logits.dtype)))
    return alive.repeat(1, logits.shape[1])


def _leaves(rows: Tensor) -> Tensor:
    return torch.stack(indicators(rows, rows.dtype), dim=1).flatten(0, 1)


@define("likelihood", "(Tensor logits, Tensor rows, Tensor codes, int labels, int plan) -> Tensor")
def _likelihood(logits: Tensor, rows: Tensor, codes: Tensor, labels: int, plan: int) -> Tensor:
    layout = Plan.of(plan)
    if use_native(logits):
        value, _ = native.likelihood(layout, logits, rows.to(logits.dtype), codes, labels)
        assert value is not None
        return value
    return _dense(layout, logits, rows, codes, labels)


@define(
    "likelihood_gradient",
    "(Tensor logits, Tensor rows, Tensor codes, Tensor cotangent, int labels, int plan) -> Tensor",
)
def _gradient(logits: Tensor, rows: Tensor, codes: Tensor, cotangent: Tensor, labels: int, plan: int) -> Tensor:
    layout = Plan.of(plan)
    if use_native(logits):
        return _slopes(layout, logits, rows.to(logits.dtype), codes, labels, cotangent)
    return _dense_gradient(layout, logits, rows, codes, cotangent, labels)


def _slopes(plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor, labels: int, cotangent: Tensor) -> Tensor:
    _, slopes = native.likelihood(plan, logits, rows, codes, labels, cotangent, value=False, gradient=True)
    assert slopes is not None
    return slopes


class _Direct(torch.autograd.Function):
    """The likelihood by native kernels, called without an operator; one pass gives value and gradient."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, rows: Tensor, codes: Tensor | None, labels: int, plan: Plan) -> Tensor:
        # with several samples a gradient depends on all their cotangents, so that it has to wait for them
        eager = ctx.needs_input_grad[0] and rows.shape[1] == 1
        value, slopes = native.likelihood(plan, logits, rows, codes, labels, gradient=eager)
        ctx.save_for_backward(logits, rows, codes)
        ctx.kept = slopes, labels, plan
        assert value is not None
        return value

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        (cotangent,) = cotangents
        slopes, labels, plan = ctx.kept
        if torch.is_grad_enabled():  # the gradient is to be differentiated again
            logits, rows, codes = ctx.saved_tensors
            codes = rows.new_empty((*rows.shape[1:], 0), dtype=torch.int32) if codes is None else codes
            return _gradient(logits, rows, codes, cotangent, labels, plan.handle), None, None, None, None
        if slopes is None:
            logits, rows, codes = ctx.saved_tensors
            return _slopes(plan, logits, rows, codes, labels, cotangent), None, None, None, None
        # scaled in place and given away: a second backward pass works it out again
        ctx.kept = None, labels, plan
        return native.scale(slopes, cotangent), None, None, None, None


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
        slope = _dense_gradient(Plan.of(ctx.plan), inputs[0], rows, codes, inputs[1], ctx.labels)
        of_logits, of_cotangent = torch.autograd.grad(slope, inputs, direction, create_graph=again)
    return of_logits, None, None, of_cotangent, None, None


torch.library.register_autograd("semprola::likelihood", _backward, setup_context=_setup)
torch.library.register_autograd("semprola::likelihood_gradient", _gradient_backward, setup_context=_setup)
