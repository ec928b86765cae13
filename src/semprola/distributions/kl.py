"""Kullback-Leibler divergence between two distributions over the same circuit."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import register_kl

from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.information import component_entropies, expected_log_value, listed
from semprola.distributions.numeric import intractable


def kl_divergence(p: ConstrainedDistribution, q: ConstrainedDistribution) -> Tensor:
    """KL(p || q) [*batch], exact; +inf where q excludes what p allows.

    Raises:
        ValueError: the two circuits differ.
        IntractableError: mixtures with a large support.
    """
    if p.circuit != q.circuit:
        raise ValueError("kl_divergence needs two distributions over the same circuit")
    shape = torch.broadcast_shapes(p.batch_shape, q.batch_shape)
    p, q = p.expand(shape), q.expand(shape)
    if all(r._components == 1 and r._is_deterministic for r in (p, q)):
        cross = expected_log_value(p, q)[0] - q._log_partition
        return (-component_entropies(p)[0] - cross).reshape(shape)
    if p._can_list_states():
        of_p, of_q = listed(p), listed(q)
        impossible = of_p == float("-inf")
        gap = of_p.masked_fill(impossible, 0.0) - of_q.masked_fill(impossible, 0.0)
        return (of_p.exp() * gap).sum(0).reshape(shape)
    raise intractable("kl_divergence", "the mean of p.log_prob(y) - q.log_prob(y) over samples y of p")


register_kl(ConstrainedDistribution, ConstrainedDistribution)(kl_divergence)
