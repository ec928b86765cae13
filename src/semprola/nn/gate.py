"""The gate: from a network's features to the parameters of a circuit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn


class Gate(nn.Module):
    """A multi-layer perceptron whose output is one vector of parameters for each component of a mixture.

    Args:
        in_features: width of the features z.
        hidden: widths of hidden layers (ReLU); none for a linear gate.
        components: mixture components.
        parameters: parameters of a component.
        bias: where the parameters start [parameters], 0 by default.
        noise: standard deviation of what is added to it, to set components apart.
    """

    def __init__(
        self,
        in_features: int,
        hidden: Sequence[int],
        components: int,
        parameters: int,
        bias: Tensor | None = None,
        noise: float = 0.0,
    ) -> None:
        super().__init__()
        self.in_features, self.components, self.parameters_each = in_features, components, parameters
        layers: list[nn.Module] = []
        width = in_features
        for size in hidden:
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        self.hidden = nn.Sequential(*layers)
        outputs = components * parameters + (components if components > 1 else 0)
        self.output = _BatchLast(width, outputs)
        start = noise * torch.randn(parameters, components)
        if bias is not None:
            start += bias[:, None].to(start.dtype)
        with torch.no_grad():
            self.output.bias[: components * parameters] = start.reshape(-1)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """Parameters [*batch, components, parameters] and mixing logits [*batch, components] for features z."""
        if z.shape[-1:] != (self.in_features,):
            raise ValueError(f"expected features of shape [*batch, {self.in_features}], got {tuple(z.shape)}")
        batch_shape = z.shape[:-1]
        features = self.hidden(z)
        columns = self.output(features.reshape(math.prod(batch_shape), features.shape[-1])).T
        size = self.components * self.parameters_each
        # the derivative of a split is a concatenation: not worth it for one part
        own, mixing = columns.split([size, self.components]) if self.components > 1 else (columns, columns[:0])
        own = own.reshape(self.parameters_each, self.components, math.prod(batch_shape))
        parameters = own.permute(2, 1, 0).reshape(*batch_shape, self.components, self.parameters_each)
        if self.components == 1:
            return parameters, None
        return parameters, mixing.T.reshape(*batch_shape, self.components)


class _BatchLast(nn.Linear):
    """A linear layer from [batch, features] to [batch, outputs] whose result has the batch side by side in memory.

    That is the layout that the engine wants; multiplying from the left gives it without a transposition.
    """

    def reset_parameters(self) -> None:
        """Start like any linear layer, but with a bias of zero; a circuit may need no outputs at all."""
        with torch.no_grad():
            self.weight.uniform_(-1, 1).div_(self.in_features**0.5)
            self.bias.zero_()

    def forward(self, features: Tensor) -> Tensor:
        """[batch, outputs] from features [batch, in_features]."""
        return torch.addmm(self.bias[:, None], self.weight, features.T).T


def hidden_sizes(gate: Iterable[int] | int) -> tuple[int, ...]:
    """Widths of the gate's hidden layers, checked."""
    sizes = (gate,) if isinstance(gate, int) else tuple(gate)
    for size in sizes:
        positive(size, "a hidden size of the gate")
    return sizes


def positive(value: int, what: str) -> int:
    """A positive whole number, or a ValueError that says what it should have been."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ValueError(f"{what} must be a positive whole number, not {value!r}")
    return value
