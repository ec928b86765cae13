"""Evaluates circuits on tensors: one upward and one downward pass, by torch or by native kernels."""

from semprola.engine.choice import get_engine, set_engine
from semprola.engine.chunks import get_memory, set_memory
from semprola.engine.compatible import CompatibleStructure
from semprola.engine.likelihood import encode, is_binary, likelihood
from semprola.engine.literals import Literals, indicators
from semprola.engine.ops import active, log_softmax, log_value, logits_of, possible, posterior, supported
from semprola.engine.plan import Plan
from semprola.engine.structure import Structure

__all__ = [
    "CompatibleStructure",
    "Literals",
    "Plan",
    "Structure",
    "active",
    "encode",
    "get_engine",
    "get_memory",
    "indicators",
    "is_binary",
    "likelihood",
    "log_softmax",
    "log_value",
    "logits_of",
    "possible",
    "posterior",
    "set_engine",
    "set_memory",
    "supported",
]
