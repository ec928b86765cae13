"""The fully independent layer: one sigmoid a label, no constraint."""

from __future__ import annotations

from collections.abc import Iterable

from torch import Tensor, nn

from semprola.circuit import CircuitBuilder
from semprola.distributions import ProductDistribution
from semprola.engine import Structure
from semprola.nn.gate import Gate, hidden_sizes, positive


class FIL(nn.Module):
    """Fully independent layer: p(y | z) is a product of sigmoids.

    It answers the same queries as a constrained layer (with every label vector allowed), so that the two can be
    exchanged in one line.

    Args:
        in_features: width of the features z.
        labels: number of labels, or their names.
        gate: widths of hidden layers.

    Example:
        >>> import torch, semprola as sp
        >>> sp.baselines.FIL(8, 3)(torch.randn(2, 8)).mode.shape
        torch.Size([2, 3])
    """

    def __init__(self, in_features: int, labels: int | Iterable[str], gate: Iterable[int] | int = ()) -> None:
        super().__init__()
        names = [str(i + 1) for i in range(positive(labels, "labels"))] if isinstance(labels, int) else list(labels)
        builder = CircuitBuilder(names)
        self.structure = Structure(builder.build(builder.true()))
        self.structure.prepare("constraint", "constraint_explicit")
        self.gate = Gate(positive(in_features, "in_features"), hidden_sizes(gate), 1, len(names))

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.structure.circuit.labels

    def forward(self, z: Tensor) -> ProductDistribution:
        """The distribution over y for features z [*batch, in_features]."""
        parameters, mixing = self.gate(z)
        return ProductDistribution(self.structure, parameters, mixing)
