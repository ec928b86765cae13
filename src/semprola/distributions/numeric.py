"""Small numerical helpers shared by the queries."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.errors import IntractableError

_NEGATIVE_INFINITY = float("-inf")


def log_sum_exp(values: Tensor, dim: int) -> Tensor:
    """log-sum-exp whose derivative is zero, not NaN, where everything is -inf."""
    dead = (values == _NEGATIVE_INFINITY).all(dim)
    total = torch.logsumexp(values.masked_fill(dead.unsqueeze(dim), 0.0), dim)
    return total.masked_fill(dead, _NEGATIVE_INFINITY)


def intractable(what: str, instead: str) -> IntractableError:
    """The error for a query that has no exact answer in linear time."""
    return IntractableError(f"{what} is not tractable for a mixture with a large support: use {instead}")
