"""Checks of the arguments that users pass to a distribution over sequences, and their flat form."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.arguments import is_hidden, rows_named
from semprola.errors import LabelError


def lengths_of(lengths: Any, mask: Any, batch_shape: torch.Size, positions: int, device: torch.device) -> Tensor | None:
    """The lengths of the sequences [*batch], from lengths or a mask; None if all have the full length."""
    if lengths is None and mask is None:
        return None
    if lengths is not None and mask is not None:
        raise ValueError("lengths and mask are two ways to say the same: pass only one of them")
    checked = _from_lengths(lengths, batch_shape, device) if mask is None else _from_mask(mask, batch_shape, positions)
    checked = checked.to(device)
    if is_hidden(checked):
        return checked
    if not checked.numel():
        return None
    least, most = (int(limit) for limit in torch.aminmax(checked))
    if least < 1 or most > positions:
        wrong = (checked < 1) | (checked > positions)
        where = rows_named(wrong.reshape(-1), batch_shape)
        raise ValueError(f"sequences must have 1 to {positions} tags, not {least if least < 1 else most}{where}")
    return None if least == positions else checked


def tag_rows(value: Any, tags: int, positions: int, batch_shape: torch.Size) -> tuple[Tensor, torch.Size]:
    """Whole numbers [positions, samples, batch] from tags [*sample, *batch, positions], and [*sample, *batch]."""
    rows, shape = flat_positions(value, 1, (positions,), batch_shape, f"tags [*batch, {positions}]")
    if rows.is_floating_point():
        rows = rows.nan_to_num(-1.0)
        if not is_hidden(rows) and not bool((rows == rows.round()).all()):
            raise ValueError(f"tags must be whole numbers from 0 to {tags - 1}")
    return rows.to(torch.int64), shape


def check_tags(y: Tensor, tags: int, active: Tensor | None, shape: torch.Size, least: int) -> None:
    """Raise an error that names the rows, if numbers [positions, samples, batch] within the sequences are not tags."""
    if is_hidden(y) or not y.numel():
        return
    low, high = torch.aminmax(y)
    if int(low) >= least and int(high) < tags:
        return
    wrong = (y < least) | (y >= tags)
    if active is not None:
        wrong &= active[:, None]
    if not bool(wrong.any()):
        return
    value = int(y[wrong][0])
    hint = " (if -1 means a tag that is not observed, use log_marginal)" if value == -1 else ""
    where = rows_named(wrong.any(0).reshape(-1), shape)
    raise ValueError(f"tags must be from 0 to {tags - 1}, not {value}{where}{hint}")


def allowed_tags(
    evidence: Any, tags: Sequence[str], positions: int, batch_shape: torch.Size, active: Tensor | None, like: Tensor
) -> tuple[Tensor, torch.Size]:
    """Which tags the evidence allows: bool [positions, tags, samples, batch], and the shape [*sample, *batch].

    Args:
        evidence: tags as integers, -1 or NaN where not observed [*sample, *batch, positions]; bool [*sample, *batch,
            positions, tags], true for tags that are possible; or a dict from positions to a tag or a list of tags.
        active: positions within their sequence [positions, batch]; evidence at other positions is ignored.
    """
    count = len(tags)
    if isinstance(evidence, Mapping):
        allowed = _by_position(evidence, tags, positions).to(like.device)
        evidence = allowed.expand(*batch_shape, positions, count)
    if isinstance(evidence, Tensor) and evidence.dtype == torch.bool:
        what = f"bool evidence [*batch, {positions}, {count}]"
        allowed, shape = flat_positions(evidence, 2, (positions, count), batch_shape, what)
    else:
        y, shape = tag_rows(evidence, count, positions, batch_shape)
        check_tags(y, count, active, shape, least=-1)
        numbers = torch.arange(count, device=y.device)[None, :, None, None]
        allowed = (y[:, None] == numbers) | (y[:, None] == -1)
    allowed = allowed.to(like.device)
    return (allowed if active is None else allowed | ~active[:, None, None]), shape


def flat_positions(
    value: Any, inner: int, sizes: tuple[int, ...], batch_shape: torch.Size, what: str
) -> tuple[Tensor, torch.Size]:
    """[*sizes, samples, batch] from [*sample, *batch, *sizes], and the shape [*sample, *batch]."""
    # the usual case first: a batch of the right shape needs only a view
    if isinstance(value, Tensor) and value.shape == (*batch_shape, *sizes) and not value.is_complex():
        rows = value.reshape(1, math.prod(batch_shape), *sizes)
        return rows.permute(*range(2, 2 + inner), 0, 1), batch_shape
    if not isinstance(value, Tensor):
        raise TypeError(f"expected a tensor of {what}, not {type(value).__name__}")
    if value.is_complex():
        raise TypeError(f"expected {what}, not {value.dtype}")
    if value.dim() < inner or tuple(value.shape[value.dim() - inner :]) != sizes:
        raise ValueError(f"expected {what}, got a tensor of shape {tuple(value.shape)}")
    outer = value.shape[: value.dim() - inner]
    try:
        shape = torch.broadcast_shapes(outer, batch_shape)
    except RuntimeError:
        raise ValueError(f"{what} of shape {tuple(value.shape)} do not fit batch {tuple(batch_shape)}") from None
    if shape[len(shape) - len(batch_shape) :] != batch_shape:
        raise ValueError(
            f"{what} of shape {tuple(value.shape)} have more rows than batch {tuple(batch_shape)}: "
            "put the extra rows into dimensions before the batch"
        )
    # not numel(): math.prod keeps sizes symbolic while a network is exported
    samples = math.prod(shape[: len(shape) - len(batch_shape)])
    rows = value.expand(*shape, *sizes).reshape(samples, math.prod(batch_shape), *sizes)
    return rows.permute(*range(2, 2 + inner), 0, 1), shape


def _from_lengths(lengths: Any, batch_shape: torch.Size, device: torch.device) -> Tensor:
    try:
        value = torch.as_tensor(lengths, device=device)
    except (TypeError, ValueError, RuntimeError):
        raise TypeError(f"lengths must be whole numbers [*batch], not {type(lengths).__name__}") from None
    if value.is_floating_point() or value.is_complex() or value.dtype == torch.bool:
        raise TypeError(f"lengths must be whole numbers, not {value.dtype}")
    try:
        return value.to(torch.int64).expand(batch_shape).clone()
    except RuntimeError:
        raise ValueError(f"lengths of shape {tuple(value.shape)} do not fit batch {tuple(batch_shape)}") from None


def _from_mask(mask: Any, batch_shape: torch.Size, positions: int) -> Tensor:
    value = torch.as_tensor(mask)
    expected = (*batch_shape, positions)
    if tuple(value.shape) != expected:
        raise ValueError(f"a mask must be {expected}, not {tuple(value.shape)}")
    if value.dtype != torch.bool:
        if not is_hidden(value) and not bool(((value == 0) | (value == 1)).all()):
            raise ValueError("a mask must contain true and false, or 1 and 0")
        value = value != 0
    lengths = value.sum(-1)
    if not is_hidden(value):
        expected_mask = torch.arange(positions, device=value.device) < lengths.unsqueeze(-1)
        if not torch.equal(expected_mask, value):
            holes = (expected_mask != value).any(-1).reshape(-1)
            where = rows_named(holes, batch_shape)
            raise ValueError(f"a mask must be true up to the last tag of a sequence and false after it{where}")
    return lengths


def _by_position(evidence: Mapping[Any, Any], tags: Sequence[str], positions: int) -> Tensor:
    allowed = torch.ones(positions, len(tags), dtype=torch.bool)
    for position, said in evidence.items():
        if isinstance(position, bool) or not isinstance(position, int) or not 0 <= position < positions:
            raise LabelError(f"evidence names position {position!r}: positions are 0 to {positions - 1}")
        names = [said] if isinstance(said, str | int) else list(said)
        allowed[position] = False
        for name in names:
            if isinstance(name, str) and name in tags:
                allowed[position, tags.index(name)] = True
            elif isinstance(name, int) and not isinstance(name, bool) and 0 <= name < len(tags):
                allowed[position, name] = True
            else:
                shown = ", ".join(tags[:6]) + (", …" if len(tags) > 6 else "")
                raise LabelError(f"evidence names {name!r}, which is not a tag: the tags are {shown}")
    return allowed
