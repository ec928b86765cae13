"""The network for tables, and where training starts a new layer: at the frequencies of the labels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.nn import SPL, PooledLayer, ProductSPL
from semprola.nn.base import GatedLayer
from semprola.nn.gate import check_size, perceptron
from semprola.nn.standardize import Standardize
from semprola.training.data import Batch
from semprola.training.targets import outer_modules


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


_MOST_ROWS = 2**14
"""Frequencies are counted in some of the rows if there are more."""


def start_new_layer(model: nn.Module, rows: Batch) -> bool:
    """Start the layer of a model at the frequencies of the labels, if there is one and it is new.

    Rows with labels that are not observed, or of weight 0, do not count. A layer whose constraint has inputs is left
    alone, because its start can take long. So is one whose rows violate the constraint: training will name them.

    Returns:
        Whether the layer was started.
    """
    layers = [module for module in outer_modules(model) if isinstance(module, GatedLayer | PooledLayer)]
    if len(layers) != 1 or layers[0].circuit.given or not layers[0].is_new:
        return False
    counted = ~rows.y.isnan().any(-1)
    if rows.weight is not None:
        counted &= rows.weight > 0
    chosen = counted.nonzero().flatten()
    if not len(chosen):
        return False
    chosen = chosen[:: -(-len(chosen) // _MOST_ROWS)]
    weight = None if rows.weight is None else rows.weight[chosen]
    try:
        layers[0].start_at(rows.y[chosen], weight=weight, scale=1.0)
    except ValueError:
        return False
    return True
