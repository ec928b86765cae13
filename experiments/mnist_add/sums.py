"""Rows of images: two numbers of N digits, or many numbers of one, of which the sum is known; network and layer."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

import semprola as sp
from experiments.mnist_add.images import Images


@dataclass(frozen=True)
class Rows:
    """Rows of images; their sums are the only labels.

    Attributes:
        images: the place of each image [rows, numbers N]: the first number from its first digit, then the second.
        sums: of two numbers, the digits of the sum [rows, N + 1], the first first; of more, the sum [rows, 1].
    """

    images: Tensor
    sums: Tensor


def draw_rows(images: Images, digits: int, seed: int, numbers: int = 2) -> Rows:
    """Rows in which each image is used once, as far as that is possible; the seed decides which go together."""
    order = torch.randperm(len(images), generator=torch.Generator().manual_seed(seed))
    width = numbers * digits
    count = len(images) // width
    places = order[: count * width].reshape(count, width)
    return Rows(places, sums_of(images.digits[places], numbers))


def sums_of(digits: Tensor, numbers: int) -> Tensor:
    """The sums of `Rows`, from the digits of all images [rows, numbers N]."""
    return digits_of_sum(digits) if numbers == 2 else digits.sum(1, keepdim=True)


def digits_of_sum(digits: Tensor) -> Tensor:
    """The digits of the sum [rows, N + 1] of two numbers given by their digits [rows, 2 N].

    Example:
        >>> digits_of_sum(torch.tensor([[9, 5, 0, 7]])).tolist()  # 95 + 7
        [[1, 0, 2]]
    """
    first, second = digits.chunk(2, dim=1)
    columns = []
    carry = torch.zeros_like(first[:, 0])
    for place in reversed(range(first.shape[1])):
        total = first[:, place] + second[:, place] + carry
        columns.append(total % 10)
        carry = total // 10
    return torch.stack([carry, *reversed(columns)], dim=1)


class SumReader(nn.Module):
    """A digit reader that learns from sums.

    Args:
        digits: digits per number; 1 for more than two numbers.
        numbers: how many are added.
    """

    def __init__(self, digits: int, numbers: int = 2) -> None:
        super().__init__()
        self.reader = lenet()
        if numbers == 2:
            first, second = ([sp.Integer(f"{name}{i}", 0, 9) for i in range(digits)] for name in "ab")
            total = [sp.Integer("sum0", 0, 1), *(sp.Integer(f"sum{i}", 0, 9) for i in range(1, digits + 1))]
            number = sp.constraints.number
            rules = number(first) + number(second) == number(total)
            parts = [*first, *second]
        else:
            parts = [sp.Integer(f"a{i}", 0, 9) for i in range(numbers)]
            total = [sp.Integer("sum", 0, 9 * numbers)]
            rules = sum(parts[1:], parts[0]) == total[0]
        self.layer = sp.ConstraintLayer(rules)
        self.names, self.sums = [v.name for v in parts], [v.name for v in total]

    def log_prob(self, logits: Tensor, sums: Tensor) -> Tensor:
        """Log-probability of sums [rows, N + 1] or [rows, 1], for logits of the images [rows, numbers N, 10]."""
        p = self.layer(dict(zip(self.names, logits.unbind(1), strict=True)))
        result: Tensor = p.log_prob_of(dict(zip(self.sums, sums.unbind(1), strict=True)))
        return result

    def forward(self, images: Tensor) -> Tensor:
        """The logits of the digits [rows, numbers N, 10] of images [rows, numbers N, 1, 28, 28]."""
        logits: Tensor = self.reader(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        return logits


def lenet() -> nn.Sequential:
    """The network that all published results use; its weights are shared by all images."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(),
        nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
        nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
