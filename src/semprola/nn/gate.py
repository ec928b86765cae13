"""The gate: from a network's features to the parameters of a circuit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from semprola.distributions.gating import LinearLogits


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
        self.weight = nn.Parameter((2 * torch.rand(outputs, width) - 1) / width**0.5)
        start = noise * torch.randn(parameters, components)
        if bias is not None:
            start += bias[:, None].to(start.dtype)
        self.bias = nn.Parameter(torch.zeros(outputs))
        self.bias.data[: components * parameters] = start.reshape(-1)

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        """Parameters [*batch, components, parameters] and mixing logits [*batch, components] for features z."""
        batch_shape, features = z.shape[:-1], self._features(z)
        # the engine wants the batch last: multiplying from the left gives that layout without a transposition
        columns = torch.addmm(self.bias[:, None], self.weight, features.T)
        size = self.components * self.parameters_each
        shape = (self.parameters_each, self.components, math.prod(batch_shape))
        # the derivative of a split is a concatenation: not worth it for one part
        own, mixing = columns.split([size, self.components]) if self.components > 1 else (columns, columns[:0])
        parameters = own.view(shape).permute(2, 1, 0).reshape(*batch_shape, self.components, self.parameters_each)
        if self.components == 1:
            return parameters, None
        return parameters, mixing.T.reshape(*batch_shape, self.components)

    def linear(self, z: Tensor) -> tuple[LinearLogits, Tensor | None]:
        """The same without the last product, for whoever needs few of the parameters; and the mixing logits."""
        parts = self._features(z), self.weight, self.bias
        size = self.components * self.parameters_each
        # the product may be taken later, when derivatives are on again: whether there are any is decided now
        features, weight, bias = parts if torch.is_grad_enabled() else [part.detach() for part in parts]
        if self.components == 1:
            return LinearLogits(weight, bias, features, 1, z.shape[:-1]), None
        (matrix, of_mixing), (bias, start) = (t.split([size, self.components]) for t in (weight, bias))
        mixing = torch.addmm(start, features, of_mixing.T).reshape(*z.shape[:-1], self.components)
        return LinearLogits(matrix, bias, features, self.components, z.shape[:-1]), mixing

    def _features(self, z: Tensor) -> Tensor:
        """What the last layer sees [batch, width]."""
        if z.shape[-1:] != (self.in_features,):
            raise ValueError(f"expected features of shape [*batch, {self.in_features}], got {tuple(z.shape)}")
        flat: Tensor = self.hidden(z).reshape(math.prod(z.shape[:-1]), self.weight.shape[1])
        return flat


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
