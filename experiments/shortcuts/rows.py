"""Rows of two images: training sees some pairs of digits only, and their sums leave open which digit is which."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

import semprola as sp
from experiments.mnist_add.images import Images

PAIRS = {
    "half": ((0, 0), (0, 1), (2, 3), (2, 4)),
    "even-odd": ((0, 6), (2, 8), (4, 6), (4, 8), (1, 5), (3, 7), (1, 9), (3, 9)),
}
"""The pairs of digits in training, each in both orders."""
VALUES = {"half": 5, "even-odd": 10}
TRAIN, VALID, TEST = 420, 120, 60
"""Rows per ordered pair."""


@dataclass(frozen=True)
class Task:
    """The rows of one task: places of images [rows, 2]; test rows are of the pairs seen in training, and of others.

    Attributes:
        train, valid: places in the training images; the two have no image in common.
        seen, unseen: places in the test images.
    """

    train: Tensor
    valid: Tensor
    seen: Tensor
    unseen: Tensor


def pairs_of(name: str) -> list[tuple[int, int]]:
    """The ordered pairs of digits in training."""
    return sorted({pair for first, second in PAIRS[name] for pair in ((first, second), (second, first))})


def draw_task(name: str, train: Images, test: Images, seed: int) -> Task:
    """Rows with images drawn at random by the seed."""
    generator = torch.Generator().manual_seed(seed)
    seen = pairs_of(name)
    values = range(VALUES[name])
    unseen = [(a, b) for a in values for b in values if (a, b) not in seen]
    order = torch.randperm(len(train), generator=generator)
    cut = len(train) * VALID // (TRAIN + VALID)
    valid, rest = order[:cut], order[cut:]
    every = torch.arange(len(test))
    return Task(
        _draw(train, rest, seen, TRAIN, generator),
        _draw(train, valid, seen, VALID, generator),
        _draw(test, every, seen, TEST, generator),
        _draw(test, every, unseen, TEST, generator),
    )


def wrong_readings(name: str) -> int:
    """The number of wrong readings of digits that explain every training sum."""
    top = VALUES[name] - 1
    a, b, total = sp.Integer("a", 0, top), sp.Integer("b", 0, top), sp.Integer("sum", 0, 2 * top)
    return sp.rules.shortcuts(a + b == total, [{"a": first, "b": second} for first, second in pairs_of(name)]).count


def _draw(
    images: Images, places: Tensor, pairs: list[tuple[int, int]], count: int, generator: torch.Generator
) -> Tensor:
    """Rows [count · pairs, 2] of some of the images."""
    of = {int(digit): places[images.digits[places] == digit] for digit in images.digits[places].unique()}

    def some(digit: int) -> Tensor:
        return of[digit][torch.randint(len(of[digit]), (count,), generator=generator)]

    return torch.cat([torch.stack([some(first), some(second)], dim=1) for first, second in pairs])
