"""Chooses the back end for each part of a constraint.

Nobody knows in advance which back end is best, so `auto` tries them: each candidate gets a small number of nodes, then
ten times as many, until one finishes; then the others get a chance to do it with half of its nodes. These decisions
depend only on numbers of nodes and states, never on the clock, so the same constraint gives the same circuit on any
machine.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from semprola.circuit import Circuit
from semprola.circuit.builder import watched
from semprola.compiler.backends.automata.backend import Line, compile_line
from semprola.compiler.backends.bdd.backend import compile_bdd, compile_zdd
from semprola.compiler.backends.external import compile_external, is_external
from semprola.compiler.backends.sdd.backend import compile_sdd
from semprola.compiler.backends.topdown.backend import compile_topdown, refute
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.budget import Budget
from semprola.compiler.decomposition import narrow_width
from semprola.compiler.vtree_choice import has_long_count, primal_cliques
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
"""A back end takes groups of conjuncts that share no variable and returns a circuit over their variables."""

_SMALL = 30
"""With at most this many variables, every candidate takes milliseconds."""
_NARROW, _VERY_NARROW = 12, 5
"""The widths up to which PySDD has a chance, and is quick."""
_MOST_RULES, _MOST_VARIABLES = 3000, 1200
"""With more rules or variables, finding one order for all rules takes long, and there is rarely a good one."""
_MOST_MEASURED = 200_000
"""With more literals, even measuring a width takes long."""
_STAGES = (3_000, 30_000, 300_000, 3_000_000)
_TINY = 60
"""A circuit with so few nodes should not lose its vtree for a smaller one."""
_LABORIOUS = 1.25
"""A search that took more steps per node before it failed gets no second chance: a good one takes about one."""
_PROBE = 500
_STEPS, _FEW_STEPS = 20, 2_000
"""Steps per node that a search may take; and the extra steps of a search that only has to beat a known circuit."""
_WASTE, _SMALL_RESULT = 3, 2_000
"""For a small result, a search may make this many times as many nodes on the way."""
_CERTAIN, _LIKELY, _POSSIBLE = 16.0, 28.0, 40.0
"""Logarithms (base 2) of the number of joint states if rules were independent. Up to these, following the rules along
an order is the first choice even for very narrow formulas, the first choice for all others, and worth an early try."""
_REFUTE_SECONDS = 2.0
_LATE = 300_000
"""With more joint states than `_POSSIBLE`, an order is followed only after others have failed with this many nodes."""
_EASY = {"line": 2, "topdown": 2.5, "sdd": 12}
"""A circuit with at most this many nodes per variable is kept without trying this back end."""
_EASY_IF_NARROW = 5
"""The same for "line", if the rules are so narrow that PySDD was the first choice."""


@dataclass(frozen=True)
class Made:
    """Circuits, the back ends that made them, and why these were chosen."""

    circuits: list[Circuit]
    backend: str
    reason: str


def check_backend(backend: str) -> None:
    """Refuse an unknown back end.

    Raises:
        ValueError: there is no back end of this name.
    """
    if not isinstance(backend, str) or not (backend == "auto" or backend in BACKENDS or is_external(backend)):
        known = ", ".join(repr(name) for name in ("auto", *BACKENDS))
        raise ValueError(f"unknown backend {backend!r}: choose one of {known}, or your own compiler as 'd4:/path'")


def compile_components(components: Components, backend: str, budget: Budget, inputs: Collection[str] = ()) -> Made:
    """Compile groups of conjuncts with the named back end, or with the best one for each group.

    Args:
        components: groups of conjuncts; no two groups share a variable.
        backend: "auto", a key of `BACKENDS`, or an external compiler such as "d4:/path".
        budget: what may be used.
        inputs: variables that are given.

    Raises:
        UnsatisfiableError: there is no model.
        CompilationBudgetError: the budget ran out.
    """
    if backend in BACKENDS:
        budget.tried.append(backend)
        made = compile_line(components, budget, inputs) if backend == "line" else BACKENDS[backend](components, budget)
        return Made([made], backend, "chosen by the caller")
    if backend != "auto":
        return Made([compile_external(components, backend, budget)], backend, "chosen by the caller")
    parts = [_best(component, budget, inputs) for component in components]
    reasons = dict.fromkeys(reason for _, _, reason in parts)
    backends = sorted({name for _, name, _ in parts})
    return Made([circuit for circuit, _, _ in parts], "+".join(backends), "; ".join(reasons))


def prefers_clauses(cnf: Cnf, budget: Budget) -> str | None:
    """The reason to send a CNF to the top-down compiler as it is, or None if it deserves a closer look.

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


def _best(component: Sequence[Formula], budget: Budget, inputs: Collection[str]) -> tuple[Circuit, str, str]:
    """The circuit of one group of rules, the back end that made it, and why."""
    choice = _choose(component, budget, inputs)
    trial = _Trial(component, choice, budget)
    if len(choice.backends) == 1:
        (name,) = choice.backends
        return trial.run(name, None), name, f"{name}: {choice.why}"
    for most in (*_STAGES, None):
        final = most is None or (budget.max_nodes is not None and most >= budget.max_nodes)
        made = trial.round(None if final else most)
        if made is not None:
            circuit, name = made
            return circuit, name, f"{name}: {', '.join(dict.fromkeys([choice.why, *trial.remarks]))}"
        if most == _STAGES[0]:
            _refuse(component, budget)
    raise budget.error("nodes")


def _refuse(component: Sequence[Formula], budget: Budget) -> None:
    """Check whether there is a model before doing much work; go on if that takes too long."""
    with contextlib.suppress(CompilationBudgetError):
        refute([component], budget.within(_REFUTE_SECONDS))
    budget.check("choosing a back end")


