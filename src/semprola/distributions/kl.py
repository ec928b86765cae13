"""Kullback-Leibler divergence between two distributions over the same circuit."""

from __future__ import annotations

from torch import Tensor
from torch.distributions import register_kl

from semprola.distributions.arguments import common_batch
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.information import divergence


def kl_divergence(p: ConstrainedDistribution, q: ConstrainedDistribution) -> Tensor:
    """KL(p || q) [*batch], exact; +inf where q excludes what p allows.

    Raises:
        ValueError: if the two circuits differ, or the batches do not broadcast.
        IntractableError: for mixtures with a large support.
    """
    if p.circuit != q.circuit:
        raise ValueError("kl_divergence needs two distributions over the same circuit")
    shape = common_batch([p.batch_shape, q.batch_shape], "kl_divergence")
    return divergence(p.expand(shape).evaluator, q.expand(shape).evaluator).reshape(shape)


register_kl(ConstrainedDistribution, ConstrainedDistribution)(kl_divergence)
