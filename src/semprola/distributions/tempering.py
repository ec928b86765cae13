"""Distributions at another temperature: flatter or sharper, with the same support."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.evaluator import Evaluator


def tempered(p: ConstrainedDistribution, temperature: Tensor, mixing_temperature: Tensor | float = 1.0) -> Any:
    """The same distribution with the parameters of each component divided by a temperature.

    A temperature above 1 makes a component flatter, one below 1 makes it sharper. As the temperature grows, a component
    of `SPL` or of a factorised `ProductSPL` becomes uniform over the models of the constraint. Differentiable in the
    temperatures.

    Args:
        p: the distribution.
        temperature: one positive number per component [components].
        mixing_temperature: a positive number for the weights of the components.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.constrain(torch.tensor([4.0, 0.0, 0.0]), sp.one_hot(["a", "b", "c"]))
        >>> tempered(p, torch.tensor([4.0])).mean
        tensor([0.5761, 0.2119, 0.2119])
    """
    evaluator = p.evaluator
    log_mixing = torch.log_softmax(evaluator.log_mixing / mixing_temperature, 0)
    return p.over(Evaluator(evaluator.components.tempered(temperature), log_mixing))
