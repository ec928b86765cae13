"""The methods to compare: the same network, with last layers and losses that treat the constraint differently."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from semprola.baselines import FIL
from semprola.circuit import Circuit
from semprola.distributions import CompatibleDistribution, ProductDistribution, SPLDistribution
from semprola.errors import SemprolaError
from semprola.losses import NeSyEntropy, SemanticLoss
from semprola.nn import SPL, ProductSPL

Prediction = SPLDistribution | ProductDistribution | CompatibleDistribution

METHODS = ("fil", "semantic-loss", "nesy-entropy", "spl", "product-spl")

TITLES = {
    "fil": "FIL",
    "semantic-loss": "FIL + semantic loss",
    "nesy-entropy": "FIL + NeSy entropy",
    "spl": "SPL",
    "product-spl": "SPL, two circuits",
}
SHORT_TITLES = {**TITLES, "semantic-loss": "semantic loss", "nesy-entropy": "NeSy entropy"}
"""For headings and narrow tables."""

_ACTIVATIONS: dict[str, type[nn.Module]] = {"relu": nn.ReLU, "sigmoid": nn.Sigmoid}

STARTS = ("torch", "scaled")
_GAINS = {"relu": 2**0.5, "sigmoid": 4.0}
"""One over the slope of the activation at typical inputs (for ReLU, the root mean square)."""


@dataclass(frozen=True)
class ModelSettings:
    """The settings of a model.

    Args:
        hidden: widths of the network's layers.
        activation: "relu" or "sigmoid".
        dropout: probability of dropout after each layer.
        gate: widths of the hidden layers of the last layer's gate.
        replicas: m of the paper (components of the mixture).
        units: k of the paper (copies of each sum).
        semantic_weight: weight of the semantic loss, added to the negative log-likelihood.
        entropy_weight: weight of the neuro-symbolic entropy.
        start: initial weights of the network, see `perceptron`.
        features: width of a linear layer after the network; None for none.
    """

    hidden: tuple[int, ...] = (50, 50, 50, 50, 50)
    activation: str = "sigmoid"
    dropout: float = 0.0
    gate: tuple[int, ...] = ()
    replicas: int = 1
    units: int = 1
    semantic_weight: float = 0.5
    entropy_weight: float = 0.1
    start: str = "torch"
    features: int | None = None


class Model(nn.Module):
    """A network with a last layer, and the loss that the method minimises.

    Args:
        method: one of `METHODS`.
        in_features: width of the inputs x.
        circuit: the compiled constraint.
        settings: see `ModelSettings`.

    Raises:
        SemprolaError: if the method, the activation or the start is unknown.

    Example:
        >>> import torch, semprola as sp
        >>> model = Model("spl", 3, sp.compile(sp.one_hot(["a", "b"])), ModelSettings(hidden=(4,)))
        >>> model(torch.zeros(5, 3)).mode.sum(1)
        tensor([1., 1., 1., 1., 1.])
    """

    def __init__(self, method: str, in_features: int, circuit: Circuit, settings: ModelSettings) -> None:
        super().__init__()
        if method not in METHODS:
            raise SemprolaError(f"no method {method!r}: choose from {', '.join(METHODS)}")
        self.method, self.settings = method, settings
        self.net = perceptron(in_features, settings.hidden, settings.activation, settings.dropout, settings.start)
        width = settings.hidden[-1] if settings.hidden else in_features
        if settings.features is not None:
            self.net.append(nn.Linear(width, settings.features))
            width = settings.features
        self.penalties: list[tuple[float, SemanticLoss | NeSyEntropy]] = []
        self.uses_given = False
        if method == "spl":
            self.head: nn.Module = SPL(
                width, circuit, components=settings.replicas, units=settings.units, gate=settings.gate
            )
            self.uses_given = bool(circuit.given)
        elif method == "product-spl":
            self.head = ProductSPL(width, circuit, components=settings.replicas, gate=settings.gate)
            self.uses_given = bool(circuit.given)
        else:
            self.head = FIL(width, circuit.labels, gate=settings.gate)
            if method != "fil":
                self.penalties.append((settings.semantic_weight, SemanticLoss(circuit)))
            if method == "nesy-entropy":
                self.penalties.append((settings.entropy_weight, NeSyEntropy(circuit)))

    def forward(self, x: Tensor, given: Tensor | None = None) -> Prediction:
        """The distribution over y for inputs x [rows, inputs], and inputs of the constraint [rows, given]."""
        features = self.net(x)
        prediction: Prediction = self.head(features, given=given) if self.uses_given else self.head(features)
        return prediction

    def describe(self) -> str:
        """A text that identifies the model, for checkpoints."""
        return f"{self.method} {self.settings}"

    def loss(self, x: Tensor, y: Tensor, given: Tensor | None = None, *, penalize: bool = True) -> Tensor:
        """Mean negative log-likelihood of y [rows, labels], plus the method's penalties if `penalize` is true."""
        p = self(x, given)
        total: Tensor = -p.log_prob(y).mean()
        if penalize and self.penalties and isinstance(p, ProductDistribution):
            logits = p.logits.squeeze(-2)
            for weight, penalty in self.penalties:
                total += weight * penalty(logits, given=given)
        return total


def perceptron(
    in_features: int, hidden: Sequence[int], activation: str, dropout: float = 0.0, start: str = "torch"
) -> nn.Sequential:
    """Linear layers, each followed by the activation (and dropout).

    Args:
        in_features: width of the inputs.
        hidden: widths of the layers.
        activation: "relu" or "sigmoid".
        dropout: probability of dropout after each layer.
        start: "torch" for PyTorch's initial weights; with these, a signal shrinks about sevenfold in every sigmoid
            layer, so a deep network learns nothing for hundreds of steps and little afterwards. "scaled" for Glorot's
            uniform weights divided by the activation's slope, with biases that centre the inputs of the sigmoid, so
            that signals keep their size.

    Raises:
        SemprolaError: if the activation or the start is unknown.

    Example:
        >>> x = torch.randint(0, 2, (500, 40)).float()
        >>> for start in STARTS:
        ...     spread = perceptron(40, (50,) * 6, "sigmoid", start=start)(x).std(0).mean().item()
        ...     print(spread < 1e-5, spread > 0.05)
        True False
        False True
    """
    if activation not in _ACTIVATIONS:
        raise SemprolaError(f"no activation {activation!r}: choose from {', '.join(_ACTIVATIONS)}")
    if start not in STARTS:
        raise SemprolaError(f"no start {start!r}: choose from {', '.join(STARTS)}")
    layers: list[nn.Module] = []
    width = in_features
    for size in hidden:
        linear = nn.Linear(width, size)
        if start == "scaled":
            _scale(linear, activation)
        layers += [linear, _ACTIVATIONS[activation]()]
        if dropout:
            layers.append(nn.Dropout(dropout))
        width = size
    return nn.Sequential(*layers)


@torch.no_grad()
def _scale(linear: nn.Linear, activation: str) -> None:
    nn.init.xavier_uniform_(linear.weight, _GAINS[activation])
    # inputs of 0 and 1 and outputs of a sigmoid lie around 1/2
    linear.bias.copy_(-linear.weight.sum(1) / 2 if activation == "sigmoid" else torch.zeros_like(linear.bias))
