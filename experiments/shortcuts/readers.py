"""Networks that read two digits and are told the sum: independent digits, one circuit, two circuits."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

import semprola as sp

_FEATURES = 84


class PairReader(nn.Module):
    """LeNet without its last layer, shared by both images, then a layer that knows how digits make a sum.

    Args:
        values: the digits are 0 to values - 1.
        kind: "independent" (one softmax per image), "one-circuit" (`SPL`) or "two-circuits" (`ProductSPL`).
        components: of the last two.
    """

    def __init__(self, values: int, kind: str, components: int = 4) -> None:
        super().__init__()
        self.values, self.kind = values, kind
        self.features = nn.Sequential(
            nn.Conv2d(1, 6, 5), nn.MaxPool2d(2), nn.ReLU(),
            nn.Conv2d(6, 16, 5), nn.MaxPool2d(2), nn.ReLU(), nn.Flatten(),
            nn.Linear(256, 120), nn.ReLU(), nn.Linear(120, _FEATURES), nn.ReLU(),
        )  # fmt: skip
        top = values - 1
        a, b, total = sp.Integer("a", 0, top), sp.Integer("b", 0, top), sp.Integer("sum", 0, 2 * top)
        rules = a + b == total
        if kind == "independent":
            self.head = nn.Linear(_FEATURES, values)
            self.layer: nn.Module = sp.ConstraintLayer(rules)
        else:
            layers: dict[str, Any] = {"one-circuit": sp.SPL, "two-circuits": sp.ProductSPL}
            self.layer = layers[kind](2 * _FEATURES, rules, components=components)

    def forward(self, images: Tensor) -> Any:
        """The distribution of the digits and the sum, for images [rows, 2, 1, 28, 28]."""
        features = self.features(images.flatten(0, 1)).unflatten(0, images.shape[:2])
        if self.kind != "independent":
            return self.layer(features.flatten(1))
        logits = self.head(features)  # [rows, 2, values]
        return self.layer({"a": logits[:, 0], "b": logits[:, 1]})


def digit_chances(p: Any, values: int) -> Tensor:
    """The probabilities of the digits [rows, 2, values]."""
    found = p.mean
    place = {label: i for i, label in enumerate(p.labels)}
    return torch.stack(
        [torch.stack([found[:, place[f"{name}={v}"]] for v in range(values)], -1) for name in "ab"], dim=1
    )


def sum_chances(p: Any, values: int) -> Tensor:
    """The probabilities of the sums [rows, 2 · values - 1]."""
    found = p.mean
    place = {label: i for i, label in enumerate(p.labels)}
    return torch.stack([found[:, place[f"sum={v}"]] for v in range(2 * values - 1)], -1)
