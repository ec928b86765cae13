"""The native back end: evaluates circuits by compiled kernels on CPU.

The kernels run the whole circuit on a small tile of columns at a time, so that memory does not grow with the batch.
They work in scaled linear space: a number is a mantissa and an exponent, and no logarithms are taken inside the
circuit. ctypes releases the interpreter lock while they run.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Generator, Tensor

from semprola.engine.backends.base import Backend
from semprola.engine.backends.library import library
from semprola.engine.backends.torch import TorchBackend
from semprola.engine.backends.torch_ranking import merge_lists
from semprola.engine.literals import Literals
from semprola.engine.plan import Plan
from semprola.errors import SemprolaError

_TYPES = (torch.float32, torch.float64)
_MOST_RANKED = 2**31 - 1
"""The native module counts states in 32 bits."""
_MOST_KEPT = 2**18
"""Plans with more weights than this use the general `marginal`, and with more edges the general `tangent`: the native
ones keep all softmaxes or shares for the way back."""
_TORCH = TorchBackend()
_WEIGHTS_PER_CODE = 8
"""Reading one code of each of 64 states takes as long as going through this many weights of a plan for all 64."""


class NativeBackend(Backend):
    """Takes dense tensors on CPU, all float32 or all float64; see :class:`Backend` for what the functions do."""

    name = "native"
    remedy = "reinstall semprola with a C++17 compiler available"
    few_rows = 0.04

    def is_present(self) -> bool:
        return library() is not None

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        if not tensors or library() is None:
            return False
        kind = tensors[0].dtype
        if kind not in _TYPES:
            return False
        for t in tensors:  # noqa: SIM110 -- a generator takes as long as a small circuit
            if not (t.is_cpu and t.dtype == kind and t.layout == torch.strided):
                return False
        return True

    def evaluate(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, *, flows: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        _check_inputs(plan, weights, leaves)
        columns = leaves.shape[1]
        value = leaves.new_empty(columns)
        literals = leaves.new_empty(leaves.shape) if flows else None
        edges = leaves.new_empty(weights.shape) if flows and weights is not None else None
        if columns:
            _call(
                *("evaluate", leaves, _handle(plan, weights is not None), *_matrix(weights), *_matrix(leaves), columns),
                *(value.data_ptr(), _pointer(edges), _pointer(literals), torch.get_num_threads()),
            )
        return value, edges, literals

    def tangent(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, d_weights: Tensor | None, d_leaves: Tensor
    ) -> tuple[Tensor | None, Tensor]:
        if plan.num_edges > _MOST_KEPT:
            return _TORCH.tangent(plan, weights, leaves, d_weights, d_leaves)
        _check_inputs(plan, weights, leaves)
        fits = d_leaves.shape == leaves.shape and d_leaves.dtype == leaves.dtype
        _require(fits, "d_leaves", d_leaves, tuple(leaves.shape))
        _require((d_weights is None) == (weights is None), "d_weights", leaves, "changes of its weights")
        if weights is not None and d_weights is not None:
            fits = d_weights.shape == weights.shape and d_weights.dtype == leaves.dtype
            _require(fits, "d_weights", d_weights, tuple(weights.shape))
        literals = leaves.new_empty(leaves.shape)
        edges = None if weights is None else leaves.new_empty(weights.shape)
        columns = leaves.shape[1]
        if columns:
            _call(
                *("tangent", leaves, _handle(plan, weights is not None), *_matrix(weights), *_matrix(leaves)),
                *(*_matrix(d_weights), *_matrix(d_leaves), columns),
                *(_pointer(edges), _pointer(literals), torch.get_num_threads()),
            )
        return edges, literals

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        value, literals = leaves.new_empty(leaves.shape[1]), leaves.new_empty(leaves.shape)
        _maximize(plan, weights, leaves, None, value, None, literals)
        return value, literals

    def best_states(self, plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor) -> tuple[Tensor, Tensor]:
        value, states = leaves.new_empty(leaves.shape[1]), leaves.new_empty(default.shape)
        _maximize(plan, weights, leaves, default.contiguous(), value, states, None)
        return value, states

    def rank(self, plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
        if k > _MOST_RANKED:
            return merge_lists(plan, weights, leaves, k)
        _check_inputs(plan, weights, leaves)
        columns = leaves.shape[1]
        states, values = leaves.new_zeros((len(leaves) // 2, k, columns)), leaves.new_empty((k, columns))
        _call(
            *("rank", leaves, _handle(plan, weights is not None), *_matrix(weights), *_matrix(leaves), columns, k),
            *(values.data_ptr(), states.data_ptr(), torch.get_num_threads()),
        )
        return states, values

    def sample(
        self, plan: Plan, weights: Tensor | None, literals: Literals, column: Tensor, generator: Generator | None
    ) -> Tensor:
        leaves, default, column = literals.leaves, literals.default.contiguous(), column.contiguous()
        _check_inputs(plan, weights, leaves, default)
        _require(column.dtype == torch.int64 and column.dim() == 1, "column", column, "int64 [samples]")
        seed = int(torch.randint(2**63 - 1, (), generator=generator))
        states = leaves.new_empty((len(default), len(column)))
        _call(
            *("sample", leaves, _handle(plan, weights is not None), *_matrix(weights), *_matrix(leaves)),
            *(default.data_ptr(),),
            *(leaves.shape[1], column.data_ptr(), len(column), seed, states.data_ptr(), torch.get_num_threads()),
        )
        return states

    def support(self, plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
        _check_inputs(plan, None, leaves)
        columns = leaves.shape[1]
        some = torch.empty(columns, dtype=torch.bool)
        flags = torch.empty((plan.num_weights if edges else 0, columns), dtype=torch.bool)
        wanted = {None: 0, "possible": 1, "active": 2}[edges]
        _call(
            *("support", leaves, _handle(plan, edges is not None), *_matrix(leaves), columns, wanted),
            *(some.data_ptr(), flags.data_ptr(), torch.get_num_threads()),
        )
        return flags, some

    def encode(self, plan: Plan, rows: Tensor) -> Tensor:
        _require(rows.dim() == 2 and len(rows) == plan.num_leaves // 2, "rows", rows, "[variables, columns]")
        columns, longest = rows.shape[1], ctypes.c_int64(1)
        arguments = ("encode", rows, _handle(plan), *_matrix(rows), rows.shape[0], columns)
        _call(*arguments, None, 0, ctypes.addressof(longest))
        codes = torch.empty((columns, longest.value), dtype=torch.int32)
        _call(*arguments, codes.data_ptr(), longest.value, ctypes.addressof(longest))
        return codes

    def likelihood(
        self,
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
        _, components, batch = logits.shape
        samples = rows.shape[1]
        _check_states(plan, logits, rows, codes, labels, cotangent)
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

    def marginal(self, plan: Plan, logits: Tensor, observed: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        if plan.num_weights > _MOST_KEPT:
            return super().marginal(plan, logits, observed, gradient=gradient)
        _, components, batch = logits.shape
        wanted: tuple[int, ...] = (plan.num_logits, components, batch)
        _require(logits.shape == wanted, "logits", logits, wanted)
        wanted = (plan.num_leaves // 2, batch)
        _require(observed.shape == wanted and observed.dtype == logits.dtype, "observed", observed, wanted)
        if components > 1:
            logits = logits.contiguous()
        values = logits.new_empty((components, batch))
        slopes = logits.new_empty(logits.shape) if gradient else None
        row, _, column = logits.stride()
        if batch:
            _call(
                *("marginal", logits, _handle(plan), logits.data_ptr(), row, column, *_matrix(observed)),
                *(plan.num_pairs, components, batch, values.data_ptr(), _pointer(slopes), torch.get_num_threads()),
            )
        return values, slopes

    def independent(
        self, plan: Plan, referee: Plan, odds: Tensor, states: Tensor | None, *, gradient: bool
    ) -> tuple[Tensor, Tensor | None]:
        _check_odds(plan, odds)
        variables, columns = odds.shape
        if states is not None:
            _require(states.shape == odds.shape and states.dtype == odds.dtype, "states", states, tuple(odds.shape))
        value = odds.new_empty(columns)
        slopes = odds.new_empty((columns, variables)) if gradient else None
        if columns:
            _call(
                *("independent", odds, _handle(plan, False), _handle(referee, False), plan.kinds.data_ptr()),
                *(*_matrix(odds), *_matrix(states), columns, value.data_ptr(), _pointer(slopes)),
                torch.get_num_threads(),
            )
        return value, None if slopes is None else slopes.T

    def likeliest(self, plan: Plan, odds: Tensor) -> Tensor:
        _check_odds(plan, odds)
        variables, columns = odds.shape
        states = odds.new_empty((columns, variables))
        if columns:
            _call(
                *("likeliest", odds, _handle(plan, False), plan.kinds.data_ptr(), *_matrix(odds), columns),
                *(states.data_ptr(), torch.get_num_threads()),
            )
        return states.T

    def largest_norm(self, rows: Tensor) -> float:
        if not rows.is_contiguous():
            return super().largest_norm(rows)
        norm: float = _function("largest_norm", rows.dtype)(rows.data_ptr(), *rows.shape)
        return norm

    def scale_possible(self, slopes: Tensor, factors: Tensor, values: Tensor | None) -> Tensor:
        rows = slopes.T
        if not (rows.is_contiguous() and (values is None or values.is_contiguous())):
            return super().scale_possible(slopes, factors, values)
        (stride,) = factors.stride()
        numbers = rows.data_ptr(), *rows.shape, factors.data_ptr(), stride
        _function("scale_rows", rows.dtype)(*numbers, None if values is None else values.data_ptr())
        return slopes

    def gate(
        self, plan: Plan, matrix: Tensor, bias: Tensor, features: Tensor, codes: Tensor, components: int
    ) -> Tensor:
        values = features.new_empty((components, len(features)))
        _gate(plan, matrix, bias, features, codes, components, (values, None, None, None, None))
        return values

    def gate_gradients(
        self,
        plan: Plan,
        matrix: Tensor,
        bias: Tensor,
        features: Tensor,
        codes: Tensor,
        components: int,
        cotangent: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        wanted = (components, len(features))
        _require(cotangent.shape == wanted and cotangent.dtype == matrix.dtype, "cotangent", cotangent, wanted)
        slopes = matrix.new_zeros(matrix.shape), bias.new_zeros(bias.shape), features.new_zeros(features.shape)
        _gate(plan, matrix, bias, features, codes, components, (None, cotangent.contiguous(), *slopes))
        return slopes

    def is_binary(self, values: Tensor) -> bool:
        if not values.is_contiguous():  # the order does not matter, so that of memory will do
            values = values.permute(sorted(range(values.dim()), key=values.stride, reverse=True))
        if values.dtype not in _TYPES or not values.is_contiguous():
            return super().is_binary(values)
        return bool(_function("is_binary", values.dtype)(values.data_ptr(), values.numel()))

    def scale(self, numbers: Tensor, factors: Tensor) -> Tensor:
        rows, columns, stride = 1, numbers.numel(), 0
        if any(factors.stride()):  # otherwise all columns have the same factor, as in the gradient of a sum
            factors = factors.contiguous()
            rows, columns, stride = len(numbers), factors.numel(), 1
        _function("scale", numbers.dtype)(numbers.data_ptr(), rows, columns, factors.data_ptr(), stride)
        return numbers

    def prefers_rows(self, plan: Plan, codes: Tensor) -> bool:
        # rows are read 64 at a time, codes one by one
        return codes.shape[-1] * _WEIGHTS_PER_CODE > plan.num_weights


def _maximize(
    plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor | None, value: Tensor, *outputs: Tensor | None
) -> None:
    _check_inputs(plan, weights, leaves, default)
    if len(value):
        _call(
            *("maximize", leaves, _handle(plan, weights is not None), *_matrix(weights), *_matrix(leaves)),
            *(_pointer(default), len(value)),
            *(value.data_ptr(), *map(_pointer, outputs), torch.get_num_threads()),
        )


def _gate(
    plan: Plan,
    matrix: Tensor,
    bias: Tensor,
    features: Tensor,
    codes: Tensor,
    components: int,
    outputs: tuple[Tensor | None, ...],
) -> None:
    least, batch = plan.num_logits * components, len(features)
    fits = matrix.dim() == 2 and len(matrix) >= least and len(bias) == len(matrix)
    _require(fits, "matrix", matrix, f"[{least} or more, features], and a bias as long")
    wanted = (batch, matrix.shape[1])
    _require(features.shape == wanted and features.dtype == matrix.dtype, "features", features, wanted)
    fits = codes.dtype == torch.int32 and codes.dim() == 2 and len(codes) == batch and codes.shape[1] > 0
    _require(fits, "codes", codes, f"int32 [{batch}, most]")
    # named so that copies live until the call is over
    matrix, bias, features, codes = matrix.contiguous(), bias.contiguous(), features.contiguous(), codes.contiguous()
    if batch:
        _call(
            *("gate", matrix, _handle(plan), matrix.data_ptr(), matrix.shape[1], 1, bias.data_ptr()),
            *(features.data_ptr(), features.shape[1], 1, features.shape[1], codes.data_ptr(), codes.shape[1]),
            *(plan.num_pairs, components, batch, *map(_pointer, outputs), torch.get_num_threads()),
        )


def _check_inputs(plan: Plan, weights: Tensor | None, leaves: Tensor, default: Tensor | None = None) -> None:
    """Refuse tensors that the kernels would read out of bounds."""
    _require(leaves.dim() == 2 and len(leaves) == plan.num_leaves, "leaves", leaves, f"[{plan.num_leaves}, columns]")
    columns = leaves.shape[1]
    if weights is not None:
        wanted = (plan.num_weights, columns)
        _require(weights.shape == wanted and weights.dtype == leaves.dtype, "weights", weights, wanted)
    if default is not None:
        wanted = (plan.num_leaves // 2, columns)
        _require(default.shape == wanted and default.dtype == leaves.dtype, "default", default, wanted)


def _check_odds(plan: Plan, odds: Tensor) -> None:
    variables = plan.num_leaves // 2
    _require(odds.dim() == 2 and len(odds) == variables, "odds", odds, f"[{variables}, columns]")


def _check_states(
    plan: Plan, logits: Tensor, rows: Tensor, codes: Tensor | None, labels: int, cotangent: Tensor | None
) -> None:
    (_, components, batch), samples = logits.shape, rows.shape[1]
    wanted = (plan.num_weights - plan.num_pairs, components, batch)
    _require(logits.shape == wanted, "logits", logits, wanted)
    # with encoded states, only the given variables are read; there may be none
    unread = codes is not None and len(rows) == 0 and labels == plan.num_leaves // 2
    wanted = (0 if unread else plan.num_leaves // 2, samples, batch)
    _require(rows.shape == wanted and rows.dtype == logits.dtype, "rows", rows, wanted)
    if codes is not None:
        fits = codes.dtype == torch.int32 and codes.numel() == samples * batch * codes.shape[-1]
        _require(fits, "codes", codes, f"int32 [{samples}, {batch}, most]")
    if cotangent is not None:
        wanted = (samples, components, batch)
        _require(cotangent.shape == wanted and cotangent.dtype == logits.dtype, "cotangent", cotangent, wanted)


def _require(fits: bool, name: str, values: Tensor, wanted: object) -> None:
    if not fits:
        raise ValueError(f"{name}: the circuit needs {wanted}, not {values.dtype} {tuple(values.shape)}")


def _handle(plan: Plan, has_weights: bool = True) -> int:
    """The native module's copy of the plan, made on first use and freed with the plan.

    Without weights it has fewer rows, and takes less time and memory.
    """
    kept: dict[bool, _Native] = plan.__dict__.setdefault("_native", {})
    found = kept.get(has_weights)
    if found is None:
        # if two threads make one at the same time, the later one discards its own
        found = kept.setdefault(has_weights, _Native(plan, has_weights))
    return found.handle


class _Native:
    """A plan inside the native module."""

    def __init__(self, plan: Plan, has_weights: bool) -> None:
        native: Any = library()
        shape = plan.shape
        if len(shape.factors) >= 2**31:
            raise MemoryError("the circuit has more than two billion factors: use a smaller circuit")
        first_weight = plan.edge_position[shape.edge_start[:-1]] - plan.num_fixed if has_weights else None
        arrays: list[npt.NDArray[Any] | None] = [
            plan.sum_order,
            plan.row_of_sum,
            shape.edge_start,
            None if first_weight is None else np.maximum(first_weight, -1),
            shape.factor_start,
            shape.factors,
        ]
        # the module reads the arrays in place and keeps none of them
        passed = [None if array is None else np.ascontiguousarray(array, dtype=np.int32) for array in arrays]
        has_default = np.ascontiguousarray(~(shape.mentioned | shape.suppressed), dtype=np.uint8)
        handle: int | None = native.semprola_plan_create(
            *(shape.num_leaves, shape.num_sums, shape.num_edges, plan.num_weights, plan.root_row),
            *(None if array is None else array.ctypes.data for array in passed),
            has_default.ctypes.data,
        )
        if handle is None:
            raise _failure(native, native.semprola_engine_status(), f"a circuit of {shape.num_edges} edges")
        self.handle, self._destroy = handle, native.semprola_plan_destroy

    def __del__(self) -> None:
        if "handle" in self.__dict__:
            self._destroy(self.handle)


def _call(name: str, like: Tensor, *arguments: object) -> None:
    status = _function(name, like.dtype)(*arguments)
    if status:
        raise _failure(library(), status, f"{name} on a circuit")


def _failure(native: Any, status: int, what: str) -> Exception:
    """The error for a nonzero status of a native function; mirrors `enum Status` in engine_dispatch.hpp."""
    text = native.semprola_engine_error().decode(errors="replace")
    if status == 1:
        return MemoryError(f"{what}: {text}; use a smaller batch or circuit")
    if status == 3:
        return ValueError(f"{what}: {text}")
    return SemprolaError(f"{what}: the native module failed ({text}); try semprola.engine.set_engine('torch')")


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
