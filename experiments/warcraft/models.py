"""The methods that are compared on maps, each with the same networks as its gate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from experiments.warcraft.nets import NETS, CostNet, FlatNet, GridNet, ResNet18
from experiments.warcraft.paths import edge_ends
from experiments.warcraft.solver import cheapest_cells, perturbed_loss
from experiments.warcraft.terrain import TILE
from experiments.warcraft.views import random_views, with_view
from semprola.baselines import FIL
from semprola.circuit import Circuit
from semprola.errors import SemprolaError
from semprola.losses import NeSyEntropy, SemanticLoss
from semprola.nn import SPL, ProductSPL

METHODS = {
    "fil": "independent edges",
    "semantic-loss": "semantic loss",
    "nesy-entropy": "neuro-symbolic entropy",
    "product-spl": "SPL, two circuits",
    "spl": "SPL, one circuit",
    "hmm": "SPL, q = HMM",
    "perturbed": "solver in the loop (perturbed, Fenchel–Young)",
}
"""Names of the methods, and what tables call them."""


@dataclass(frozen=True)
class ModelSettings:
    """What a model is.

    Args:
        method: one of `METHODS`.
        net: one of `NETS`.
        components: mixture components of the two-circuit layer.
        channels, blocks: size of the trunk of "grid" and "costs"; 0 for the network's own.
        views: whether "grid" trains on maps in random views (see `experiments.warcraft.views`).
        biased: whether "costs" learns a bias per edge, which helps with ties and not with costs.
        semantic_weight, entropy_weight: of the added losses.
        sigma, samples: noise and answers of the solver in the loop.
    """

    method: str
    net: str = "grid"
    components: int = 1
    channels: int = 0
    blocks: int = 0
    views: bool = True
    biased: bool = False
    semantic_weight: float = 0.05
    entropy_weight: float = 0.05
    sigma: float = 0.5
    samples: int = 1


class PathModel(nn.Module):
    """A network that looks at flat pictures, with the last layer and the loss of a method.

    Args:
        settings: see `ModelSettings`.
        circuit: the compiled path constraint.
        side: cells along a side.
        neighbours: of a cell, 4 or 8.

    Raises:
        SemprolaError: there is no such method or network, or the two do not go together.
    """

    def __init__(self, settings: ModelSettings, circuit: Circuit, side: int = 12, neighbours: int = 4) -> None:
        super().__init__()
        _check(settings, neighbours)
        self.settings, self.side = settings, side
        self.views = settings.views and settings.net == "grid"
        pixels = 3 * (side * TILE) ** 2 + self.views
        self.penalties: list[tuple[float, SemanticLoss | NeSyEntropy]] = []
        method = settings.method
        if method in ("fil", "semantic-loss", "nesy-entropy"):
            self.head: nn.Module = FIL(pixels, circuit.labels, gate=_edge_net(settings, side, neighbours))
            if method != "fil":
                self.penalties.append((settings.semantic_weight, SemanticLoss(circuit)))
            if method == "nesy-entropy":
                self.penalties.append((settings.entropy_weight, NeSyEntropy(circuit)))
        elif method == "product-spl":
            self.head = ProductSPL(
                pixels, circuit, components=settings.components, gate=_edge_net(settings, side, neighbours)
            )
        elif method == "perturbed":
            self.head = Solver(_edge_net(settings, side, neighbours), side, neighbours)
        else:
            # parameters that belong to no edge: every one may look at all cells
            def gate(inputs: int, outputs: int) -> nn.Module:
                if settings.net == "resnet18":
                    return ResNet18(side, outputs)
                return FlatNet(side, outputs, *_size(settings))

            if method == "spl":
                self.head = SPL(pixels, circuit, gate=gate)
            else:
                self.head = ProductSPL(pixels, circuit, q="hmm", gate=gate)

    def forward(self, x: Tensor) -> Any:
        """The prediction for flat pictures x [rows, pixels * pixels * 3]."""
        return self.head(self.inputs(x))

    def inputs(self, x: Tensor) -> Tensor:
        """What the network is given for flat pictures: with views, the number of the view comes last."""
        return with_view(x) if self.views else x

    def describe(self) -> str:
        """What a checkpoint belongs to."""
        return f"{self.settings} side={self.side}"

    def loss(self, x: Tensor, y: Tensor, given: Tensor | None = None, *, penalize: bool = True) -> Tensor:
        """Mean negative log-likelihood of the edges y [rows, edges], and the losses that the method adds."""
        if isinstance(self.head, Solver):
            return self.head.loss(x, y, self.settings.sigma, self.settings.samples)
        if self.views and self.training:
            x, y = random_views(x, y, self.side)
            p = self.head(x)
        else:
            p = self(x)
        total: Tensor = -p.log_prob(y).mean()
        if penalize:
            for weight, penalty in self.penalties:
                total = total + weight * penalty(p.logits.squeeze(-2))
        return total

    def costs(self, x: Tensor) -> Tensor | None:
        """Costs that the network predicts [rows, cells], or None if it predicts none."""
        nets = [module for module in self.modules() if isinstance(module, CostNet)]
        return nets[0].costs(x) if nets else None


class Solver(nn.Module):
    """Predicted costs and a solver: the prediction is the solver's path."""

    ends: Tensor

    def __init__(self, net: nn.Module, side: int, neighbours: int = 4) -> None:
        super().__init__()
        self.net, self.side, self.neighbours = net, side, neighbours
        self.register_buffer("ends", torch.from_numpy(edge_ends(side, neighbours)), persistent=False)

    def forward(self, x: Tensor) -> SolverPrediction:
        """The solver's answer to the predicted costs of flat pictures."""
        return SolverPrediction(self._costs(x), self.ends, self.neighbours)

    def loss(self, x: Tensor, y: Tensor, sigma: float, samples: int) -> Tensor:
        """The perturbed loss of paths y [rows, edges]."""
        cells = torch.zeros(len(y), self.side**2, dtype=y.dtype)
        for end in self.ends.T:
            cells.scatter_reduce_(1, end.expand_as(y), y, "amax")
        return perturbed_loss(self._costs(x), cells, sigma, samples, self.neighbours)

    def _costs(self, x: Tensor) -> Tensor:
        if not isinstance(self.net, CostNet):
            raise SemprolaError("a solver in the loop needs a network that predicts costs: use the net 'costs'")
        return nn.functional.softplus(self.net.costs(x))


