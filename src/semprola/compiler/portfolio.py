"""Which compiler takes which part of a constraint, and why."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from semprola.circuit import Circuit
from semprola.circuit.builder import watched
from semprola.compiler.backends.bdd.backend import compile_bdd, compile_zdd
from semprola.compiler.backends.external import compile_external, is_external
from semprola.compiler.backends.line.backend import compile_line
from semprola.compiler.backends.sdd.backend import compile_sdd
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.budget import Budget
from semprola.compiler.clausal import compile_topdown
from semprola.compiler.decomposition import narrow_width
from semprola.compiler.orders import has_long_count, primal_cliques
from semprola.errors import CompilationBudgetError
from semprola.logic import Cnf, Formula, Leaf

Components = Sequence[Sequence[Formula]]
Backend = Callable[[Components, Budget], Circuit]

BACKENDS: dict[str, Backend] = {
    "sdd": compile_sdd,
    "topdown": compile_topdown,
    "line": compile_line,
    "bdd": compile_bdd,
    "zdd": compile_zdd,
}
"""A back end takes groups of conjuncts that share no variable and gives a circuit over their variables."""

# Measured on random 3-SAT, grids, queens, Latin squares and competition CNFs: up to here PySDD needs about a tenth of a
# second and its circuit is about as small; beyond, the top-down compiler is 10 to 100 times as fast.
_SMALL = 30
_NARROW = 12
_MOST_SDD_NODES = 300_000
_MOST_MEASURED = 200_000
"""Literals beyond which even looking for an order takes long, and nobody asks for a structured circuit."""


@dataclass(frozen=True)
class Made:
    """A circuit, which back ends made it, and why these."""

    circuits: list[Circuit]
    backend: str
    reason: str


def check_backend(backend: str) -> None:
    """Refuse a name that is no back end.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(backend, str) or not (backend == "auto" or backend in BACKENDS or is_external(backend)):
        known = ", ".join(repr(name) for name in ("auto", *BACKENDS))
        raise ValueError(f"unknown backend {backend!r}: choose one of {known}, or a compiler of yours as 'd4:/path'")


def compile_components(components: Components, backend: str, budget: Budget) -> Made:
    """Compile groups of conjuncts by the back end that is named, or by the best for each.

    Args:
        components: groups of conjuncts; no two groups share a variable.
        backend: "auto", a key of `BACKENDS`, or a compiler outside such as "d4:/path".
        budget: what may be used.

    Raises:
        UnsatisfiableError: there is no model.
        CompilationBudgetError: the budget ran out.
    """
    if backend in BACKENDS:
        return Made([BACKENDS[backend](components, budget)], backend, "chosen by the caller")
    if backend != "auto":
        return Made([compile_external(components, backend, budget)], backend, "chosen by the caller")
    choices = [_choose(component, budget) for component in components]
    groups: dict[str, list[Sequence[Formula]]] = {}
    for component, (name, _) in zip(components, choices, strict=True):
        groups.setdefault(name, []).append(component)
    circuits, used = [], []
    reasons = list(dict.fromkeys(f"{name}: {reason}" for name, reason in choices))
    for name, group in sorted(groups.items()):
        if name == "sdd":
            made, name, more = _sdd_first(group, budget)
            reasons += more
        else:
            made = BACKENDS[name](group, budget)
        circuits.append(made)
        used.append(name)
    return Made(circuits, "+".join(dict.fromkeys(used)), "; ".join(reasons))


def prefers_clauses(cnf: Cnf, budget: Budget) -> str | None:
    """Why a CNF goes to the top-down compiler as it is, or None if it deserves a closer look.

    Example:
        >>> prefers_clauses(Cnf(3, [[1, 2], [-2, 3]]), Budget()) is None
        True
    """
    if native_library() is None or cnf.num_vars <= _SMALL:
        return None
    if len(cnf.literals) > _MOST_MEASURED:
        return f"topdown: {cnf.num_clauses:,} clauses"
    flat, ends = (abs(cnf.literals) - 1).tolist(), cnf.offsets.tolist()
    cliques = [flat[start:end] for start, end in itertools.pairwise(ends)]
    found = narrow_width(cnf.num_vars, cliques, _NARROW, lambda: budget.check("choosing a back end"))
    return f"topdown: {cnf.num_vars} variables, wider than {_NARROW}" if found is None else None


def _choose(component: Sequence[Formula], budget: Budget) -> tuple[str, str]:
    def check() -> None:
        budget.check("choosing a back end")

    check()
    names = dict.fromkeys(name for conjunct in watched(component, check) for name in conjunct.labels())
    if len(names) <= _SMALL:
        return "sdd", f"at most {_SMALL} variables, so a structured circuit is cheap"
    if _has_family(component):
        return "sdd", "a family is combined with other rules, and keeps its variable order"
    if has_long_count(component):
        return "sdd", "a long counting constraint is small along a variable order"
    if native_library() is None:
        return "sdd", "the native module is absent"
    cliques = primal_cliques(component, check)
    if sum(map(len, cliques)) > _MOST_MEASURED:
        return "topdown", f"{len(names):,} variables in {len(cliques):,} groups"
    index = {name: v for v, name in enumerate(names)}
    numbered = [[index[name] for name in clique] for clique in cliques]
    found = narrow_width(len(names), numbered, _NARROW, check)
    if found is not None:
        return "sdd", f"width {found} is at most {_NARROW}, so a structured circuit is cheap"
    return "topdown", f"{len(names)} variables, wider than {_NARROW}"


def _sdd_first(components: Components, budget: Budget) -> tuple[Circuit, str, list[str]]:
    """PySDD, and the top-down compiler where PySDD turns out to need more than was thought."""
    most = min(budget.max_nodes or _MOST_SDD_NODES, _MOST_SDD_NODES)
    if native_library() is None or any(_has_family(component) or has_long_count(component) for component in components):
        return compile_sdd(components, budget), "sdd", []
    try:
        return compile_sdd(components, budget.limited(most)), "sdd", []
    except CompilationBudgetError as error:
        if error.resource != "nodes" or (budget.max_nodes or most + 1) <= most:
            raise
        return compile_topdown(components, budget), "topdown", [f"topdown: PySDD went beyond {most:,} nodes"]


def _has_family(component: Sequence[Formula]) -> bool:
    return any(isinstance(node, Leaf) and not isinstance(node, Cnf) for part in component for node in part.nodes())
