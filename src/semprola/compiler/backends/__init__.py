"""Back ends: each compiles groups of conjuncts that share no variable to a circuit, within a budget."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.logic import Formula

Components = Sequence[Sequence[Formula]]


class Backend(Protocol):
    """What every back end is."""

    def __call__(self, components: Components, budget: Budget, given: Collection[str] = (), /) -> Circuit:
        """A deterministic, decomposable circuit over the variables of some formulas.

        Args:
            components: groups of conjuncts; no two groups share a variable.
            budget: what may be used; check it often, it raises when time, nodes or memory run out.
            given: variables that will be given variables of the circuit, so they must not be zero-suppressed.

        Raises:
            UnsatisfiableError: there is no model.
            CompilationBudgetError: the budget ran out.
        """
        ...
