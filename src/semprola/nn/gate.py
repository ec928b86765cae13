"""The gate: from a network's features to the parameters of a circuit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semprola.engine import watched

_MOST_WEIGHTS = 2**32
"""The most weights of a perceptron: 16 GiB in single precision."""


class Gate(nn.Module):
    """A multi-layer perceptron that ends in an `nn.Linear`: features z in, all parameters of a layer out.

    Args:
        in_features: width of the features z.
        out_features: width of the output; a layer's `num_gate_outputs`.
        hidden: widths of the hidden layers (ReLU); none for a linear gate.
        dropout: probability of dropout after each hidden layer.
        device: where the parameters live.
        dtype: type of the parameters.

    Example:
        >>> import torch, semprola as sp
        >>> sp.nn.Gate(4, 10, hidden=(8,), dropout=0.1)(torch.zeros(3, 4)).shape
        torch.Size([3, 10])
    """

    def __init__(
        self,
        in_features: int,
        out_features: int,
        hidden: Sequence[int] = (),
        *,
        dropout: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        check_size([in_features, *hidden, out_features])
        self.hidden = perceptron(in_features, hidden, dropout, device=device, dtype=dtype)
        self.output = ColumnLinear([in_features, *hidden][-1], out_features, device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        """Draw new parameters, as torch's own linear layers do."""
        for module in (*self.hidden, self.output):
            if isinstance(module, nn.Linear):
                module.reset_parameters()

    def forward(self, z: Tensor) -> Tensor:
        """Parameters [*batch, out_features] for features z [*batch, in_features]."""
        require_tensor(z, self.in_features)
        if z.shape[-1:] != (self.in_features,):
            raise ValueError(f"expected features of shape [*batch, {self.in_features}], got {tuple(z.shape)}")
        if not z.is_floating_point():
            raise TypeError(f"features must be floating point, not {z.dtype}: use z.float()")
        parameters: Tensor = self.output(self.hidden(z))
        return parameters


def perceptron(
    in_features: int,
    hidden: Sequence[int],
    dropout: float = 0.0,
    *,
    device: Any = None,
    dtype: torch.dtype | None = None,
) -> nn.Sequential:
    """The hidden layers of a perceptron: each linear, then ReLU, then dropout if there is any."""
    layers: list[nn.Module] = []
    for width, size in pairwise([in_features, *hidden]):
        layers += [nn.Linear(width, size, device=device, dtype=dtype), nn.ReLU()]
        layers += [nn.Dropout(dropout)] if dropout else []
    return nn.Sequential(*layers)


class ColumnLinear(nn.Linear):
    """An `nn.Linear` whose result has the engine's memory layout: one row per parameter, the batch last."""

    def reset_parameters(self) -> None:
        """Draw weights and bias as `nn.Linear` does; a constraint with a single model has none."""
        if self.out_features:
            super().reset_parameters()

    def forward(self, z: Tensor) -> Tensor:
        """[*batch, out_features] for z [*batch, in_features]."""
        if self.bias is None:
            return F.linear(z, self.weight)
        rows = z.reshape(math.prod(z.shape[:-1]), z.shape[-1])
        # multiplying from the left gives this layout without a copy
        columns = torch.addmm(self.bias[:, None], self.weight, rows.T)
        return columns.T.reshape(*z.shape[:-1], self.out_features)


def split_outputs(outputs: Tensor, components: int, parameters: int) -> tuple[Tensor, Tensor | None]:
    """Split a gate's outputs into parameters and mixing logits.

    Args:
        outputs: [*batch, parameters * components], plus one mixing logit per component if there are several; parameter
            w of component c is output w * components + c.

    Returns:
        parameters [*batch, components, parameters], and mixing logits [*batch, components], or None for one component.
    """
    if components == 1:
        return outputs.unsqueeze(-2), None
    own, mixing = split_columns(outputs, (components * parameters, components))
    if parameters == 0:  # exported programs cannot unflatten nothing
        return mixing.unsqueeze(-1)[..., :0], mixing
    return own.unflatten(-1, (parameters, components)).transpose(-1, -2), mixing


def split_columns(outputs: Tensor, widths: Sequence[int]) -> tuple[Tensor, ...]:
    """Parts [*batch, width] of a gate's outputs [*batch, outputs].

    The derivative of a split is a concatenation, which is much faster along the outermost dimension in memory; in the
    layer's own gate, that is the outputs.
    """
    *batch_shape, width = outputs.shape
    parts = outputs.reshape(math.prod(batch_shape), width).T.split(list(widths))
    return tuple(part.T.reshape(*batch_shape, len(part)) for part in parts)


def hidden_sizes(gate: Iterable[int] | int, expected: str = "a width or a list of widths") -> tuple[int, ...]:
    """Widths of the gate's hidden layers, checked; `expected` says in errors what `gate=` takes."""
    if isinstance(gate, str | bytes) or not isinstance(gate, int | Iterable):
        raise TypeError(f"gate must be {expected}, not {gate!r:.40}")
    sizes = (gate,) if isinstance(gate, int) else tuple(gate)
    for size in sizes:
        positive(size, "a hidden size of the gate")
    return sizes


def check_size(widths: Sequence[int]) -> None:
    """Refuse a perceptron that no memory holds; torch would try, or end in an error about an allocator."""
    wanted = sum(a * b for a, b in pairwise(widths))
    if wanted > _MOST_WEIGHTS:
        shown = " × ".join(f"{width:,}" if width < 10**15 else "…" for width in widths)
        raise ValueError(
            f"a network of widths {shown} has too many weights: use narrower hidden layers or fewer components"
        )


def last_linear(gate: nn.Module, outputs: int) -> nn.Linear | None:
    """The last linear layer of a gate, if the gate ends in one that has a bias and this many outputs."""
    last = None
    for module in gate.modules():
        if next(module.children(), None) is None:
            last = module
    fits = isinstance(last, nn.Linear) and last.bias is not None and last.out_features == outputs
    return last if fits and isinstance(last, nn.Linear) else None


def shares_memory(gate: nn.Module, z: Tensor, outputs: Tensor) -> bool:
    """Whether a gate's output for features z shares memory with z or the gate's parameters, as with `nn.Identity`."""
    if torch.compiler.is_compiling():  # a compiler takes care of later writes itself
        return False
    if watched(z, outputs):
        return True
    own = outputs.untyped_storage().data_ptr()
    others = (z, *gate.parameters(), *gate.buffers())
    return any(t.layout == torch.strided and t.untyped_storage().data_ptr() == own for t in others)


def require_tensor(z: Any, width: int) -> None:
    """Refuse features z [*batch, width] that are no tensor."""
    if not isinstance(z, Tensor):
        raise TypeError(
            f"z must be a tensor of features [*batch, {width}], not {type(z).__name__}: "
            "use torch.as_tensor(z, dtype=torch.float32)"
        )


def positive(value: int, what: str) -> int:
    """The value, if it is a positive whole number; otherwise raises a ValueError that says what must be one."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} must be a positive whole number, not {value!r}")
    return value
