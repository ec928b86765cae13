"""The field's rival: predicted costs, a shortest-path solver inside the training loop, a perturbed loss.

Berthet et al. (2020): with costs θ and Gaussian noise Z, the perturbed optimum is the mean of the solver's answers to
θ + σZ. The Fenchel-Young loss of a target path has as gradient in θ the target's cells less those of that mean, so
that a step needs nothing of the solver but its answers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra
from torch import Tensor

from experiments.warcraft.paths import edge_ends

_LEAST = 1e-3
"""Predicted and perturbed costs are raised to this: the solver needs positive ones."""


def cheapest_cells(costs: NDArray[Any], neighbours: int = 4) -> NDArray[np.float32]:
    """Cells of a least-cost path from the first to the last cell of each map, 0/1 [maps, cells]; one Dijkstra for all.

    Args:
        costs: of the cells [maps, cells], in any order of size; negative ones count as nearly nothing.
        neighbours: of a cell, 4 or 8.

    Example:
        >>> cheapest_cells(np.array([[1.0, 5.0, 2.0, 1.0]])).tolist()
        [[1.0, 0.0, 1.0, 1.0]]
    """
    maps, cells = costs.shape
    side = round(cells**0.5)
    cost = np.maximum(costs, _LEAST).reshape(-1)
    first, second = edge_ends(side, neighbours).T
    offset = np.arange(maps)[:, None] * cells
    rows = np.concatenate([offset + first, offset + second], 1).reshape(-1)
    columns = np.concatenate([offset + second, offset + first], 1).reshape(-1)
    # entering a cell costs what the cell costs; the maps are separate parts of one graph
    graph = csr_matrix((cost[columns], (rows, columns)), shape=(maps * cells, maps * cells))
    _, before, _ = dijkstra(graph, indices=np.arange(maps) * cells, min_only=True, return_predecessors=True)
    used = np.zeros(maps * cells, np.float32)
    at = np.arange(maps) * cells + cells - 1
    while len(at):
        used[at] = 1.0
        at = before[at]
        at = at[at >= 0]
    return used.reshape(maps, cells)


def perturbed_loss(costs: Tensor, target: Tensor, sigma: float, samples: int, neighbours: int = 4) -> Tensor:
    """Fenchel-Young loss of target paths under perturbed costs, up to a constant in the costs.

    Args:
        costs: predicted costs of the cells [maps, cells].
        target: cells of the true paths, 0/1 [maps, cells].
        sigma: standard deviation of the noise.
        samples: answers of the solver per map.
        neighbours: of a cell, 4 or 8.
    """
    apply: Any = _PerturbedLoss.apply
    loss: Tensor = apply(costs, target, sigma, samples, neighbours)
    return loss


class _PerturbedLoss(torch.autograd.Function):
    """The loss with its gradient, which needs nothing of the solver but its answers."""

    @staticmethod
    def forward(ctx: Any, costs: Tensor, target: Tensor, sigma: float, samples: int, neighbours: int) -> Tensor:
        """Mean over maps of <θ, target> less the mean perturbed optimum; θ [maps, cells], target 0/1 likewise."""
        noise = sigma * torch.randn(samples, *costs.shape, dtype=costs.dtype)
        perturbed = costs.detach() + noise
        answers = cheapest_cells(perturbed.flatten(0, 1).double().numpy(), neighbours)
        cells = torch.from_numpy(answers).view_as(perturbed).to(costs)
        ctx.save_for_backward((target - cells.mean(0)) / len(costs))
        return ((target * costs.detach()).sum(1) - (cells * perturbed).sum(2).mean(0)).mean()

    @staticmethod
    def backward(ctx: Any, *cotangents: Tensor) -> Any:
        """The difference of the target's cells and the mean optimum's."""
        (slope,) = ctx.saved_tensors
        return cotangents[0] * slope, None, None, None, None
