"""Evaluates columns in chunks, so that the torch engine keeps within its memory budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from semprola.engine.plan import Plan

_DEFAULT = 2**30
_CACHED = 2**26
"""On CPU, chunks of about this many bytes are faster than larger ones, which do not fit into the caches."""
_WIDE = 128
"""Chunks are not made narrower than this many columns for the sake of the caches."""


def set_memory(size: int | None) -> None:
    """Choose how much memory a pass of the torch engine may use besides its inputs and results, for the whole process.

    A batch that needs more is evaluated in chunks of one or more columns; the results are the same, since columns do
    not depend on each other. The native engine needs little memory for any batch.

    Args:
        size: bytes; None for the default of one GiB.

    Raises:
        ValueError: if the size is not a positive whole number.

    Example:
        >>> from semprola.engine import get_memory, set_memory
        >>> set_memory(64 * 2**20)
        >>> get_memory()
        67108864
        >>> set_memory(None)
    """
    if size is not None and (isinstance(size, bool) or not isinstance(size, int) or size < 1):
        raise ValueError(f"the memory must be a positive whole number of bytes, not {size!r}")
    _chosen[0] = _DEFAULT if size is None else size


def get_memory() -> int:
    """The choice made by :func:`set_memory`, in bytes."""
    return _chosen[0]


def columns_at_once(plan: Plan, like: Tensor) -> int:
    """How many columns of this type a pass over a plan may evaluate together."""
    # values, shares, and the temporary tensors of the largest step
    numbers = plan.num_rows + 2 * plan.num_edges + 4 * plan.on(like.device).largest
    cost = max(1, numbers * like.element_size())
    allowed = max(1, _chosen[0] // cost)
    return min(allowed, max(_WIDE, _CACHED // cost)) if like.device.type == "cpu" else allowed


@torch.no_grad()
def by_columns(plan: Plan, function: Callable[..., Any], *tensors: Tensor | None, copies: int = 1) -> Any:
    """Call a function of tensors [..., columns] on chunks of columns that fit the budget, without derivatives.

    Args:
        function: returns a tensor, or a tuple of tensors, [..., columns].
        copies: how many columns of the plan the function evaluates for each column of the tensors.
    """
    like = next(t for t in tensors if t is not None)
    columns, step = like.shape[-1], max(1, columns_at_once(plan, like) // max(1, copies))
    if columns <= step:
        return function(*tensors)
    results: list[Tensor] = []
    alone = False
    for first in range(0, columns, step):
        part = function(*(None if t is None else t[..., first : first + step] for t in tensors))
        alone = isinstance(part, Tensor)
        pieces = (part,) if alone else part
        if not results:
            results = [torch.empty((*p.shape[:-1], columns), dtype=p.dtype, device=p.device) for p in pieces]
        for result, piece in zip(results, pieces, strict=True):
            result[..., first : first + step] = piece
    return results[0] if alone else tuple(results)


_chosen = [_DEFAULT]
