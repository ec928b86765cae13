"""Checks of the arguments that users pass to a distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.circuit import Circuit
from semprola.distributions.names import as_rows
from semprola.engine import independent, is_binary, watched
from semprola.engine.torch_internals import is_traced, unwrapped
from semprola.errors import LabelError


def rows_named(wrong: Tensor, batch_shape: Sequence[int]) -> str:
    """ " in rows 3, 5, …" for a flat bool tensor; nothing for a single unbatched row."""
    if not batch_shape:
        return ""
    rows = [tuple(int(i) for i in row) for row in torch.nonzero(wrong.reshape(*batch_shape)).tolist()]
    shown = ", ".join(str(row[0]) if len(row) == 1 else str(row) for row in rows[:5])
    return f" in row{'s' if len(rows) > 1 else ''} {shown}{', …' if len(rows) > 5 else ''}"


def given_rows(circuit: Circuit, given: Any, batch_shape: Sequence[int], like: Tensor) -> Tensor | None:
    """Observed values [variables, batch] (NaN for the labels) from given inputs [*batch, given]."""
    if not circuit.given:
        if given is not None:
            raise LabelError("the constraint has no inputs: leave given= out, or compile it with given=[…]")
        return None
    if given is None:
        raise LabelError(f"the constraint has inputs ({', '.join(circuit.given[:4])}): pass given=")
    expected = (*batch_shape, len(circuit.given))
    rows = as_rows(given, circuit.given, "given", like)
    try:
        rows = torch.as_tensor(rows, device=like.device)
    except (TypeError, ValueError, RuntimeError):
        kind = type(given).__name__
        raise LabelError(f"given must be numbers of shape {expected}, or values by name, not {kind}") from None
    if rows.dim() == 0 or rows.shape[-1] != len(circuit.given):
        raise LabelError(
            f"given has shape {tuple(rows.shape)}, expected {expected}: one column for each given variable"
        )
    _check_real(rows, "given")
    try:
        rows = rows.to(like.dtype).expand(expected)
    except RuntimeError:
        raise LabelError(f"given has shape {tuple(rows.shape)}, expected {expected}") from None
    if not torch.compiler.is_compiling():
        check_binary(rows, "given")
    labels = like.new_full((circuit.num_labels, rows[..., 0].numel()), float("nan"))
    return torch.cat([labels, rows.reshape(labels.shape[1], len(circuit.given)).T])


def check_labels(y: Tensor) -> None:
    """Refuse label vectors that hold anything but zeros and ones."""
    check_binary(y, "y", if_nan=": log_marginal takes NaN where nothing is observed")


def check_binary(value: Tensor, what: str, if_nan: str = "") -> None:
    """Refuse anything but zeros and ones; `if_nan` says what to try with NaN."""
    _check_real(value, what)
    if is_hidden(value):
        return
    # a tensor made inside torch.func.grad is a wrapper without memory of its own
    inner = unwrapped(value)
    value = value if inner is None else inner
    if value.dtype != torch.bool and not is_binary(value):
        hint = f", but has NaN{if_nan}" if value.is_floating_point() and bool(value.isnan().any()) else ""
        raise ValueError(f"{what} must contain only 0 and 1{hint}")


def check_evidence(value: Tensor) -> None:
    """Refuse anything but zeros, ones and NaN."""
    if not isinstance(value, Tensor):
        raise TypeError(f"evidence must be a tensor, a dict or a data frame, not {type(value).__name__}")
    _check_real(value, "evidence")
    if is_hidden(value):
        return
    if value.dtype != torch.bool and not is_binary(torch.nan_to_num(value)):
        raise ValueError("evidence must contain only 0, 1, and NaN where nothing is observed")


def check_finite(value: Tensor, batch_shape: Sequence[int], what: str) -> None:
    """Refuse numbers that are NaN or infinite, naming the rows of [*batch, …] that have them."""
    if is_hidden(value):
        return
    if value.is_meta:
        raise ValueError(f"{what} on the meta device have no values: move the layer and its features to a real device")
    value = value.detach()
    # a sum takes an eighth of the time of checking every number; it may overflow although all are finite
    if math.isfinite(value.sum()):
        return
    finite = torch.isfinite(value)
    if bool(finite.all()):
        return
    wrong = ~finite.reshape(math.prod(batch_shape), -1).all(1)
    raise ValueError(f"{what} must be finite: found NaN or infinite values{rows_named(wrong, batch_shape)}")


def flat_rows(value: Tensor, labels: int, batch_shape: torch.Size, like: Tensor) -> tuple[Tensor, torch.Size]:
    """[labels, samples, batch] from [*sample, *batch, labels], and the shape [*sample, *batch]."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"expected a tensor of shape [*batch, {labels}], not {type(value).__name__}: use torch.as_tensor"
        )
    _check_real(value, f"a tensor of {labels} labels")
    if value.dim() == 0 or value.shape[-1] != labels:
        raise ValueError(f"expected rows of {labels} labels, got a tensor of shape {tuple(value.shape)}")
    shape, samples, batch = flat_sizes(value.shape, batch_shape)
    rows = value.to(like).expand(*shape, labels)
    return rows.reshape(samples, batch, labels).permute(2, 0, 1), shape


