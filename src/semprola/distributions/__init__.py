"""Distributions over label vectors that obey a constraint."""

from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.mixtures import MixtureDistribution, mixture
from semprola.distributions.pool import PoolDistribution
from semprola.distributions.product import CompatibleDistribution, ProductDistribution
from semprola.distributions.spl import SPLDistribution
from semprola.distributions.violations import Violation, violations

__all__ = [
    "CompatibleDistribution",
    "ConstrainedDistribution",
    "MixtureDistribution",
    "PoolDistribution",
    "ProductDistribution",
    "SPLDistribution",
    "Violation",
    "mixture",
    "violations",
]
