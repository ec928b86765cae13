"""Where a training starts: a new layer at the frequencies of the training labels."""

from __future__ import annotations

from torch import nn

from semprola.nn import PooledLayer
from semprola.nn.base import GatedLayer
from semprola.training.data import Batch

_MOST_ROWS = 2**14
"""Frequencies are counted in some of the rows if there are more."""


def start_new_layer(model: nn.Module, rows: Batch) -> bool:
    """Start the layer of a model at the frequencies of the labels, if there is one and it is new.

    Rows with labels that are not observed, or of weight 0, do not count. A layer whose constraint has inputs is left
    alone, because its start can take long. So is one whose rows violate the constraint: training will name them.

    Args:
        model: what will be trained.
        rows: the training rows.

    Returns:
        Whether the layer was started.
    """
    pools = [module for module in model.modules() if isinstance(module, PooledLayer)]
    inner = {member for pool in pools for member in pool.members}
    single = [module for module in model.modules() if isinstance(module, GatedLayer) and module not in inner]
    layers: list[GatedLayer | PooledLayer] = [*pools, *single]
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
