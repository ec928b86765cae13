"""Distributions at another temperature: flatter or sharper, with the same support."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.compatible import CompatibleDistribution
from semprola.distributions.product import ProductDistribution
from semprola.distributions.spl import SPLDistribution
from semprola.engine import logits_of


def tempered(p: ConstrainedDistribution, temperature: Tensor, mixing_temperature: Tensor | float = 1.0) -> Any:
    """The same distribution with the parameters of each component divided by a temperature.

    A temperature above 1 makes a component flatter, below 1 sharper; as it grows, a component of `SPL` or of a
    factorised `ProductSPL` becomes uniform over the models of the constraint. Differentiable in the temperatures.

    Args:
        p: the distribution.
        temperature: one number above zero for each component [components].
        mixing_temperature: the same for the weights of the components.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.constrain(torch.tensor([4.0, 0.0, 0.0]), sp.one_hot(["a", "b", "c"]))
        >>> tempered(p, torch.tensor([4.0])).mean
        tensor([0.5761, 0.2119, 0.2119])
    """
    index = torch.arange(p._batch, device=p._log_mixing.device)
    new = p._select(index, p.batch_shape, p._observed, p._has_evidence)
    scale = 1 / temperature.to(p._log_mixing)

    def scaled(columns: Tensor) -> Tensor:
        return (p._split_columns(columns) * scale[:, None]).flatten(1)

    if isinstance(p, ProductDistribution):
        new._logits = scaled(p._logits)
    elif isinstance(p, SPLDistribution):
        # the logits of the uniform distribution are the counts of models below each branch, not zeros
        uniform = logits_of(p._structure.layer, p._structure.log_counts).to(p._logits)[:, None]
        new._logits = uniform + scaled(p._logits - uniform)
    elif isinstance(p, CompatibleDistribution):
        new._log_parameters = p._structure.normalize(scaled(p._log_parameters))
    else:
        raise TypeError(f"{type(p).__name__} has no temperature")
    new._log_mixing = torch.log_softmax(p._log_mixing / mixing_temperature, 0)
    return new
