"""One run: a linear model predicts the costs of edges, trained by one of several losses; its regret on test rows."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

import networkx as nx
import torch
from torch import Tensor, nn

import semprola as sp
from experiments.provenance import provenance
from semprola.errors import SemprolaError

GRID = (5, 5)
ROWS, TEST, FEATURES, DEGREE, NOISE = 1000, 1000, 5, 4, 0.5
FIRST_SEED = 42
"""The data of PyEPO's notebook; further runs use the next seeds."""
OURS = {"regret": "exact expected regret", "likelihood": "exact likelihood of the best path"}
PYEPO = {
    "spo+": "SPO+",
    "pfyl": "PFYL (3 samples)",
    "aimle": "AI-MLE (3 samples)",
}
METHODS = {"costs": "squared error of the costs", **PYEPO, **OURS}
"""Ours need no solver in training. PyEPO's are those that did best in its notebook, with the notebook's settings."""


@dataclass(frozen=True)
class Settings:
    """The notebook's: Adam, 20 epochs, batches of 32; `valid` rows of training are kept to choose between settings."""

    method: str
    epochs: int = 20
    batch: int = 32
    lr: float = 1e-2
    valid: int = 0


class Paths:
    """The 70 paths of the grid that go right and down, with edges in PyEPO's order."""

    def __init__(self) -> None:
        height, width = GRID
        place = [(i, j) for i in range(height) for j in range(width)]
        edges = []
        for i, j in place:  # by row: first the edges to the right, then those down
            if j == 0:
                edges += [(i * width + k, i * width + k + 1) for k in range(width - 1)]
                edges += [(i * width + k, (i + 1) * width + k) for k in range(width)] if i + 1 < height else []
        rules = sp.constraints.simple_paths(nx.DiGraph(edges), source=0, target=height * width - 1)
        labels = [f"{a}->{b}" for a, b in edges]
        self.edges = edges
        self.layer = sp.ConstraintLayer(rules, labels=labels)

    def __call__(self, costs: Tensor) -> Any:
        """The distribution over paths in which cheap paths are probable."""
        return self.layer(-costs)

    def best(self, costs: Tensor) -> Tensor:
        """The cheapest path of each row [rows, edges]."""
        with torch.no_grad():
            found: Tensor = self(costs).mode.to(costs.dtype)
        return found


def generate(seed: int) -> tuple[Tensor, Tensor]:
    """Features [rows, 5] and costs [rows, 40] by PyEPO's generator: training rows, then test rows.

    Raises:
        SemprolaError: PyEPO is not installed.
    """
    from sklearn.model_selection import train_test_split

    pyepo = _pyepo()
    x, costs = pyepo.data.shortestpath.genData(ROWS + TEST, FEATURES, GRID, DEGREE, NOISE, seed=seed)
    x_train, x_test, costs_train, costs_test = train_test_split(x, costs, test_size=TEST, random_state=seed)
    pairs = ((x_train, x_test), (costs_train, costs_test))
    features, all_costs = (torch.cat([torch.as_tensor(part).float() for part in pair]) for pair in pairs)
    return features, all_costs


def run(settings: Settings, seed: int, data: tuple[Tensor, Tensor] | None = None) -> dict[str, Any]:
    """Train and test once.

    Returns:
        What to keep: the normalised regret in percent after the last epoch, the milliseconds per step of training, and
        where they come from.
    """
    x, costs = data if data is not None else generate(seed)
    cut = ROWS - settings.valid
    paths = Paths()
    best = paths.best(costs)
    torch.manual_seed(seed)
    model = nn.Linear(x.shape[1], costs.shape[1])
    loss_of = _loss(settings.method, paths, x[:cut], costs[:cut])
    optimizer = torch.optim.Adam(model.parameters(), lr=settings.lr)
    generator = torch.Generator().manual_seed(seed)
    spent, steps = 0.0, 0
    for _ in range(settings.epochs):
        for rows in torch.randperm(cut, generator=generator).split(settings.batch):
            began = time.perf_counter()
            loss = loss_of(model(x[rows]), costs[rows], best[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            spent, steps = spent + time.perf_counter() - began, steps + 1
    judged = slice(cut, ROWS) if settings.valid else slice(ROWS, None)
    regret = normalised_regret(paths, model(x[judged]).detach(), costs[judged])
    return {
        "seed": seed, "settings": asdict(settings), "regret": regret, "milliseconds_per_step": 1000 * spent / steps,
        "provenance": provenance() | {"pyepo": _version()},
    }  # fmt: skip


def normalised_regret(paths: Paths, predicted: Tensor, costs: Tensor) -> float:
    """How much more the paths cost that look cheapest than those that are, in percent of the latter's cost."""
    costs = costs.double()
    least = (paths.best(costs) * costs).sum(-1)
    paid = (paths.best(predicted.double()) * costs).sum(-1)
    return 100 * float((paid - least).sum() / least.sum())


def _loss(method: str, paths: Paths, x: Tensor, costs: Tensor) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    """The loss of a batch from predicted costs, costs and the cheapest paths."""
    if method == "costs":
        return lambda predicted, costs, best: nn.functional.mse_loss(predicted, costs)
    if method == "regret":
        regret = sp.losses.ExpectedRegret()
        return lambda predicted, costs, best: regret(paths(predicted), costs)
    if method == "likelihood":
        return lambda predicted, costs, best: -paths(predicted).log_prob(best).mean()
    return _pyepo_loss(method)


def _pyepo_loss(method: str) -> Callable[[Tensor, Tensor, Tensor], Tensor]:
    func, solver = _pyepo().func, _solver()
    if method == "spo+":
        spo = func.SPOPlus(solver, processes=1)
        return lambda predicted, costs, best: spo(predicted, costs, best, (best * costs).sum(-1, keepdim=True))
    if method == "pfyl":
        pfyl = func.perturbedFenchelYoung(solver, n_samples=3, sigma=1.0, processes=1)
        return lambda predicted, costs, best: pfyl(predicted, best)
    aimle = func.adaptiveImplicitMLE(solver, n_samples=3, sigma=1.0, processes=1)
    return lambda predicted, costs, best: nn.functional.l1_loss(aimle(predicted), best)


def _solver() -> Any:
    return import_module("pyepo.model.ort").shortestPathModel(GRID)


def _pyepo() -> Any:
    try:
        return import_module("pyepo")
    except ImportError:
        raise SemprolaError("this experiment needs PyEPO and a solver: pip install pyepo ortools") from None


def _version() -> str:
    from importlib import metadata

    return metadata.version("pyepo")
