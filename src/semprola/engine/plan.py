"""A skeleton laid out for tensors: rows and edges are sorted so that a pass is a few slices and gathers per level."""

from __future__ import annotations

import itertools
import threading
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from semprola.circuit.fold import heights, spans
from semprola.engine.skeleton import Index, Skeleton, binarize
from semprola.errors import SemprolaError

_plans: WeakValueDictionary[int, Plan] = WeakValueDictionary()
_lock = threading.Lock()
_PART = 2**19
"""Number of rows that are gathered at once."""


@dataclass(frozen=True)
class Step:
    """Sums of one level with the same number of edges. Their rows are contiguous, and so are their edges.

    `factors` and `offsets` list the factors (rows) of the edges; `parents` and `parent_offsets` list the edges above
    the rows. Offsets are None if there is exactly one each.
    """

    rows: slice
    edges: slice
    sums: int
    fan_in: int
    is_choice: bool
    copies: int
    factors: Tensor
    offsets: Tensor | None
    parents: Tensor
    parent_offsets: Tensor | None

    def edge_of_factor(self) -> Tensor:
        """For each of `factors`, the edge that it belongs to, counted from the step's first edge."""
        every = torch.arange(self.sums * self.fan_in, device=self.factors.device)
        if self.offsets is None:
            return every
        ends = torch.cat([self.offsets, self.offsets.new_tensor([len(self.factors)])])
        return torch.repeat_interleave(every, ends.diff())


