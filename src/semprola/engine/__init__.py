"""Evaluates circuits on tensors: one upward and one downward pass, by torch or by native kernels.

``with semprola.engine.using("torch"):`` chooses the back end inside the block.
"""

import sys
import warnings
from contextlib import AbstractContextManager
from types import ModuleType

from semprola.engine.backends import get_engine, set_engine, using
from semprola.engine.backends.torch_chunks import get_memory, set_memory
from semprola.engine.circuit_plans import CircuitPlans
from semprola.engine.compatible import CompatiblePlans
from semprola.engine.literals import Literals, indicators
from semprola.engine.ops import choices, independent
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
    "independent",
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
    "using",
    "watched",
]


class _Callable(ModuleType):
    def __call__(self, name: str) -> AbstractContextManager[None]:
        """The old name of :func:`using`, which goes with the next release."""
        warnings.warn("sp.engine(...) is now sp.engine.using(...)", DeprecationWarning, stacklevel=2)
        return using(name)


sys.modules[__name__].__class__ = _Callable
