"""A plan as the arrays that Triton kernels read, and which of its steps share a launch. Knows nothing of Triton."""

from __future__ import annotations

import os
from dataclasses import dataclass
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from semprola.engine.plan import Plan, Step

_TILE = 1024
"""Numbers that a program works on at once: four for each thread."""
WARPS = 8
"""Warps of a program."""
_WIDEST = 32
"""Columns of a tile at most, one line of the cache in float32; the rest of the tile is sums."""
_INTERPRETED = 2**15, 2048
"""The same where kernels are interpreted, which takes as long for a large tile as for a small one."""
_LAUNCH = 10
"""A launch takes about as long as this many loads that wait for each other: some 5 µs against 0.5 µs."""
_MOST_PROGRAMS = 2**16 - 1
"""Second dimension of a grid at most."""


@dataclass(frozen=True)
class Segment:
    """Steps of one launch: `first` to `last - 1` of the table, with `programs` programs for each block of columns."""

    first: int
    last: int
    programs: int


@dataclass(frozen=True)
class Layout:
    """The arrays of a plan on one device, in 32 bits.

    The table has seven numbers per step: first row, sums, first edge, fan-in, most factors of an edge, most parents of
    a sum, and 1 for choices. Its first step stands for the literals, which have no edges.
    """

    table: Tensor
    factor_start: Tensor
    factors: Tensor
    parent_start: Tensor
    parents: Tensor
    sums: tuple[int, ...]
    fan_in: tuple[int, ...]
    waits: tuple[int, ...]
    """For each step, how many loads wait for each other while a program works on one tile."""

    @staticmethod
    def of(plan: Plan, device: torch.device) -> Layout:
        """The layout of a plan; made once per device."""
        known = _layouts.setdefault(plan, {})
        if device not in known:
            known[device] = _layout(plan, device)
        return known[device]

    @property
    def num_steps(self) -> int:
        return len(self.sums)

    def segments(self, tile_sums: int, *, by_edges: bool = False) -> list[Segment]:
        """The launches of a pass over the sums, lowest first.

        A step with so many tiles that a program would take longer for them than a launch takes gets a launch of its
        own, with a program per tile; the others share one.
        """
        tiles = [-(-s * (f if by_edges else 1) // tile_sums) for s, f in zip(self.sums, self.fan_in, strict=True)]
        found: list[Segment] = []
        for step in range(1, self.num_steps):
            if self._is_wide(step, tiles[step]):
                found.append(Segment(step, step + 1, min(tiles[step], _MOST_PROGRAMS)))
            elif found and found[-1].programs == 1:
                found[-1] = Segment(found[-1].first, step + 1, 1)
            else:
                found.append(Segment(step, step + 1, 1))
        return found

    def segments_down(self, tile_sums: int) -> list[Segment]:
        """The launches of a pass from the root to the literals."""
        tiles = -(-self.sums[0] // tile_sums)
        above = self.segments(tile_sums)
        if self._is_wide(0, tiles) or above[0].programs > 1:
            return [*reversed(above), Segment(0, 1, min(tiles, _MOST_PROGRAMS))]
        return [*reversed(above[1:]), Segment(0, above[0].last, 1)]

    def _is_wide(self, step: int, tiles: int) -> bool:
        return (tiles - 1) * self.waits[step] > _LAUNCH


def tile_of(columns: int) -> tuple[int, int]:
    """Sums and columns of a tile, powers of two."""
    size, widest = _INTERPRETED if interpreted() else (_TILE, _WIDEST)
    width = min(widest, 1 << max(0, columns - 1).bit_length())
    return max(1, size // width), width


def interpreted() -> bool:
    """Whether kernels are interpreted on CPU tensors."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def _layout(plan: Plan, device: torch.device) -> Layout:
    steps = plan.on(device)
    by_edge = sorted(steps.steps, key=lambda step: step.edges.start)
    counts = [_sizes(step.factors, step.offsets, step.sums * step.fan_in) for step in by_edge]
    above = [_sizes(steps.leaf_parents, steps.leaf_offsets, plan.num_leaves)]
    above += [_sizes(step.parents, step.parent_offsets, step.sums) for step in steps.steps]
    most = {step.edges.start: int(c.max()) for step, c in zip(by_edge, counts, strict=True)}
    table = [[0, plan.num_leaves, 0, 0, 0, _largest(above[0]), 0]]
    table += [_described(step, most, over) for step, over in zip(steps.steps, above[1:], strict=True)]
    return Layout(
        table=torch.tensor(table, dtype=torch.int32, device=device),
        factor_start=_starts(counts, device),
        factors=torch.cat([step.factors for step in by_edge]).to(torch.int32),
        parent_start=_starts(above, device),
        parents=torch.cat([steps.leaf_parents, *(step.parents for step in steps.steps)]).to(torch.int32),
        sums=tuple(row[1] for row in table),
        fan_in=tuple(row[3] for row in table),
        waits=tuple(2 + fan_in * (1 + most) for _, _, _, fan_in, most, _, _ in table),
    )


def _described(step: Step, most: dict[int, int], above: Tensor) -> list[int]:
    place = [step.rows.start, step.sums, step.edges.start, step.fan_in]
    return [*place, most[step.edges.start], _largest(above), int(step.is_choice)]


def _sizes(values: Tensor, offsets: Tensor | None, bags: int) -> Tensor:
    if offsets is None:
        return torch.ones(bags, dtype=torch.int64)
    return torch.cat([offsets, offsets.new_tensor([len(values)])]).diff().cpu()


def _largest(sizes: Tensor) -> int:
    return int(sizes.max()) if len(sizes) else 0


def _starts(sizes: list[Tensor], device: torch.device) -> Tensor:
    ends = torch.cat([torch.zeros(1, dtype=torch.int64), *sizes]).cumsum(0)
    return ends.to(device=device, dtype=torch.int32)


_layouts: WeakKeyDictionary[Plan, dict[torch.device, Layout]] = WeakKeyDictionary()
