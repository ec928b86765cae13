"""Evaluates circuits on tensors: one upward and one downward pass, by torch or by native kernels.

The package is callable: ``with semprola.engine("torch"):`` chooses the back end inside the block.
"""

import sys
from contextlib import AbstractContextManager
from types import ModuleType

from semprola.engine.backends import engine, get_engine, set_engine
from semprola.engine.backends.torch_chunks import get_memory, set_memory
from semprola.engine.circuit_plans import CircuitPlans
from semprola.engine.compatible import CompatiblePlans
from semprola.engine.literals import Literals, indicators
from semprola.engine.ops import choices
from semprola.engine.ops.gates import gate_likelihood, uses_few_rows
from semprola.engine.ops.likelihoods import encode, is_binary, likelihood
from semprola.engine.ops.marginals import marginal_likelihood
from semprola.engine.ops.registration import watched
from semprola.engine.ops.values import active, log_value, possible, posterior, supported
from semprola.engine.plan import Plan
from semprola.engine.softmax import log_softmax, logits_of

__all__ = [
    "CircuitPlans",
    "CompatiblePlans",
    "Literals",
    "Plan",
    "active",
    "choices",
    "encode",
    "gate_likelihood",
    "get_engine",
    "get_memory",
    "indicators",
    "is_binary",
    "likelihood",
    "log_softmax",
    "log_value",
    "logits_of",
    "marginal_likelihood",
    "possible",
    "posterior",
    "set_engine",
    "set_memory",
    "supported",
    "uses_few_rows",
    "watched",
]


class _Callable(ModuleType):
    def __call__(self, name: str) -> AbstractContextManager[None]:
        """See :func:`semprola.engine.backends.engine`."""
        return engine(name)


# `semprola.engine` is both the package and the context manager; a callable module keeps both
sys.modules[__name__].__class__ = _Callable