class SolverPrediction:
    """One path per row; no distribution.

    Args:
        costs: predicted costs [rows, cells].
        ends: the two cells of each edge [edges, 2].
        neighbours: of a cell, 4 or 8.
    """

    def __init__(self, costs: Tensor, ends: Tensor, neighbours: int = 4) -> None:
        self.costs = costs
        cells = torch.from_numpy(cheapest_cells(costs.detach().double().numpy(), neighbours))
        # a least-cost path has no short cuts, so its edges are those between its cells
        self.mode = (cells[:, ends[:, 0]] * cells[:, ends[:, 1]]).to(costs.dtype)

    def decode(self, utility: str) -> Tensor:
        """The path itself, whatever it is wanted for."""
        return self.mode

    def log_prob(self, y: Tensor) -> Tensor:
        """NaN: a solver's answer has no likelihood."""
        return torch.full(y.shape[:-1], float("nan"))


def _check(settings: ModelSettings, neighbours: int) -> None:
    if neighbours != 4 and settings.net != "costs":
        raise SemprolaError("eight neighbours need a score per edge from the costs of its cells: use --net costs")
    if settings.method not in METHODS:
        raise SemprolaError(f"no method {settings.method!r}: choose from {', '.join(METHODS)}")
    if settings.net not in NETS:
        raise SemprolaError(f"no network {settings.net!r}: choose from {', '.join(NETS)}")
    if settings.net == "costs" and (settings.method in ("spl", "hmm") or settings.components > 1):
        raise SemprolaError("the net 'costs' gives one score per edge: use it with product-spl of one component")
    if settings.net != "costs" and settings.method == "perturbed":
        raise SemprolaError("a solver in the loop needs predicted costs: use it with --net costs")


def _size(settings: ModelSettings) -> tuple[int, int, bool]:
    return settings.channels or 32, settings.blocks or 6, settings.views


def _edge_net(settings: ModelSettings, side: int, neighbours: int) -> nn.Module:
    """The network whose outputs are scores of edges."""
    if settings.net == "costs":
        return CostNet(side, settings.channels or 32, settings.biased, neighbours)
    if settings.net == "grid":
        return GridNet(side, settings.components, *_size(settings))
    edges, many = len(edge_ends(side)), settings.components > 1
    return ResNet18(side, settings.components * (edges + many))
