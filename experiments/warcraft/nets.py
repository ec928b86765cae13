"""Networks that look at a map: the paper's ResNet-18, and two that keep the grid of cells.

Each takes pictures flattened to rows, as a layer's gate does, and gives `outputs` numbers per row: the scores of all
edges for every component, then one mixing logit per component if there are several.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from experiments.warcraft.paths import edge_ends
from experiments.warcraft.terrain import TILE

NETS = ("resnet18", "grid", "costs")


class _Pictures(nn.Module):
    """Pictures [batch, 3, pixels, pixels], centred and scaled, from rows of bytes."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.pixels = side * TILE

    def forward(self, z: Tensor) -> Tensor:
        images = z.reshape(-1, self.pixels, self.pixels, 3).permute(0, 3, 1, 2)
        return (images.to(torch.get_default_dtype()) - 88.0) / 40.0


class ResNet18(nn.Module):
    """ResNet-18 (He et al., 2016) with the usual stem, average pooling over the last map of 3 × 3, and a linear head.

    Args:
        side: cells along a side.
        outputs: numbers per row.
    """

    def __init__(self, side: int, outputs: int) -> None:
        super().__init__()
        layers: list[nn.Module] = [
            _Pictures(side),
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1),
        ]  # fmt: skip
        width = 64
        for stage, channels in enumerate((64, 128, 256, 512)):
            layers += [Residual(width, channels, 1 if stage == 0 else 2), Residual(channels, channels)]
            width = channels
        layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, outputs)]
        self.layers = nn.Sequential(*layers)

    def forward(self, z: Tensor) -> Tensor:
        """Scores [*batch, outputs] for flat pictures z [*batch, pixels * pixels * 3]."""
        scores: Tensor = self.layers(z)
        return scores.reshape(*z.shape[:-1], -1)


class Residual(nn.Module):
    """Two convolutions of 3 × 3 with batch normalisation beside a short cut."""

    def __init__(self, width: int, channels: int, stride: int = 1) -> None:
        super().__init__()
        self.inner = nn.Sequential(
            nn.Conv2d(width, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels),
        )  # fmt: skip
        self.short_cut: nn.Module = nn.Identity()
        if stride != 1 or width != channels:
            self.short_cut = nn.Sequential(nn.Conv2d(width, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x: Tensor) -> Tensor:
        """The sum of both ways, rectified."""
        return torch.relu(self.inner(x) + self.short_cut(x))


class Trunk(nn.Module):
    """One vector per cell [batch, channels, side, side]: a patch per cell, then residual blocks on the grid."""

    def __init__(self, side: int, channels: int, blocks: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.channels = channels
        self.layers = nn.Sequential(
            _Pictures(side),
            nn.Conv2d(3, channels, TILE, TILE, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
            *(Residual(channels, channels) for _ in range(blocks)),
            nn.Dropout2d(dropout),
        )  # fmt: skip

    def forward(self, z: Tensor) -> Tensor:
        """Features of the cells of flat pictures."""
        features: Tensor = self.layers(z)
        return features


class GridNet(nn.Module):
    """Every edge is scored from the features of its two cells.

    Args:
        side: cells along a side.
        components: mixture components.
        channels: features per cell.
        blocks: residual blocks of the trunk.
        dropout: share of features left out in training.
    """

    order: Tensor

    def __init__(
        self, side: int, components: int = 1, channels: int = 32, blocks: int = 6, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.side, self.components = side, components
        self.trunk = Trunk(side, channels, blocks, dropout)
        self.across, self.down = (
            nn.Sequential(nn.Conv2d(channels, channels, size), nn.ReLU(), nn.Conv2d(channels, components, 1))
            for size in ((1, 2), (2, 1))
        )
        self.mixing = nn.Linear(channels, components) if components > 1 else None
        self.register_buffer("order", _edge_order(side), persistent=False)

    def forward(self, z: Tensor) -> Tensor:
        """Scores [*batch, components * edges (+ components)], component by component for each edge."""
        features = self.trunk(z)
        scores = torch.cat([self.across(features).flatten(2), self.down(features).flatten(2)], 2)[:, :, self.order]
        outputs = [scores.transpose(1, 2).flatten(1)]
        if self.mixing is not None:
            outputs.append(self.mixing(features.mean((2, 3))))
        return torch.cat(outputs, 1).reshape(*z.shape[:-1], -1)


class FlatNet(nn.Module):
    """Outputs that belong to no edge: eight numbers per cell of the trunk, then one linear layer over all cells.

    Args:
        side: cells along a side.
        outputs: numbers per row.
        channels: features per cell.
        blocks: residual blocks of the trunk.
        dropout: share of features left out in training.
    """

    def __init__(self, side: int, outputs: int, channels: int = 32, blocks: int = 6, dropout: float = 0.0) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            Trunk(side, channels, blocks, dropout), nn.Conv2d(channels, 8, 1), nn.ReLU(), nn.Flatten(),
            nn.Linear(8 * side * side, outputs),
        )  # fmt: skip

    def forward(self, z: Tensor) -> Tensor:
        """Outputs [*batch, outputs] for flat pictures."""
        outputs: Tensor = self.layers(z)
        return outputs.reshape(*z.shape[:-1], -1)


class CostNet(nn.Module):
    """Predicts one cost per cell; an edge scores minus half the sum of its cells' costs, so p(path) ∝ exp(−cost).

    Args:
        side: cells along a side.
        channels: features per cell.
        biased: whether each edge has a learnt bias, the same for all maps, which can learn a tie rule.
    """

    ends: Tensor

    def __init__(self, side: int, channels: int = 32, biased: bool = True) -> None:
        super().__init__()
        self.side = side
        self.trunk = Trunk(side, channels, 0)
        self.cost = nn.Conv2d(channels, 1, 1)
        self.bias = nn.Parameter(torch.zeros(len(edge_ends(side)))) if biased else None
        self.register_buffer("ends", torch.from_numpy(edge_ends(side)), persistent=False)

    def costs(self, z: Tensor) -> Tensor:
        """Predicted costs of the cells [batch, side * side]."""
        costs: Tensor = self.cost(self.trunk(z)).flatten(1)
        return costs

    def forward(self, z: Tensor) -> Tensor:
        """Scores of the edges [*batch, edges]."""
        costs = self.costs(z)
        scores = -0.5 * (costs[:, self.ends[:, 0]] + costs[:, self.ends[:, 1]])
        if self.bias is not None:
            scores = scores + self.bias
        return scores.reshape(*z.shape[:-1], -1)


def _edge_order(side: int) -> Tensor:
    """Where each edge of the graph stands in: all edges across, row by row, then all edges down."""
    first, second = edge_ends(side).T
    row, column = divmod(first, side)
    across = second == first + 1
    return torch.from_numpy((row * (side - 1) + column) * across + (side * (side - 1) + first) * ~across)
