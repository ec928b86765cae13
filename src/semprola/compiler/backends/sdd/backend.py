"""The PySDD back end: conjuncts become a program that runs over a vtree chosen for them."""

from __future__ import annotations

from collections.abc import Collection

from semprola.circuit import Circuit
from semprola.compiler.backends import Components
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.sdd.translation import translated
from semprola.compiler.budget import Budget


def compile_sdd(components: Components, budget: Budget, given: Collection[str] = ()) -> Circuit:
    """A circuit structured by a vtree; see `Backend`."""
    return run(*translated(components, budget), budget)
