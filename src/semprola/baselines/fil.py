"""The fully independent layer: one sigmoid per label, no constraint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch

from semprola.baselines.common import column_names
from semprola.circuit import CircuitBuilder
from semprola.nn import ProductSPL
from semprola.nn.base import GateLike


class FIL(ProductSPL):
    """Fully independent layer: p(y | z) is a product of sigmoids.

    It is a :class:`ProductSPL` whose constraint allows every label vector. It answers the same queries and takes most
    of the same options, so you can swap the two by changing one line.

    Args:
        in_features: width of the features z.
        labels: number of labels, or their names.
        components: number of mixture components, 1 by default; labels are independent within each.
        gate: widths of the gate's hidden layers, or a module; see :class:`ProductSPL`.
        dropout: probability of dropout in the gate, after each hidden layer.
        device: where the parameters live.
        dtype: type of the parameters.

    Example:
        >>> import torch, semprola as sp
        >>> sp.baselines.FIL(8, 3)(torch.randn(2, 8)).mode.shape
        torch.Size([2, 3])
    """

    def __init__(
        self,
        in_features: int,
        labels: int | Iterable[str],
        *,
        components: int | None = None,
        gate: GateLike = (),
        dropout: float = 0.0,
        device: Any = None,
        dtype: torch.dtype | None = None,
    ) -> None:
        names = column_names(labels)
        builder = CircuitBuilder(names)
        circuit = builder.build(builder.true())
        options = {"components": components, "dropout": dropout, "device": device, "dtype": dtype}
        super().__init__(in_features, circuit, gate=gate, **options)
