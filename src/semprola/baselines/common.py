"""What the baselines share: the network in front of them, and checks of what they are given."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import torch
from torch import Tensor, nn

from semprola.nn.gate import hidden_sizes, positive


class ScoringLayer(nn.Module):
    """A layer that starts with a perceptron from features to scores.

    Args:
        in_features: width of the features z.
        gate: widths of hidden layers (ReLU).
        outputs: number of scores.
    """

    def __init__(self, in_features: int, gate: Iterable[int] | int, outputs: int) -> None:
        super().__init__()
        self.in_features = width = positive(in_features, "in_features")
        layers: list[nn.Module] = []
        for size in hidden_sizes(gate):
            layers += [nn.Linear(width, size), nn.ReLU()]
            width = size
        self.gate = nn.Sequential(*layers, nn.Linear(width, outputs))

    def scores(self, z: Tensor) -> Tensor:
        """Scores [*batch, outputs] of features z [*batch, in_features], in float32 at least."""
        if z.shape[-1:] != (self.in_features,):
            raise ValueError(f"expected features of shape [*batch, {self.in_features}], got {tuple(z.shape)}")
        return upcast(self.gate(z))


def upcast(values: Tensor) -> Tensor:
    """Half-precision values as float32."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def binary(y: Tensor, shape: Sequence[int]) -> Tensor:
    """Label vectors as bools.

    Raises:
        ValueError: y does not end in this shape, or holds something other than 0 and 1.
    """
    if y.dim() < len(shape) or tuple(y.shape[y.dim() - len(shape) :]) != tuple(shape):
        raise ValueError(f"expected y of shape {tuple(shape)}, got {tuple(y.shape)}")
    on = y > 0.5
    if not bool((on == y).all()):
        raise ValueError("y must hold 0 and 1 only")
    return on


def label_names(labels: int | Iterable[str]) -> tuple[str, ...]:
    """Names of the columns: as given, or "1", "2", … for a number of labels."""
    if isinstance(labels, int):
        return tuple(str(number + 1) for number in range(positive(labels, "labels")))
    return tuple(labels)
