"""A first module that scales inputs to mean 0 and standard deviation 1."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class Standardize(nn.Module):
    """Subtracts a mean and divides by a scale; both are measured on the training rows and saved with the network.

    Example:
        >>> layer = Standardize(2).measure(torch.tensor([[1.0, 5.0], [3.0, 5.0]]))
        >>> layer(torch.tensor([[3.0, 6.0]]))
        tensor([[1., 1.]])
    """

    mean: Tensor
    scale: Tensor

    def __init__(self, features: int) -> None:
        super().__init__()
        self.features = features
        self.register_buffer("mean", torch.zeros(features))
        self.register_buffer("scale", torch.ones(features))

    def measure(self, x: Tensor, weight: Tensor | None = None) -> Standardize:
        """Measure mean and scale on rows x [rows, features], optionally weighted; constant features keep scale 1."""
        rows = x.double()
        share = torch.full((len(x), 1), 1 / len(x)).double() if weight is None else weight.double()[:, None]
        share = share / share.sum()
        mean = (rows * share).sum(0)
        scale = ((rows - mean).square() * share).sum(0).sqrt()
        tiny = 1e-12 * rows.abs().amax(0).clamp_min(1e-30)
        self.mean.copy_(mean)
        self.scale.copy_(torch.where(scale > tiny, scale, 1.0))
        return self

    def forward(self, x: Tensor) -> Tensor:
        """[*batch, features]"""
        return (x - self.mean) / self.scale

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return str(self.features)