@dataclass(frozen=True)
class _Choice:
    """Back ends worth trying, in this order, the reason for them, and what is known about the rules."""

    backends: list[str]
    why: str
    variables: int
    line: Line | None
    bits: float


class _Trial:
    """Back ends that compete for one group of rules."""

    def __init__(self, component: Sequence[Formula], choice: _Choice, budget: Budget) -> None:
        self.component, self.choice, self.budget = component, choice, budget
        self.remarks: list[str] = []
        self._laborious: set[str] = set()
        self._failed: CompilationBudgetError | None = None

    def run(self, name: str, most: int | None, steps: int | None = None) -> Circuit:
        """The circuit of one back end, within limits on its nodes and the steps of a search."""
        self.budget.tried.append(name)
        if name == "line" and self.choice.line is not None:
            return self.choice.line.compile(self.budget.max_nodes if most is None else most, final=most is None)
        budget = self.budget if most is None else self.budget.limited(most, steps)
        return BACKENDS[name]([self.component], budget)

    def round(self, most: int | None) -> tuple[Circuit, str] | None:
        """Let each back end try with this many nodes; once one succeeds, the others try with half of its nodes."""
        best: tuple[Circuit, str] | None = None
        for name in self.choice.backends:
            if name == "line" and self.choice.bits > _POSSIBLE and most is not None and most < _LATE:
                continue
            if best is None:
                circuit = self._attempt(name, most, None if most is None else _STEPS * most)
                best = None if circuit is None else (circuit, name)
            elif (better := self._better(name, best[0].num_nodes)) is not None:
                self.remarks.append(f"{best[1]} needs {best[0].num_nodes:,} nodes")
                best = better, name
        if best is not None:
            self.remarks.append(f"{best[0].num_nodes:,} nodes")
        elif most is None and self._failed is not None:
            raise self._failed
        return best

    def _better(self, name: str, nodes: int) -> Circuit | None:
        """The circuit of another back end if it has at most half as many nodes; None if that is unlikely."""
        unlikely = nodes <= _TINY if name == "topdown" else name == "line" and self.choice.bits > _POSSIBLE
        narrow = name == "line" and self.choice.backends[0] == "sdd"
        easy = _EASY_IF_NARROW if narrow else _EASY.get(name, 0)
        if unlikely or nodes <= easy * self.choice.variables:
            return None
        limit = max(1, nodes // 2)
        for most in (limit // 8, limit) if limit >= 8 * _PROBE else (limit,):
            if name in self._laborious:
                self.remarks.append(f"{name} takes too many steps")
                return None
            waste = _WASTE if name == "topdown" and most <= _SMALL_RESULT else 1
            circuit = self._attempt(name, waste * most, _FEW_STEPS + 2 * most)
            if circuit is not None:
                return circuit if circuit.num_nodes <= limit else None
        self.remarks.append(f"{name} needs more than {limit:,} nodes")
        return None

    def _attempt(self, name: str, most: int | None, steps: int | None) -> Circuit | None:
        """The circuit of a back end; None if it needs more nodes."""
        try:
            return self.run(name, most, steps)
        except CompilationBudgetError as error:
            if error.resource != "nodes":
                raise
            self._failed = error
            if error.decisions > _LABORIOUS * error.nodes:
                self._laborious.add(name)
            return None


def _choose(component: Sequence[Formula], budget: Budget, inputs: Collection[str] = ()) -> _Choice:
    check = budget.checker("choosing a back end")
    check()
    names = dict.fromkeys(name for conjunct in watched(component, check) for name in conjunct.labels)
    count = len(names)
    listed = len(component) <= _MOST_RULES and count <= _MOST_VARIABLES
    line = Line(component, budget, inputs) if listed else None
    bits = line.orders[0][0] if line is not None else float("inf")
    native = native_library() is not None
    width, shape = _narrow(component, names, check)
    backends = [name for name, wanted in (("topdown", native), ("sdd", width is not None or not native)) if wanted]
    very_narrow = width is not None and width <= _VERY_NARROW
    if not listed or very_narrow:
        backends.reverse()  # PySDD is quick on these, and its circuits have a vtree
    if listed and bits <= (_CERTAIN if very_narrow else _LIKELY):
        backends.insert(0, "line")
    elif listed:
        backends.insert(1, "line")
    if listed:
        shape += f", joint states of all rules up to 2^{bits:.0f}"
    return _Choice(backends, f"{count:,} variables, {shape}", count, line, bits)


def _narrow(
    component: Sequence[Formula], names: Mapping[str, None], check: Callable[[], None]
) -> tuple[int | None, str]:
    """The width if PySDD has a chance (the largest such width if it is not measured), and why or why not."""
    if len(names) <= _SMALL:
        return _NARROW, "few"
    if _has_opaque(component):
        return _NARROW, "a family with an order of its own"
    cliques = primal_cliques(component, check)
    if sum(map(len, cliques)) > _MOST_MEASURED:
        return None, f"{len(cliques):,} groups"
    if has_long_count(component):
        return _NARROW, "a long count"
    index = {name: v for v, name in enumerate(names)}
    found = narrow_width(len(names), [[index[name] for name in clique] for clique in cliques], _NARROW, check)
    return found, f"wider than {_NARROW}" if found is None else f"width {found}"


def _has_opaque(component: Sequence[Formula]) -> bool:
    """Whether a family inside the rules is small only in its own order."""
    leaves = {node for part in component for node in part.nodes() if isinstance(node, Leaf)}
    return any(not isinstance(leaf, Cnf) and leaf.reader(leaf.labels) is None for leaf in leaves)
