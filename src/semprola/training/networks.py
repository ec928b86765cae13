"""The network for tables: standardised inputs, a perceptron, and a constrained layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.nn import SPL, ProductSPL
from semprola.nn.standardize import Standardize


def tabular_network(
    x: Tensor,
    y: Tensor,
    weight: Tensor | None,
    circuit: Circuit,
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
        circuit: the compiled constraint.
        hidden: widths of the hidden layers.
        dropout: probability of dropout after each hidden layer.
        layer: "single" (`SPL`) or "product" (`ProductSPL`).
        components: number of mixture components.
        units: number of units per sum, for "single".
    """
    modules: list[nn.Module] = [Standardize(x.shape[1]).measure(x, weight)]
    width = x.shape[1]
    for size in hidden:
        modules += [nn.Linear(width, size), nn.ReLU()]
        modules += [nn.Dropout(dropout)] if dropout else []
        width = size
    if layer == "single":
        last: Any = SPL(width, circuit, components=components, units=units)
    else:
        last = ProductSPL(width, circuit, components=components)
    complete = ~y.isnan().any(1)
    if bool(complete.any()):
        last.start_at(y[complete], scale=1.0)
    return nn.Sequential(*modules, last)
