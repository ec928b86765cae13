"""The native kernels, called on tensors.

They run the whole circuit on a small tile of columns, so that memory does not grow with the batch, in scaled linear
space: a number is a mantissa and an exponent, with no logarithm inside the circuit. ctypes releases the interpreter
lock while they run.
"""

from __future__ import annotations

import ctypes
import functools
import weakref
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semprola.circuit.levels import spans
from semprola.engine.choice import library
from semprola.engine.plan import Plan
from semprola.errors import SemprolaError


def evaluate(
    plan: Plan, weights: Tensor | None, leaves: Tensor, *, flows: bool
) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Log-values [columns], and if asked for the flows through weighted edges [W, columns] and into literals."""
    columns = leaves.shape[1]
    value = leaves.new_empty(columns)
    literals = leaves.new_empty(leaves.shape) if flows else None
    edges = leaves.new_empty(weights.shape) if flows and weights is not None else None
    if columns:
        _call(
            *("evaluate", leaves, _handle(plan), *_matrix(weights), *_matrix(leaves), columns),
            *(value.data_ptr(), _pointer(edges), _pointer(literals), torch.get_num_threads()),
        )
    return value, edges, literals


def maximize(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Largest log-values [columns] and 0/1 for the literals of a state that has it [2 variables, columns]."""
    value, literals = leaves.new_empty(leaves.shape[1]), leaves.new_empty(leaves.shape)
    _maximize(plan, weights, leaves, None, value, None, literals)
    return value, literals


def best_states(plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor) -> tuple[Tensor, Tensor]:
    """Largest log-values [columns] and states that have them, 0/1 [variables, columns].

    Args:
        plan: the plan.
        weights: log-weights [W, columns], or None for weights of one.
        leaves: log-values of the literals [2 variables, columns].
        default: what a variable is where a branch leaves it out [variables, columns].
    """
    value, states = leaves.new_empty(leaves.shape[1]), leaves.new_empty(default.shape)
    _maximize(plan, weights, leaves, default.contiguous(), value, states, None)
    return value, states


def _maximize(
    plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor | None, value: Tensor, *outputs: Tensor | None
) -> None:
    if len(value):
        _call(
            *("maximize", leaves, _handle(plan), *_matrix(weights), *_matrix(leaves), _pointer(default), len(value)),
            *(value.data_ptr(), *map(_pointer, outputs), torch.get_num_threads()),
        )


