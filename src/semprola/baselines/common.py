"""What the baselines share: the network in front of them, and checks of their arguments."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NoReturn

import torch
from torch import Tensor, nn

from semprola.distributions import ConstrainedDistribution
from semprola.distributions.arguments import check_finite
from semprola.errors import IntractableError
from semprola.logic.syntax import checked_names
from semprola.nn.gate import hidden_sizes, perceptron, positive, require_tensor


class ScoringLayer(nn.Module):
    """A layer that begins with a perceptron from features to scores.

    Args:
        in_features: width of the features z.
        gate: widths of hidden layers (ReLU).
        outputs: number of scores.
    """

    def __init__(self, in_features: int, gate: Iterable[int] | int, outputs: int) -> None:
        super().__init__()
        self.in_features = positive(in_features, "in_features")
        hidden = hidden_sizes(gate)
        self.gate = perceptron(in_features, hidden).append(nn.Linear([in_features, *hidden][-1], outputs))

    def scores(self, z: Tensor) -> Tensor:
        """Scores [*batch, outputs] of features z [*batch, in_features], in at least float32.

        Raises:
            TypeError: if z is no tensor.
            ValueError: if z has the wrong width, or gives scores that are NaN or infinite; the message names the rows.
        """
        require_tensor(z, self.in_features)
        if z.shape[-1:] != (self.in_features,):
            raise ValueError(f"expected features of shape [*batch, {self.in_features}], got {tuple(z.shape)}")
        outputs = upcast(self.gate(z))
        check_finite(outputs, z.shape[:-1], "logits")
        return outputs


class LabelScores:
    """A baseline's prediction for a batch: log-odds [*batch, labels], the names of the labels, and torch's names for
    their shapes.

    Queries of the layers' distributions that a baseline cannot answer raise an error that says why.
    """

    logits: Tensor
    labels: tuple[str, ...]
    """Names of the columns of y; empty if the layer did not tell them."""
    method = ""
    reason = ""

    @property
    def batch_shape(self) -> torch.Size:
        """Shape of the batch."""
        return self.logits.shape[:-1]

    @property
    def event_shape(self) -> torch.Size:
        """Number of labels, as a shape."""
        return self.logits.shape[-1:]

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse the queries of the layers' distributions that this method does not answer."""
        if not name.startswith("_") and hasattr(ConstrainedDistribution, name):
            raise IntractableError(f"{self.method} has no {name}: {self.reason}; use sp.SPL instead")
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")


class ThresholdScores(LabelScores, ABC):
    """A score per label and no joint distribution; the prediction is the set of labels that score above 0.5."""

    reason = "it scores each label and defines no joint distribution (train it with p.loss(y))"

    @property
    @abstractmethod
    def mode(self) -> Tensor:
        """Labels that score above 0.5 [*batch, labels]."""

    def decode(self, utility: str) -> Tensor:
        """The labels above 0.5, for "mode" and "hamming": if scores are read as marginals, both are the same."""
        if utility not in ("mode", "hamming"):
            raise ValueError(f"{self.method} decodes by a threshold ('mode' or 'hamming'), not by {utility!r}")
        return self.mode


def upcast(values: Tensor) -> Tensor:
    """Half-precision values as float32."""
    return values.float() if values.dtype in (torch.float16, torch.bfloat16) else values


def binary(y: Tensor, shape: Sequence[int]) -> Tensor:
    """Label vectors as bools."""
    if y.dim() < len(shape) or tuple(y.shape[y.dim() - len(shape) :]) != tuple(shape):
        raise ValueError(f"expected y of shape {tuple(shape)}, got {tuple(y.shape)}")
    on = y > 0.5
    if not bool((on == y).all()):
        raise ValueError("y must contain only 0 and 1")
    return on


def column_names(labels: int | Iterable[str]) -> tuple[str, ...]:
    """Names of the columns: as given, or "1", "2", … for a number of labels."""
    if isinstance(labels, int):
        return tuple(str(number + 1) for number in range(positive(labels, "labels")))
    return checked_names(labels, "labels")
