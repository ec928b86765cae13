"""Evaluates circuits on tensors: one upward and one downward pass."""

from semprola.engine.compatible import CompatibleStructure
from semprola.engine.literals import Literals, indicators
from semprola.engine.ops import active, log_softmax, log_value, possible, posterior
from semprola.engine.plan import Plan
from semprola.engine.structure import Structure

__all__ = [
    "CompatibleStructure",
    "Literals",
    "Plan",
    "Structure",
    "active",
    "indicators",
    "log_softmax",
    "log_value",
    "possible",
    "posterior",
]
