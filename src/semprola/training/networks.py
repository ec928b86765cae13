"""The network for tables: standardised inputs, a perceptron, and a constrained layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.nn import SPL, ProductSPL
from semprola.nn.gate import check_size, perceptron
from semprola.nn.standardize import Standardize


def tabular_network(
    x: Tensor,
    y: Tensor,
    weight: Tensor | None,
    circuit: Circuit | Split,
    *,
    hidden: Sequence[int],
    dropout: float,
    layer: str,
    components: int,
    units: int,
) -> nn.Sequential:
    """A network that standardises its inputs and starts at the frequencies of the labels.

    Args:
        x: training inputs [rows, features].
        y: training labels, NaN where not observed [rows, labels].
        weight: weights of the rows [rows], or None.
        circuit: the compiled constraint, or a split.
        hidden: widths of the hidden layers.
        dropout: probability of dropout after each hidden layer.
        layer: "spl" or "product-spl".
        components: number of mixture components.
        units: number of units per sum, for "spl".
    """
    inputs = x.shape[1]
    check_size([inputs, *hidden])
    backbone, width = perceptron(inputs, hidden, dropout), [inputs, *hidden][-1]
    if layer == "spl":
        last: Any = SPL(width, circuit, components=components, units=units)
    else:
        last = ProductSPL(width, circuit, components=components)
    complete = ~y.isnan().any(1)
    if bool(complete.any()):
        last.start_at(y[complete], scale=1.0)
    return nn.Sequential(Standardize(inputs).measure(x, weight), *backbone, last)
