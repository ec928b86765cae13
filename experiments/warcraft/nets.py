"""Networks that look at a map: the paper's ResNet-18, and two that keep the grid of cells.

Each takes pictures flattened to rows, as a layer's gate does, and gives `outputs` numbers per row: the scores of all
edges for every component, then one mixing logit per component if there are several.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from experiments.warcraft.paths import edge_ends
from experiments.warcraft.terrain import TILE
from experiments.warcraft.views import VIEWS

NETS = ("resnet18", "grid", "costs")


class _Pictures(nn.Module):
    """Pictures [batch, 3, pixels, pixels], centred and scaled, from rows of bytes."""

    def __init__(self, side: int) -> None:
        super().__init__()
        self.pixels = side * TILE

    def forward(self, z: Tensor) -> Tensor:
        images = z[..., : 3 * self.pixels**2].reshape(-1, self.pixels, self.pixels, 3).permute(0, 3, 1, 2)
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
    """One vector per cell [batch, channels, side, side]: what its tile shows, then residual blocks on the grid.

    Args:
        side: cells along a side.
        channels: features per cell.
        blocks: residual blocks.
        views: whether rows end with the number of their view (see `experiments.warcraft.views`).
    """

    def __init__(self, side: int, channels: int, blocks: int, views: bool = False) -> None:
        super().__init__()
        self.side = side
        self.tiles = nn.Sequential(
            _Pictures(side),
            nn.Conv2d(3, 128, TILE, TILE, bias=False), nn.BatchNorm2d(128), nn.ReLU(),
            nn.Conv2d(128, 64, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
            nn.Conv2d(64, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(),
        )  # fmt: skip
        self.blocks = nn.Sequential(*(Residual(channels, channels) for _ in range(blocks)))
        self.places = nn.Parameter(0.1 * torch.randn(VIEWS, channels, side, side)) if views else None

    def forward(self, z: Tensor) -> tuple[Tensor, Tensor]:
        """Features of the cells by their own tiles, and features that know the other cells, of flat pictures."""
        own: Tensor = self.tiles(z)
        start = own if self.places is None else own + self.places[z[..., -1].reshape(-1).long()]
        return own, self.blocks(start)


class GridNet(nn.Module):
    """Every edge is scored from the features of its two cells, less half the cost that their own tiles show.

    Args:
        side: cells along a side.
        components: mixture components.
        channels: features per cell.
        blocks: residual blocks of the trunk.
        views: whether rows end with the number of their view.
    """

    order: Tensor
    ends: Tensor

    def __init__(
        self, side: int, components: int = 1, channels: int = 32, blocks: int = 6, views: bool = False
    ) -> None:
        super().__init__()
        self.side, self.components = side, components
        self.trunk = Trunk(side, channels, blocks, views)
        self.cost = nn.Conv2d(channels, components, 1)
        self.across, self.down = (
            nn.Sequential(nn.Conv2d(channels, channels, size), nn.ReLU(), nn.Conv2d(channels, components, 1))
            for size in ((1, 2), (2, 1))
        )
        self.mixing = nn.Linear(channels, components) if components > 1 else None
        self.register_buffer("order", _edge_order(side), persistent=False)
        self.register_buffer("ends", torch.from_numpy(edge_ends(side)), persistent=False)

    def forward(self, z: Tensor) -> Tensor:
        """Scores [*batch, components * edges (+ components)], component by component for each edge."""
        own, features = self.trunk(z)
        scores = torch.cat([self.across(features).flatten(2), self.down(features).flatten(2)], 2)[:, :, self.order]
        scores = scores - _halves(self.cost(own).flatten(2), self.ends)
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
        views: whether rows end with the number of their view.
    """

    def __init__(self, side: int, outputs: int, channels: int = 32, blocks: int = 6, views: bool = False) -> None:
        super().__init__()
        self.trunk = Trunk(side, channels, blocks, views)
        self.layers = nn.Sequential(
            nn.Conv2d(channels, 8, 1), nn.ReLU(), nn.Flatten(), nn.Linear(8 * side * side, outputs)
        )

    def forward(self, z: Tensor) -> Tensor:
        """Outputs [*batch, outputs] for flat pictures."""
        outputs: Tensor = self.layers(self.trunk(z)[1])
        return outputs.reshape(*z.shape[:-1], -1)


class CostNet(nn.Module):
    """Predicts one cost per cell; an edge scores minus half the sum of its cells' costs, so p(path) ∝ exp(−cost).

    Args:
        side: cells along a side.
        channels: features per cell.
        biased: whether each edge has a learnt bias, the same for all maps, which can learn a tie rule.
        neighbours: of a cell, 4 or 8.
    """

    ends: Tensor

    def __init__(self, side: int, channels: int = 32, biased: bool = True, neighbours: int = 4) -> None:
        super().__init__()
        self.side = side
        ends = edge_ends(side, neighbours)
        self.trunk = Trunk(side, channels, 0)
        self.cost = nn.Conv2d(channels, 1, 1)
        self.bias = nn.Parameter(torch.zeros(len(ends))) if biased else None
        self.register_buffer("ends", torch.from_numpy(ends), persistent=False)

    def costs(self, z: Tensor) -> Tensor:
        """Predicted costs of the cells [batch, side * side]."""
        costs: Tensor = self.cost(self.trunk(z)[0]).flatten(1)
        return costs

    def forward(self, z: Tensor) -> Tensor:
        """Scores of the edges [*batch, edges]."""
        costs = self.costs(z)
        scores = -_halves(costs, self.ends)
        if self.bias is not None:
            scores = scores + self.bias
        return scores.reshape(*z.shape[:-1], -1)


def _halves(costs: Tensor, ends: Tensor) -> Tensor:
    """Half the costs of the two cells of each edge [..., edges], so that a path is charged for each inner cell once."""
    return 0.5 * (costs[..., ends[:, 0]] + costs[..., ends[:, 1]])


def _edge_order(side: int) -> Tensor:
    """Where each edge of the graph stands in: all edges across, row by row, then all edges down."""
    first, second = edge_ends(side).T
    row, column = divmod(first, side)
    across = second == first + 1
    return torch.from_numpy((row * (side - 1) + column) * across + (side * (side - 1) + first) * ~across)
