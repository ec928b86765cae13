"""Distributions over a split: one per circuit, pooled into one over the states that satisfy all rules."""

from semprola.distributions.pool.distribution import PoolDistribution
from semprola.distributions.pool.pooling import independent
from semprola.distributions.pool.search import Limits

__all__ = ["Limits", "PoolDistribution", "independent"]
