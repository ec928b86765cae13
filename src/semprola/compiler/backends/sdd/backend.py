"""The PySDD back end: conjuncts become a program that runs over a vtree chosen for them."""

from __future__ import annotations

from collections.abc import Sequence

from semprola.circuit import Circuit
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.translation import translated
from semprola.compiler.budget import Budget
from semprola.logic import Formula


def compile_sdd(components: Sequence[Sequence[Formula]], budget: Budget) -> Circuit:
    """A circuit structured by a vtree; arguments, result and errors are those of `compile_topdown`."""
    return run(*translated(components, budget), budget)
