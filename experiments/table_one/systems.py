"""The systems of the paper's Table 1, each on any backbone, constraint and label columns."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from torch import nn

from semprola.comparison import MethodModel, build_method
from semprola.compiler import compile
from semprola.logic import Formula

SYSTEMS = {
    "dl2": "DL2",
    "semantic-loss": "SL",
    "nesy-entropy": "NeSyEnt",
    "fil": "FIL",
    "ebm": "EBM",
    "multiplexnet": "MultiplexNet",
    "ccn": "CCN",
    "spl": "SPL",
    "product-spl": "SPL (two circuits)",
}
"""Names of the systems, in the order of the paper's columns; the paper has one column for both layers."""
PUBLISHED = {
    "D1": "dl2 ✗ semantic-loss ✓ nesy-entropy ✓ fil ✓ ebm ✗ multiplexnet ✓ ccn ✗ spl ✓ product-spl ✓",
    "D2": "dl2 ✗ semantic-loss ✗ nesy-entropy ✗ fil ✗ ebm ✓ multiplexnet ✗ ccn ✗ spl ✓ product-spl ✓",
    "D3": "dl2 ✗ semantic-loss ✗ nesy-entropy ✗ fil ✗ ebm ✗ multiplexnet ✓ ccn ✓ spl ✓ product-spl ✓",
    "D4": "dl2 ✓ semantic-loss ✓ nesy-entropy ✓ fil ✗ ebm ✓ multiplexnet ✓ ccn ✗ spl ✓ product-spl ✓",
    "D5": "dl2 ✓ semantic-loss ✓ nesy-entropy ✓ fil ✓ ebm ✓ multiplexnet ✓ ccn ✓ spl ✓ product-spl ✓",
    "D6": "dl2 ✓ semantic-loss ✓ nesy-entropy ✓ fil ✓ ebm ✗ multiplexnet ✗ ccn ✓ spl ✓ product-spl ✓",
}
"""The published marks."""


def published(desideratum: str, system: str) -> bool:
    """The paper's mark.

    Example:
        >>> published("D3", "ccn"), published("D3", "fil")
        (True, False)
    """
    words = PUBLISHED[desideratum].split()
    return words[words.index(system) + 1] == "✓"


def build(
    system: str,
    constraint: Formula,
    *,
    labels: Sequence[str] | None = None,
    width: int = 8,
    backbone: nn.Module | None = None,
    components: int = 1,
) -> MethodModel:
    """A system without a backbone, on `width` inputs, or on a backbone with this many features.

    Raises:
        SemprolaError: if the system cannot handle the constraint; the message says why.
    """
    circuit = compile(constraint, labels=labels)
    return build_method(system, backbone or nn.Identity(), width, constraint, circuit, components=components)


def every(labels: int) -> torch.Tensor:
    """All label vectors [2 ** labels, labels]."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)))


def backbones(width: int) -> dict[str, tuple[nn.Module, torch.Tensor]]:
    """Three networks with `width` features, and a batch of inputs for each."""
    torch.manual_seed(0)
    return {
        "perceptron": (nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, width)), torch.randn(32, 6)),
        "convolutional": (
            nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16, width)),
            torch.randn(32, 1, 8, 8),
        ),
        "recurrent": (LastState(3, width), torch.randn(32, 5, 3)),
    }


class LastState(nn.Module):
    """An LSTM whose last hidden state is the feature vector."""

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, width, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Features [batch, width] of sequences [batch, length, inputs]."""
        states: torch.Tensor = self.lstm(x)[0]
        return states[:, -1]