def top_k(plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k paths of largest value: states [variables, k, columns] and log-values [k, columns], -inf beyond the last.

    Args:
        plan: the plan.
        weights: log-weights [W, columns], or None for weights of one.
        leaves: log-values of the literals [2 variables, columns].
        k: how many; a whole number below 2**31.
    """
    columns = leaves.shape[1]
    states, values = leaves.new_zeros((len(leaves) // 2, k, columns)), leaves.new_empty((k, columns))
    _call(
        *("rank", leaves, _handle(plan), *_matrix(weights), *_matrix(leaves), columns, k),
        *(values.data_ptr(), states.data_ptr(), torch.get_num_threads()),
    )
    return states, values


def sample(plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor, column: Tensor, seed: int) -> Tensor:
    """A sample of each listed column, 0/1 [variables, samples]; the same for the same seed.

    Args:
        plan: the plan.
        weights: log-weights [W, columns], or None for weights of one.
        leaves: log-values of the literals [2 variables, columns].
        default: probability of a one for variables that a branch leaves out [variables, columns].
        column: which column each sample is drawn from [samples].
        seed: any whole number from 0 to 2**64 - 1.
    """
    states, default, column = leaves.new_empty((len(default), len(column))), default.contiguous(), column.contiguous()
    _call(
        *("sample", leaves, _handle(plan), *_matrix(weights), *_matrix(leaves), default.data_ptr(), leaves.shape[1]),
        *(column.data_ptr(), len(column), seed, states.data_ptr(), torch.get_num_threads()),
    )
    return states


def support(plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
    """Which columns are possible, and which weighted edges are ("possible") or are part of a state ("active")."""
    columns = leaves.shape[1]
    some = torch.empty(columns, dtype=torch.bool)
    flags = torch.empty((plan.num_weights if edges else 0, columns), dtype=torch.bool)
    wanted = {None: 0, "possible": 1, "active": 2}[edges]
    _call(
        *("support", leaves, _handle(plan), *_matrix(leaves), columns, wanted),
        *(some.data_ptr(), flags.data_ptr(), torch.get_num_threads()),
    )
    return flags, some


def encode(plan: Plan, rows: Tensor) -> Tensor:
    """The weights that each state uses, int32 [columns, most]: -1 past the last, -2 for a state that is impossible.

    Args:
        plan: a plan whose sums are deterministic.
        rows: 0/1 of every variable [variables, columns].
    """
    columns, longest = rows.shape[1], ctypes.c_int64(1)
    arguments = ("encode", rows, _handle(plan), *_matrix(rows), rows.shape[0], columns)
    _call(*arguments, None, 0, ctypes.addressof(longest))
    codes = torch.empty((columns, longest.value), dtype=torch.int32)
    _call(*arguments, codes.data_ptr(), longest.value, ctypes.addressof(longest))
    return codes


def likelihood(
    plan: Plan,
    logits: Tensor,
    rows: Tensor,
    codes: Tensor | None,
    labels: int,
    cotangent: Tensor | None = None,
    *,
    value: bool = True,
    gradient: bool = False,
) -> tuple[Tensor | None, Tensor | None]:
    """Log-likelihood of states under the local softmaxes of a deterministic plan, and its gradient.

    Args:
        plan: the plan.
        logits: [`plan.num_logits`, components, batch]
        rows: 0/1 of every variable [variables, samples, batch]; with codes, only the given variables are read.
        codes: what `encode` makes of the states [samples, batch, most]; None, or an empty tensor, to read the rows.
        labels: number of labels; the variables after them are given.
        cotangent: of the likelihood [samples, components, batch]; None for ones.
        value: whether the values are wanted.
        gradient: whether the gradient is.

    Returns:
        values [samples, components, batch] and the gradient of the logits, or None for each.
    """
    _, components, batch = logits.shape
    samples = rows.shape[1]
    if components > 1:
        logits = logits.contiguous()
    if samples > 1:
        rows = rows.flatten(1).unsqueeze(1)
    values = logits.new_empty((samples, components, batch)) if value else None
    slopes = (logits.new_empty if samples == 1 else logits.new_zeros)(logits.shape) if gradient else None
    width = 0
    if codes is not None:
        codes, width = codes.contiguous(), codes.shape[-1]
    if cotangent is not None:
        cotangent = cotangent.contiguous()
    weight_stride, _, column_stride = logits.stride()
    row_stride, _, state_stride = rows.stride()
    if batch:
        _call(
            *("likelihood", logits, _handle(plan), logits.data_ptr(), weight_stride, column_stride),
            *(rows.data_ptr(), row_stride, state_stride, codes if codes is None else codes.data_ptr(), width),
            *(labels, plan.num_pairs, samples, components, batch, values if values is None else values.data_ptr()),
            *(_pointer(cotangent), slopes if slopes is None else slopes.data_ptr(), torch.get_num_threads()),
        )
    return values, slopes


def is_binary(values: Tensor) -> bool:
    """Whether a contiguous tensor holds nothing but zeros and ones."""
    return bool(_function("is_binary", values.dtype)(values.data_ptr(), values.numel()))


def scale(numbers: Tensor, factors: Tensor) -> Tensor:
    """Multiply the columns of a contiguous tensor [rows, *columns] in place by factors [*columns]."""
    rows, columns, stride = 1, numbers.numel(), 0
    if any(factors.stride()):  # else one number for all of them, as the gradient of a sum is
        factors = factors.contiguous()
        rows, columns, stride = len(numbers), factors.numel(), 1
    _function("scale", numbers.dtype)(numbers.data_ptr(), rows, columns, factors.data_ptr(), stride)
    return numbers


def _handle(plan: Plan) -> int:
    """The plan as the native module knows it; made on first use, freed with the plan."""
    cached: int | None = plan.__dict__.get("_native")
    if cached is None:
        cached = plan.__dict__["_native"] = _create(plan)
        native = library()
        assert native is not None
        weakref.finalize(plan, native.semprola_plan_destroy, cached)
    return cached


def _create(plan: Plan) -> int:
    native = library()
    assert native is not None
    shape, order = plan.shape, plan.sum_order
    edges = spans(shape.edge_start, order)
    counts = np.diff(shape.factor_start)[edges]
    factors = shape.factors[spans(shape.factor_start, edges)]
    inner = factors >= shape.num_leaves
    factors[inner] = plan.row_of_sum[factors[inner] - shape.num_leaves]
    edge_start = np.concatenate([[0], np.cumsum(np.diff(shape.edge_start)[order])])
    first_weight = np.maximum(plan.edge_position[shape.edge_start[:-1][order]] - plan.num_fixed, -1)
    if len(factors) >= 2**31 or len(edges) >= 2**31:
        raise MemoryError("the circuit has more than two thousand million edges")
    arrays = [
        np.ascontiguousarray(array, dtype=np.int32)
        for array in (edge_start, first_weight, np.concatenate([[0], np.cumsum(counts)]), factors)
    ]
    arrays.append(np.ascontiguousarray(~(shape.mentioned | shape.suppressed), dtype=np.uint8))
    handle: int | None = native.semprola_plan_create(
        *(shape.num_leaves, shape.num_sums, shape.num_edges, plan.num_weights, plan.root_row),
        *(array.ctypes.data for array in arrays),
    )
    if handle is None:
        raise _failure(native, native.semprola_engine_status(), f"a circuit of {shape.num_edges} edges")
    return handle


def _call(name: str, like: Tensor, *arguments: object) -> None:
    status = _function(name, like.dtype)(*arguments)
    if status:
        raise _failure(library(), status, f"{name} a circuit")


def _failure(native: Any, status: int, what: str) -> Exception:
    """What a status other than zero of a native function means; mirrors `enum Status` of engine_dispatch.hpp."""
    text = native.semprola_engine_error().decode(errors="replace")
    if status == 1:
        return MemoryError(f"{what}: {text}; use a smaller batch or circuit")
    if status == 3:
        return ValueError(f"{what}: {text}")
    return SemprolaError(f"{what}: the native module failed ({text}); try semprola.set_engine('torch')")


@functools.cache
def _function(name: str, dtype: torch.dtype) -> Any:
    return getattr(library(), f"semprola_{name}_{'float' if dtype == torch.float32 else 'double'}")


def _matrix(values: Tensor | None) -> tuple[int | None, int, int]:
    """Address and strides of a matrix [rows, columns]."""
    if values is None:
        return None, 0, 0
    row, column = values.stride()
    return values.data_ptr(), row, column


def _pointer(values: Tensor | None) -> int | None:
    return None if values is None or not values.numel() else values.data_ptr()