class Plan:
    """The order of evaluation of a skeleton.

    Rows are the literals (2 v for not v, 2 v + 1 for v), then the sums, lowest level first. Edges are sorted by the
    number of edges of their sum, then by level: the first `num_fixed` belong to sums with a single edge and carry no
    weight, the others are the parameters of the layer, and all sums of one fan-in form one block of them.

    Args:
        shape: the skeleton.
        is_choice: which sums take the maximum even in passes that add up, one bool per sum.
        weigh_all: also give single edges a weight.
    """

    def __init__(
        self, shape: Skeleton, is_choice: npt.NDArray[np.bool_] | None = None, *, weigh_all: bool = False
    ) -> None:
        self.shape = shape = shape.compact()
        self.weigh_all = weigh_all
        self._choice = np.zeros(shape.num_sums, bool) if is_choice is None else is_choice
        self._lay_out()
        self._steps: dict[torch.device, Steps] = {}
        self._masks: dict[torch.device, tuple[Tensor, Tensor]] = {}
        self.handle, self._first = self._register()

    def __deepcopy__(self, memo: dict[int, Any]) -> Plan:
        return self

    @staticmethod
    def of(handle: int) -> Plan:
        """The living plan with this handle, or one equal to it.

        Raises:
            SemprolaError: if there is none, as in a process that loaded an exported program but not its layer.
        """
        plan = _plans.get(handle)
        if plan is None:
            raise SemprolaError(
                "the circuit of this operator is not loaded: build the layer before running its program"
            )
        return plan

    @property
    def num_leaves(self) -> int:
        return self.shape.num_leaves

    @property
    def num_rows(self) -> int:
        return self.shape.num_leaves + self.shape.num_sums

    @property
    def num_edges(self) -> int:
        return self.shape.num_edges

    @property
    def num_weights(self) -> int:
        """Number of weighted edges."""
        return self.num_edges - self.num_fixed

    @property
    def num_pairs(self) -> int:
        """Number of weighted sums with two edges; their weights come first."""
        return self.blocks[0][1] if self.blocks and self.blocks[0][2] == 2 else 0

    @property
    def num_logits(self) -> int:
        """Number of logits from which `log_softmax` makes the weights.

        A sum of two edges has one logit, that of its second edge relative to the first; these logits come first. Any
        other sum has one logit per edge.
        """
        return self.num_weights - self.num_pairs

    @cached_property
    def binary(self) -> tuple[Plan, Tensor]:
        """The same plan with at most two sums per product, and for each of its weights the index of this plan's."""
        shape = binarize(self.shape)
        if shape.num_edges == self.num_edges:
            return self, torch.arange(self.num_weights)
        plan = Plan(shape)
        return plan, plan.weights_of(self, np.arange(plan.num_edges))

    @cached_property
    def edge_order(self) -> Index:
        """For each edge of the plan, the edge of the skeleton."""
        # made only when weights are needed: there may be many millions of edges
        shape = self.shape
        by_edges = np.lexsort((self.row_of_sum, np.diff(shape.edge_start)))
        return _gathered(np.arange(shape.num_edges, dtype=shape.factors.dtype), shape.edge_start, by_edges)

    @cached_property
    def edge_position(self) -> Index:
        """For each edge of the skeleton, the edge of the plan."""
        position: Index = np.empty(self.num_edges, dtype=self.edge_order.dtype)
        position[self.edge_order] = np.arange(self.num_edges, dtype=position.dtype)
        return position

    def weights_of(self, base: Plan, origin: Index) -> Tensor:
        """For each weighted edge, the index of the weight of another plan that it carries; -1 for none.

        Args:
            base: the other plan.
            origin: for each edge of this plan's skeleton, an edge of the other's; numbers out of range mean none.
        """
        source = origin[self.edge_order[self.num_fixed :]]
        known = (source >= 0) & (source < base.num_edges)
        position = np.where(known, base.edge_position[np.where(known, source, 0)] - base.num_fixed, -1)
        return torch.from_numpy(np.maximum(position, -1))

    def on(self, device: torch.device) -> Steps:
        """The steps with their index tensors on a device."""
        if device not in self._steps:
            self._steps[device] = Steps(self, device)
        return self._steps[device]

    def masks(self, device: torch.device) -> tuple[Tensor, Tensor]:
        """`suppressed` and `mentioned` on a device; copied once, so that later calls need not wait for the host."""
        if device.type == "cpu":
            return self.suppressed, self.mentioned
        if device in self._masks:
            return self._masks[device]
        made = self.suppressed.to(device), self.mentioned.to(device)
        if type(made[0]) is Tensor and not torch.compiler.is_compiling():  # what a tracer makes must not be kept
            self._masks[device] = made
        return made

    def _register(self) -> tuple[int, Plan | None]:
        """A number by which operators refer to the plan, and an older plan that is equal to this one, if any.

        The first of several equal plans stands for all of them, and lives as long as any of them.
        """
        for salt in itertools.count():
            handle = self._digest(salt)
            with _lock:
                first = _plans.setdefault(handle, self)
            if first is self:
                return handle, None
            if self._equals(first):
                return handle, first
            # a collision: the later plan takes another number
        raise AssertionError("unreachable")

    def _digest(self, salt: int) -> int:
        """A number made from the plan's contents.

        An exported program stores only this number. It means the same in every process that has built the same layer.
        """
        hasher = blake2b(digest_size=7)
        for array in self._contents():
            hasher.update(np.ascontiguousarray(array).data)
        hasher.update(repr((self.shape.num_variables, self.shape.root, self.weigh_all)).encode())
        hasher.update(b"" if not salt else str(salt).encode())
        return int.from_bytes(hasher.digest(), "little")

    def _equals(self, other: Plan) -> bool:
        mine, its = self.shape, other.shape
        return (mine.num_variables, mine.root, self.weigh_all) == (
            its.num_variables,
            its.root,
            other.weigh_all,
        ) and all(np.array_equal(a, b) for a, b in zip(self._contents(), other._contents(), strict=True))

    def _contents(self) -> list[npt.NDArray[Any]]:
        shape = self.shape
        arrays = [
            shape.edge_start,
            shape.factor_start,
            shape.factors,
            shape.sum_copied,
            shape.mentioned,
            shape.suppressed,
        ]
        return [*arrays, self._choice]

    def _lay_out(self) -> None:
        shape = self.shape
        fan_in = np.diff(shape.edge_start)
        # copies of one sum stay together, so that one choice can be made for all of them
        self._copies = np.broadcast_to(np.int32(1), shape.num_sums)
        if self._choice.any():
            copied = shape.sum_copied
            copies = np.bincount(copied[copied >= 0], minlength=shape.num_sums)
            self._copies = np.where(self._choice & (copied >= 0), copies[np.maximum(copied, 0)], 1)
        order = np.lexsort((np.arange(shape.num_sums), self._copies, ~self._choice, fan_in, self.levels()))
        kind = shape.factors.dtype  # 32 bits if they suffice: there may be many millions of edges
        order = order.astype(kind)
        self.row_of_sum: Index = np.empty(shape.num_sums, dtype=kind)
        self.row_of_sum[order] = shape.num_leaves + np.arange(shape.num_sums, dtype=kind)
        self.sum_order = order
        self.num_fixed = 0 if self.weigh_all else int((fan_in == 1).sum())
        self.root_row = int(self.row_of_sum[shape.root])
        self.blocks = self._blocks(fan_in)
        """(first weight, sums, fan-in) of each run of weights whose sums have the same fan-in."""
        self.mentioned = torch.from_numpy(shape.mentioned.copy())[:, None]
        self.suppressed = torch.from_numpy(shape.suppressed.copy())[:, None]
        self.kinds = torch.from_numpy(np.where(shape.suppressed, 1, np.where(shape.mentioned, 0, 2)).astype(np.uint8))
        """What it means if a branch leaves a variable out [variables]: none does (0), zero (1), either value (2)."""
        self.all_suppressed = bool(shape.suppressed.all())
        self.all_mentioned = bool(shape.mentioned.all())

    def _blocks(self, fan_in: Index) -> tuple[tuple[int, int, int], ...]:
        sizes, counts = np.unique(fan_in if self.weigh_all else fan_in[fan_in > 1], return_counts=True)
        firsts = np.cumsum(sizes * counts) - sizes * counts
        return tuple((int(f), int(c), int(s)) for f, c, s in zip(firsts, counts, sizes, strict=True))

    def levels(self) -> Index:
        """Level of each sum of the skeleton: one more than the highest level below it."""
        shape = self.shape
        inner = shape.factors >= shape.num_leaves
        # the factors of a sum are contiguous
        before = np.concatenate([[0], np.cumsum(inner, dtype=shape.factors.dtype)])
        start = before[shape.factor_start[shape.edge_start]].astype(np.int64)
        del before
        return heights(start, (shape.factors[inner] - shape.num_leaves).astype(np.int32, copy=False))


