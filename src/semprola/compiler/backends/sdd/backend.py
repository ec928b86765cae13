"""The PySDD back end: conjuncts become a program, run over a vtree chosen for them."""

from __future__ import annotations

from collections.abc import Sequence

from semprola.circuit import Circuit
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.translation import translated
from semprola.compiler.budget import Budget
from semprola.logic import Formula


def compile_sdd(components: Sequence[Sequence[Formula]], budget: Budget) -> Circuit:
    """A structured circuit for a conjunction.

    Args:
        components: groups of conjuncts; no two groups share a variable.
        budget: what may be used.

    Returns:
        A circuit whose labels are the variables of the conjuncts.

    Raises:
        UnsatisfiableError: there is no model.
        CompilationBudgetError: the budget ran out.
    """
    return run(*translated(components, budget), budget)
