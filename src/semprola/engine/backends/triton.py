"""The Triton back end: few launches per pass on CUDA and ROCm devices.

Passes over levels have kernels. What is a handful of large operations anyway, as the likelihood of encoded states, is
inherited from the torch back end. With TRITON_INTERPRET=1 in the environment, kernels are interpreted on CPU
tensors: slow, and meant for tests.
"""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Generator, Tensor

from semprola.engine.backends.torch import TorchBackend, fill, weighted
from semprola.engine.backends.torch_chunks import by_columns, columns_at_once
from semprola.engine.backends.triton_layout import WARPS, Layout, Segment, interpreted, tile_of
from semprola.engine.literals import Literals
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan
from semprola.engine.skeleton import Skeleton

_TYPES = (torch.float32, torch.float64)


class TritonBackend(TorchBackend):
    """Takes dense tensors on a GPU, all float32 or all float64; see :class:`Backend` for what the functions do."""

    name = "triton"
    remedy = "install semprola[triton], on a machine with a GPU that Triton supports"

    def is_present(self) -> bool:
        return _unavailable() is None and (torch.cuda.is_available() or interpreted())

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        if not tensors or not (tensors[0].is_cuda or (interpreted() and tensors[0].is_cpu)):
            return False
        device, kind = tensors[0].device, tensors[0].dtype
        if kind not in _TYPES or any(
            t.device != device or t.dtype != kind or t.layout != torch.strided for t in tensors
        ):
            return False
        reason = _unavailable() or _failure(device)
        if reason is not None:
            _warn_once(reason)
        return reason is None

    def evaluate(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, *, flows: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        def value_alone(leaves: Tensor, weights: Tensor | None) -> Tensor:
            return _Pass(plan, weights, leaves).up()[plan.root_row].clone()

        def value_and_flows(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
            run = _Pass(plan, weights, leaves)
            value = run.up()[plan.root_row].clone()
            edges, literals = run.down()
            return value, weighted(plan, weights, edges), literals

        if not flows:
            return by_columns(plan, value_alone, leaves, weights), None, None
        value, edges, literals = by_columns(plan, value_and_flows, leaves, weights)
        return value, None if weights is None else edges, literals

    def tangent(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, d_weights: Tensor | None, d_leaves: Tensor
    ) -> tuple[Tensor | None, Tensor]:
        def part(
            leaves: Tensor, weights: Tensor | None, d_leaves: Tensor, d_weights: Tensor | None
        ) -> tuple[Tensor, Tensor]:
            run = _Pass(plan, weights, leaves)
            run.up()
            run.down()
            edges, literals = run.tangent(d_weights, d_leaves)
            return weighted(plan, weights, edges), literals

        edges, literals = by_columns(plan, part, leaves, weights, d_leaves, d_weights)
        return None if weights is None else edges, literals

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        def part(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
            run = _Pass(plan, weights, leaves, maximum=True)
            value = run.up()[plan.root_row].clone()
            return value, run.down()[1]

        result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves, weights)
        return result

    def sample(
        self, plan: Plan, weights: Tensor | None, literals: Literals, column: Tensor, generator: Generator | None
    ) -> Tensor:
        leaves, step = literals.leaves, columns_at_once(plan, literals.leaves)
        leaf_flows = leaves.new_empty((plan.num_leaves, len(column)))
        for first in range(0, leaves.shape[1], step):
            some = slice(first, first + step)
            run = _Pass(plan, None if weights is None else weights[:, some], leaves[:, some])
            run.up()
            if step >= leaves.shape[1] and len(column) <= step:  # no look at the columns: the host need not wait
                return fill(run.draw(column, generator).to(leaves.dtype), literals, column, generator)
            wanted = torch.nonzero((column >= first) & (column < first + step))[:, 0]
            for part in wanted.split(step):
                leaf_flows[:, part] = run.draw(column[part] - first, generator).to(leaves.dtype)
        return fill(leaf_flows, literals, column, generator)

    def support(self, plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
        def part(leaves: Tensor) -> tuple[Tensor, Tensor]:
            certain = torch.zeros_like(leaves).masked_fill_(~(leaves > NEGATIVE_INFINITY), NEGATIVE_INFINITY)
            run = _Pass(plan, None, certain, maximum=True)
            some = run.up()[plan.root_row] == 0
            if edges is None:
                return torch.empty_like(certain[:0], dtype=torch.bool), some
            if edges == "possible":
                return run.alive().to(torch.bool), some
            # for a full state, at most one edge of a deterministic sum is possible, so the flows are 0 or 1
            flows, _ = run.down(maximum=False)
            return flows[plan.num_fixed :] > 0, some

        result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves)
        return result

    def marginal(self, plan: Plan, logits: Tensor, observed: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        return super(TorchBackend, self).marginal(plan, logits, observed, gradient=gradient)


class _Pass:
    """The passes over a plan for some columns; each function is a few launches on the current stream."""

    def __init__(self, plan: Plan, weights: Tensor | None, leaves: Tensor, *, maximum: bool = False) -> None:
        self.plan, self.maximum = plan, maximum
        self.layout = Layout.of(plan, leaves.device)
        self.columns = leaves.shape[1]
        self.weights = None if weights is None else weights.contiguous()
        self.values = self._rows(leaves)
        self.flows = self.values[:0]

    def up(self) -> Tensor:
        """Values of all rows [rows, columns]."""
        layout = self.layout
        arrays = self.values, self._weights, layout.table, layout.factor_start, layout.factors
        self._launch("upward", layout.segments(self._tile[0]), *arrays, MAXIMUM=self.maximum)
        return self.values

    def down(self, *, maximum: bool | None = None) -> tuple[Tensor, Tensor]:
        """Flows through all edges [edges, columns] and into literals [2 variables, columns]; after :meth:`up`."""
        layout, maximum = self.layout, self.maximum if maximum is None else maximum
        self.flows = self.values.new_empty((self.plan.num_edges, self.columns))
        literals = self.values.new_empty((self.plan.num_leaves, self.columns))
        arrays = self.values, self._weights, self.flows, literals, *self._graph
        self._launch("downward", layout.segments_down(self._tile[0]), *arrays, root=self.plan.root_row, MAXIMUM=maximum)
        return self.flows, literals

    def tangent(self, d_weights: Tensor | None, d_leaves: Tensor) -> tuple[Tensor, Tensor]:
        """Changes of the flows; after :meth:`up` and :meth:`down`."""
        layout, d_values = self.layout, self._rows(d_leaves)
        d_weights = d_values if d_weights is None else d_weights.contiguous()
        arrays = self.values, self._weights, d_values, d_weights, layout.table, layout.factor_start, layout.factors
        self._launch("upward_tangent", layout.segments(self._tile[0]), *arrays)
        d_flows, d_literals = torch.empty_like(self.flows), torch.empty_like(d_values[: self.plan.num_leaves])
        self._launch(
            *("downward_tangent", layout.segments_down(self._tile[0]), self.values, self._weights, d_values, d_weights),
            *(self.flows, d_flows, d_literals, *self._graph),
            root=self.plan.root_row,
        )
        return d_flows, d_literals

    def alive(self) -> Tensor:
        """One for each possible weighted edge [W, columns], int8; after :meth:`up`."""
        layout = self.layout
        flags = torch.empty((self.plan.num_weights, self.columns), dtype=torch.int8, device=self.values.device)
        arrays = self.values, flags, layout.table, layout.factor_start, layout.factors
        segments = layout.segments(self._tile[0], by_edges=True)
        self._launch("alive", segments, *arrays, WEIGHTED=None)
        return flags

    def draw(self, source: Tensor, generator: Generator | None) -> Tensor:
        """0/1 for the literals of a sample of each listed column [2 variables, samples], int8; after :meth:`up`."""
        plan, samples, like = self.plan, len(source), self.values
        uniform = torch.rand(
            (plan.num_rows - plan.num_leaves, samples), dtype=like.dtype, device=like.device, generator=generator
        )
        flows = torch.empty((plan.num_edges, samples), dtype=torch.int8, device=like.device)
        literals = torch.empty((plan.num_leaves, samples), dtype=torch.int8, device=like.device)
        self._launch(
            *("drawn", self.layout.segments_down(tile_of(samples)[0]), like, self._weights, flows, literals),
            *(uniform, source.contiguous(), *self._graph),
            samples=samples,
            num_leaves=plan.num_leaves,
            root=plan.root_row,
            below_one=1.0 - torch.finfo(like.dtype).eps,
        )
        return literals

    @property
    def _graph(self) -> tuple[Tensor, ...]:
        layout = self.layout
        return layout.table, layout.factor_start, layout.factors, layout.parent_start, layout.parents

    @property
    def _weights(self) -> Tensor:
        """A tensor to point to; never read where there are no weights."""
        return self.values if self.weights is None else self.weights

    @property
    def _tile(self) -> tuple[int, int]:
        return tile_of(self.columns)

    def _rows(self, leaves: Tensor) -> Tensor:
        rows = leaves.new_empty((self.plan.num_rows, self.columns))
        rows[: self.plan.num_leaves] = leaves
        return rows

    def _launch(self, name: str, segments: list[Segment], *arrays: Tensor, **further: Any) -> None:
        columns = further.get("samples", self.columns)
        if not columns:
            return
        sums, width = tile_of(columns)
        if further.setdefault("WEIGHTED", self.weights is not None) is None:
            del further["WEIGHTED"]
        kernel = _kernel(name)
        with torch.cuda.device(self.values.device) if self.values.is_cuda else nullcontext():
            for segment in segments:
                kernel[(-(-columns // width), segment.programs)](
                    *arrays,
                    first=segment.first,
                    last=segment.last,
                    columns=self.columns,
                    num_fixed=self.plan.num_fixed,
                    SUMS=sums,
                    COLUMNS=width,
                    num_warps=WARPS,
                    **further,
                )


def _kernel(name: str) -> Any:
    return getattr(importlib.import_module("semprola.engine.backends.triton_kernels"), name)


# whether Triton works -------------------------------------------------------------------------------------------------


@functools.cache
def _unavailable() -> str | None:
    """Why there are no kernels; None if there are."""
    try:
        _kernel("upward")
    except ImportError as error:
        return f"{error}; install semprola[triton]"
    return None


@functools.cache
def _failure(device: torch.device) -> str | None:
    """Why kernels do not work on a device; None if they do: one is compiled and run."""
    start, factors = np.array([0, 2]), np.array([0, 1])
    some, none = np.array([True]), np.array([False])
    plan = Plan(Skeleton(1, start, np.array([0, 1, 2]), factors, 0, some, none))
    leaves = torch.tensor([[0.0], [NEGATIVE_INFINITY]], device=device)
    try:
        value = _Pass(plan, None, leaves).up()[plan.root_row]
    except Exception as error:  # whatever an unsupported device makes Triton raise
        return f"Triton does not work on {device}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
    return None if value.item() == 0.0 else f"Triton gives wrong numbers on {device}"


@functools.cache
def _warn_once(reason: str) -> None:
    warnings.warn(f"circuits are evaluated by plain torch, which needs many more launches: {reason}", stacklevel=4)