def _gathered(values: Index, start: Index, rows: Index) -> Index:
    """The values of some rows of a CSR array, concatenated; done in parts, since the indices take much memory."""
    counts = start[rows + 1] - start[rows]
    ends = np.cumsum(counts, dtype=np.int64)
    result = np.empty(int(ends[-1]) if len(ends) else 0, dtype=values.dtype)
    for first in range(0, len(rows), _PART):
        part = rows[first : first + _PART]
        last = min(first + _PART, len(rows)) - 1
        result[int(ends[first] - counts[first]) : int(ends[last])] = values[spans(start, part)]
    return result


class Steps:
    """The steps of a plan on one device, lowest level first."""

    def __init__(self, plan: Plan, device: torch.device) -> None:
        shape = plan.shape
        rows = shape.factors.copy()
        inner = rows >= shape.num_leaves
        rows[inner] = plan.row_of_sum[rows[inner] - shape.num_leaves]
        edge_of_factor = np.repeat(np.arange(shape.num_edges), np.diff(shape.factor_start))
        by_row = np.argsort(rows, kind="stable")
        self._rows, self._shape, self._plan, self._device = rows, shape, plan, device
        self._parents = plan.edge_position[edge_of_factor[by_row]]
        self._parent_start = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=plan.num_rows))])
        self.steps = [self._step(first, last) for first, last in self._runs()]
        self.largest = max((step.sums * step.fan_in for step in self.steps), default=0)
        """Number of edges of the largest step."""
        self.leaf_parents, self.leaf_offsets = self._bags(
            self._parents, self._parent_start, np.arange(shape.num_leaves)
        )

    def _runs(self) -> list[tuple[int, int]]:
        plan, order = self._plan, self._plan.sum_order
        fan_in = np.diff(self._shape.edge_start)[order]
        keys = np.stack([plan.levels()[order], fan_in, plan._choice[order], plan._copies[order]])
        cuts = np.flatnonzero(np.any(keys[:, 1:] != keys[:, :-1], axis=0)) + 1
        bounds = [0, *cuts.tolist(), len(order)]
        return list(itertools.pairwise(bounds))

    def _step(self, first: int, last: int) -> Step:
        plan, shape = self._plan, self._shape
        sums = plan.sum_order[first:last]
        edges = spans(shape.edge_start, sums)
        position = int(plan.edge_position[edges[0]])
        factors, offsets = self._bags(self._rows, shape.factor_start, edges)
        parents, parent_offsets = self._bags(
            self._parents, self._parent_start, shape.num_leaves + np.arange(first, last)
        )
        return Step(
            rows=slice(shape.num_leaves + first, shape.num_leaves + last),
            edges=slice(position, position + len(edges)),
            sums=last - first,
            fan_in=len(edges) // (last - first),
            is_choice=bool(plan._choice[sums[0]]),
            copies=int(plan._copies[sums[0]]),
            factors=factors,
            offsets=offsets,
            parents=parents,
            parent_offsets=parent_offsets,
        )

    def _bags(self, values: Index, start: Index, bags: Index) -> tuple[Tensor, Tensor | None]:
        counts = start[bags + 1] - start[bags]
        offsets = None if np.all(counts == 1) else self._tensor(np.cumsum(counts) - counts)
        return self._tensor(values[spans(start, bags)]), offsets

    def _tensor(self, values: Index) -> Tensor:
        return torch.from_numpy(np.ascontiguousarray(values, dtype=np.int64)).to(self._device)