def flat_sizes(value_shape: torch.Size, batch_shape: torch.Size) -> tuple[torch.Size, int, int]:
    """The shape [*sample, *batch] of label vectors [*sample, *batch, labels], and its numbers of samples and rows."""
    shape, labels = batch_shape, value_shape[-1]
    if value_shape[:-1] != batch_shape:
        try:
            shape = torch.broadcast_shapes(value_shape[:-1], batch_shape)
        except RuntimeError:
            raise ValueError(
                f"a tensor of shape {tuple(value_shape)} does not fit batch {tuple(batch_shape)} of {labels} labels"
            ) from None
    if shape[len(shape) - len(batch_shape) :] != batch_shape:
        if math.prod(batch_shape) != 1:
            raise ValueError(
                f"a tensor of shape {tuple(value_shape)} has more rows than batch {tuple(batch_shape)} of {labels} "
                "labels: repeat the features, or put the extra rows into dimensions before the batch"
            )
        return shape, math.prod(shape), 1
    # not numel(): math.prod keeps sizes symbolic while a network is exported
    return shape, math.prod(shape[: len(shape) - len(batch_shape)]), math.prod(batch_shape)


def common_batch(batch_shapes: Sequence[torch.Size], what: str) -> torch.Size:
    """The shape that batches broadcast to; `what` is the name of the operation, for errors."""
    try:
        shape: torch.Size = torch.broadcast_shapes(*batch_shapes)
    except RuntimeError:
        shown = " and ".join(str(tuple(shape)) for shape in dict.fromkeys(batch_shapes))
        hint = "use the same number of rows, or one row"
        raise ValueError(f"{what} needs batches that broadcast, not {shown}: {hint}") from None
    return shape


def is_hidden(value: Tensor) -> bool:
    """Whether a tensor's values cannot be inspected, because a program is being traced or mapped over a batch."""
    return torch.compiler.is_compiling() or is_traced() or unwrapped(value) is None


def with_components(logits: Tensor, mixing_logits: Tensor | None) -> Tensor:
    """Logits with a dimension for components: [*batch, components, parameters].

    Without mixing logits there is one component, and its dimension may be left out. The second-to-last dimension is
    the component's if it has size 1, as in a gate's output, and part of the batch otherwise. A batch of exactly one
    row, [1, parameters], is therefore read as one component without a batch: write [1, 1, parameters] instead, or use
    :func:`semprola.constrain`, whose logits never have a dimension for components.

    Args:
        logits: [*batch, components, parameters], or [*batch, parameters] for one component.

    Example:
        >>> import torch
        >>> with_components(torch.zeros(7, 3), None).shape
        torch.Size([7, 1, 3])
        >>> with_components(torch.zeros(7, 2, 3), torch.zeros(7, 2)).shape
        torch.Size([7, 2, 3])
    """
    if mixing_logits is None and (logits.dim() == 1 or logits.shape[-2] != 1):
        return logits.unsqueeze(-2)
    return logits


def flat_columns(logits: Tensor) -> Tensor:
    """Engine columns [parameters, components * batch] from gate outputs [*batch, components, parameters]."""
    *batch_shape, components, parameters = logits.shape
    check_finite(logits, batch_shape, "logits")
    rows = _upcast(logits).reshape(math.prod(batch_shape), components, parameters)
    return rows.permute(2, 1, 0).flatten(1)


def rows_as_columns(logits: Tensor) -> tuple[Tensor, float | None]:
    """Engine columns [parameters, batch] from the logits of one component [*batch, parameters].

    Returns:
        the columns, and the largest norm of one of them, if their values can be seen.
    """
    rows = _upcast(logits)
    if rows.dim() != 2:
        rows = rows.reshape(math.prod(logits.shape[:-1]), logits.shape[-1])
    size = None
    if not (watched(rows) or rows.is_meta):
        size = independent.largest_norm(rows)
    if size is None or not math.isfinite(size):
        check_finite(logits, logits.shape[:-1], "logits")
    return rows.T, size


def normalized_mixing(logits: Tensor | None, components: int, batch_shape: Sequence[int], like: Tensor) -> Tensor:
    """Log-weights of the components [components, batch] from logits [*batch, components]."""
    if logits is None:
        if components > 1:
            raise ValueError(f"a mixture of {components} components needs mixing logits [*batch, {components}]")
        return like.new_zeros((1, like.shape[1]))
    if logits.shape != (*batch_shape, components):
        raise ValueError(f"mixing logits must be {(*batch_shape, components)}, not {tuple(logits.shape)}")
    check_finite(logits, batch_shape, "mixing logits")
    rows = _upcast(logits).reshape(math.prod(batch_shape), components)
    return torch.log_softmax(rows.T.to(like.dtype), 0)


def _check_real(value: Tensor, what: str) -> None:
    if value.is_complex():
        raise TypeError(f"{what} must contain real numbers, not {value.dtype}")


def _upcast(logits: Tensor) -> Tensor:
    """Half-precision gate outputs are upcast to float32."""
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point, not {logits.dtype}")
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
