"""Sudokus from 81 pictures of digits: read cell by cell, repaired by a solver, and board by board by a pool."""

from __future__ import annotations

import copy
import random
from typing import Any

import torch
from torch import Tensor, nn

import semprola as sp
from experiments.large.cases import sudoku
from experiments.large.solver import Solver
from experiments.mnist_add.images import Images
from experiments.provenance import provenance

BOARDS = (5, 20, 80)
TEST = 100
NOISE = 1.0
"""Standard deviation of what is added to every pixel, which is from 0 to 1; clean pictures are too easy."""
_EPOCHS, _BATCH, _RATE = 30, 5, 1e-3
_LEAST_STEPS = 300
_SECONDS = 1.0
"""For a board, for the pool and for the solver."""


def draw_boards(count: int, rng: random.Random) -> Tensor:
    """Solved sudokus [count, 81] with digits from 0 to 8: a pattern with rows, columns, boxes and digits exchanged."""

    def order() -> list[int]:
        return [3 * group + i for group in rng.sample(range(3), 3) for i in rng.sample(range(3), 3)]

    made = []
    for _ in range(count):
        rows, columns, digits = order(), order(), rng.sample(range(9), 9)
        made.append([digits[(3 * (r % 3) + r // 3 + c) % 9] for r in rows for c in columns])
    return torch.tensor(made)


def draw_pictures(boards: Tensor, images: Images, seed: int) -> Tensor:
    """A noisy picture of each cell's digit [boards, 81, 1, 28, 28]: 1 for 0, up to 9 for 8."""
    generator = torch.Generator().manual_seed(seed)
    places = torch.empty_like(boards)
    for digit in range(9):
        known = (images.digits == digit + 1).nonzero().flatten()
        cells = boards == digit
        places[cells] = known[torch.randint(len(known), (int(cells.sum()),), generator=generator)]
    pictures = images.x[places]
    return pictures + NOISE * torch.randn(pictures.shape, generator=generator)


class Reader(nn.Module):
    """LeNet with one output per digit from 1 to 9, for all cells of a board [rows, 729]."""

    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
            nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 9),
        )  # fmt: skip

    def forward(self, pictures: Tensor) -> Tensor:
        """Scores of all digits of all cells."""
        scores: Tensor = self.net(pictures.flatten(0, 1)).unflatten(0, pictures.shape[:2])
        return scores.flatten(1)


def run(count: int, seed: int, train: Images, test: Images) -> dict[str, Any]:
    """Train on `count` boards in both ways, and read unseen ones.

    Returns:
        Shares of cells and boards that are right, and where they come from.
    """
    rng = random.Random(seed)
    boards, unseen = draw_boards(count, rng), draw_boards(TEST, rng)
    x, x_unseen = draw_pictures(boards, train, seed), draw_pictures(unseen, test, seed)
    case = sudoku()
    split = sp.split(case.formula(), labels=case.labels, max_nodes=case.max_nodes)
    layer = sp.ConstraintLayer(split)
    torch.manual_seed(seed)
    start = Reader()
    cells, whole = (_train(copy.deepcopy(start), rules, x, boards, seed) for rules in (None, layer))
    with torch.no_grad():
        scores, scores_whole = cells(x_unseen), whole(x_unseen)
        read = scores.unflatten(1, (81, 9)).argmax(-1)
        added, trained = (layer(each).within(seconds=_SECONDS) for each in (scores, scores_whole))
        states = {"rules_added": added.try_mode(), "trained": trained.try_mode()}
    solver = Solver(case)
    repaired = [solver.solve(row.tolist(), _SECONDS).state for row in scores]
    truth = nn.functional.one_hot(unseen, 9).flatten(1)
    known = torch.cat([each[~each.isnan().any(1)] for each in states.values()])
    return {
        "boards": count, "seed": seed,
        "cells": float((read == unseen).double().mean()),
        "independent": float((read == unseen).all(1).double().mean()),
        "repaired": sum(a == b.tolist() for a, b in zip(repaired, truth, strict=True)) / TEST,
        **{name: float((each == truth).all(1).double().mean()) for name, each in states.items()},
        "obey": bool(split.satisfied(known).all()),
        "answered": len(known) / (2 * TEST),
        "proven": float(trained.mode_is_exact.double().mean()) if len(known) == 2 * TEST else 0.0,
        "provenance": provenance(),
    }  # fmt: skip


def _train(net: Reader, layer: nn.Module | None, x: Tensor, boards: Tensor, seed: int) -> Reader:
    optimizer = torch.optim.Adam(net.parameters(), lr=_RATE)
    generator = torch.Generator().manual_seed(seed)
    truth = nn.functional.one_hot(boards, 9).flatten(1).float()
    steps = max(_EPOCHS * len(x) // _BATCH, _LEAST_STEPS)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        rows = torch.randint(len(x), (_BATCH,), generator=generator)
        scores = net(x[rows])
        if layer is None:
            loss = nn.functional.cross_entropy(scores.unflatten(1, (81, 9)).flatten(0, 1), boards[rows].flatten())
        else:
            loss = -layer(scores).log_score(truth[rows]).mean() / 81
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()
    return net
