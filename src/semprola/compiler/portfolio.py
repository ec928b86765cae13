"""Chooses the back end for each part of a constraint.

Nobody knows in advance which back end is best, so `auto` tries them: each candidate gets a small number of nodes, then
ten times as many, until one finishes; then the others get a chance to do it with half of its nodes. These decisions
depend only on numbers of nodes and states, never on the clock, so the same constraint gives the same circuit on any
machine.
"""

from __future__ import annotations

import contextlib
import itertools
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from semprola.circuit import Circuit
from semprola.circuit.builder import watched
from semprola.compiler.backends import Backend, Components
from semprola.compiler.backends.automata.backend import Joint, compile_automata
from semprola.compiler.backends.external import compile_external, is_external
from semprola.compiler.backends.sdd.backend import compile_sdd
from semprola.compiler.backends.topdown.backend import compile_topdown, refute
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.budget import Budget
from semprola.compiler.decomposition import narrow_width
from semprola.compiler.vtree_choice import has_long_count, primal_cliques
from semprola.errors import CompilationBudgetError
from semprola.logic import Cnf, Formula, Leaf

BACKENDS: dict[str, Backend] = {"sdd": compile_sdd, "topdown": compile_topdown, "automata": compile_automata}
_OLD_NAMES = {"line": "automata", "bdd": "automata", "zdd": "automata"}


@dataclass(frozen=True)
class Tuning:
    """The thresholds of the choice. They are found by trial: see `benchmarks/compile_suite.py`.

    Attributes:
        few: with at most this many variables, every candidate takes milliseconds.
        narrow, very_narrow: the widths up to which PySDD has a chance, and is quick.
        most_rules, most_variables: with more, finding one order for all rules takes long, and there is rarely a good
            one.
        most_measured: with more literals, even measuring a width takes long.
        stages: the numbers of nodes that every candidate gets, one after the other.
        laborious: a search that took more steps per node before it failed gets no second chance: a good one takes about
            one.
        probe: the fewest nodes worth a first, smaller try.
        steps, few_steps: steps per node that a search may take; and the extra steps of a search that only has to beat a
            known circuit.
        waste, small_result: for a small result, a search may make this many times as many nodes on the way.
        certain, likely, possible: logarithms (base 2) of the number of joint states if rules were independent. Up to
            these, following the rules along an order is the first choice even for very narrow formulas, the first
            choice for all others, and worth an early try.
        late: with more joint states than `possible`, an order is followed only after others have failed with this many
            nodes.
        refute_seconds: the most that the search for any model may take.
        easy: a circuit with at most this many nodes per variable is kept without trying this back end.
        easy_if_narrow: the same for "automata", if the rules are so narrow that PySDD was the first choice.
    """

    few: int = 30
    narrow: int = 12
    very_narrow: int = 5
    most_rules: int = 3000
    most_variables: int = 1200
    most_measured: int = 200_000
    stages: tuple[int, ...] = (3_000, 30_000, 300_000, 3_000_000)
    laborious: float = 1.25
    probe: int = 500
    steps: int = 20
    few_steps: int = 2_000
    waste: int = 3
    small_result: int = 2_000
    certain: float = 16.0
    likely: float = 28.0
    possible: float = 40.0
    late: int = 300_000
    refute_seconds: float = 2.0
    easy: Mapping[str, float] = field(default_factory=lambda: {"automata": 2, "topdown": 2.5, "sdd": 12})
    easy_if_narrow: int = 5


TUNING = Tuning()


@dataclass(frozen=True)
class Made:
    """Circuits, the back ends that made them, and why these were chosen."""

    circuits: list[Circuit]
    backend: str
    reason: str


def checked_backend(backend: str) -> str:
    """The name of a back end; "automata", "bdd" and "zdd" are old names of "automata"."""
    if isinstance(backend, str) and backend in _OLD_NAMES:
        text = f"backend={backend!r} is now backend='automata'; the old name goes with the next release"
        warnings.warn(text, DeprecationWarning, stacklevel=3)
        return _OLD_NAMES[backend]
    if not isinstance(backend, str) or not (backend == "auto" or backend in BACKENDS or is_external(backend)):
        known = ", ".join(repr(name) for name in ("auto", *BACKENDS))
        raise ValueError(f"unknown backend {backend!r}: choose one of {known}, or your own compiler as 'd4:/path'")
    return backend


def compile_components(components: Components, backend: str, budget: Budget, given: Collection[str] = ()) -> Made:
    """Compile groups of conjuncts with the named back end, or with the best one for each group.

    Args:
        backend: "auto", a key of `BACKENDS`, or an external compiler such as "d4:/path".
    """
    if backend in BACKENDS:
        budget.tried.append(backend)
        return Made([BACKENDS[backend](components, budget, given)], backend, "chosen by the caller")
    if backend != "auto":
        return Made([compile_external(components, backend, budget)], backend, "chosen by the caller")
    parts = [_best(component, budget, given) for component in components]
    reasons = dict.fromkeys(reason for _, _, reason in parts)
    backends = sorted({name for _, name, _ in parts})
    return Made([circuit for circuit, _, _ in parts], "+".join(backends), "; ".join(reasons))


def prefers_clauses(cnf: Cnf, budget: Budget) -> str | None:
    """The reason to send a CNF to the top-down compiler as it is, or None if it deserves a closer look.

    Example:
        >>> prefers_clauses(Cnf(3, [[1, 2], [-2, 3]]), Budget()) is None
        True
    """
    if native_library() is None or cnf.num_vars <= TUNING.few:
        return None
    if len(cnf.literals) > TUNING.most_measured:
        return f"topdown: {cnf.num_clauses:,} clauses"
    flat, ends = (abs(cnf.literals) - 1).tolist(), cnf.offsets.tolist()
    cliques = [flat[start:end] for start, end in itertools.pairwise(ends)]
    found = narrow_width(cnf.num_vars, cliques, TUNING.narrow, lambda: budget.check("choosing a back end"))
    return f"topdown: {cnf.num_vars} variables, wider than {TUNING.narrow}" if found is None else None


def _best(component: Sequence[Formula], budget: Budget, given: Collection[str]) -> tuple[Circuit, str, str]:
    """The circuit of one group of rules, the back end that made it, and why."""
    choice = _choose(component, budget, given)
    trial = _Trial(component, choice, budget)
    if len(choice.backends) == 1:
        (name,) = choice.backends
        return trial.run(name, None), name, f"{name}: {choice.why}"
    for most in (*TUNING.stages, None):
        final = most is None or (budget.max_nodes is not None and most >= budget.max_nodes)
        made = trial.round(None if final else most)
        if made is not None:
            circuit, name = made
            return circuit, name, f"{name}: {', '.join(dict.fromkeys([choice.why, *trial.remarks]))}"
        if most == TUNING.stages[0]:
            _refuse(component, budget)
    raise budget.error("nodes")


def _refuse(component: Sequence[Formula], budget: Budget) -> None:
    """Check whether there is a model before doing much work; go on if that takes too long."""
    with contextlib.suppress(CompilationBudgetError):
        refute([component], budget.within(TUNING.refute_seconds))
    budget.check("choosing a back end")


@dataclass(frozen=True)
class _Choice:
    """Back ends worth trying, in this order, the reason for them, and what is known about the rules."""

    backends: list[str]
    why: str
    variables: int
    joint: Joint | None
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
        if name == "automata" and self.choice.joint is not None:
            return self.choice.joint.compile(self.budget.max_nodes if most is None else most, final=most is None)
        budget = self.budget if most is None else self.budget.limited(most, steps)
        return BACKENDS[name]([self.component], budget)

    def round(self, most: int | None) -> tuple[Circuit, str] | None:
        """Let each back end try with this many nodes; once one succeeds, the others try with half of its nodes."""
        best: tuple[Circuit, str] | None = None
        for name in self.choice.backends:
            if name == "automata" and self.choice.bits > TUNING.possible and most is not None and most < TUNING.late:
                continue
            if best is None:
                circuit = self._attempt(name, most, None if most is None else TUNING.steps * most)
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
        unlikely = name == "automata" and self.choice.bits > TUNING.possible
        narrow = name == "automata" and self.choice.backends[0] == "sdd"
        easy = TUNING.easy_if_narrow if narrow else TUNING.easy.get(name, 0)
        if unlikely or nodes <= easy * self.choice.variables:
            return None
        limit = max(1, nodes // 2)
        for most in (limit // 8, limit) if limit >= 8 * TUNING.probe else (limit,):
            if name in self._laborious:
                self.remarks.append(f"{name} takes too many steps")
                return None
            waste = TUNING.waste if name == "topdown" and most <= TUNING.small_result else 1
            circuit = self._attempt(name, waste * most, TUNING.few_steps + 2 * most)
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
            if error.decisions > TUNING.laborious * error.nodes:
                self._laborious.add(name)
            return None


def _choose(component: Sequence[Formula], budget: Budget, given: Collection[str] = ()) -> _Choice:
    check = budget.checker("choosing a back end")
    check()
    names = dict.fromkeys(name for conjunct in watched(component, check) for name in conjunct.labels)
    count = len(names)
    listed = len(component) <= TUNING.most_rules and count <= TUNING.most_variables
    joint = Joint(component, budget, given) if listed else None
    bits = joint.orders[0][0] if joint is not None else float("inf")
    native = native_library() is not None
    width, shape = _narrow(component, names, check)
    backends = [name for name, wanted in (("topdown", native), ("sdd", width is not None or not native)) if wanted]
    very_narrow = width is not None and width <= TUNING.very_narrow
    if not listed or very_narrow:
        backends.reverse()  # PySDD is quick on these, and its circuits have a vtree
    if listed and bits <= (TUNING.certain if very_narrow else TUNING.likely):
        backends.insert(0, "automata")
    elif listed:
        backends.insert(1, "automata")
    if listed:
        shape += f", joint states of all rules up to 2^{bits:.0f}"
    return _Choice(backends, f"{count:,} variables, {shape}", count, joint, bits)


def _narrow(
    component: Sequence[Formula], names: Mapping[str, None], check: Callable[[], None]
) -> tuple[int | None, str]:
    """The width if PySDD has a chance (the largest such width if it is not measured), and why or why not."""
    if len(names) <= TUNING.few:
        return TUNING.narrow, "few"
    if _has_opaque(component):
        return TUNING.narrow, "a family with an order of its own"
    cliques = primal_cliques(component, check)
    if sum(map(len, cliques)) > TUNING.most_measured:
        return None, f"{len(cliques):,} groups"
    if has_long_count(component):
        return TUNING.narrow, "a long count"
    index = {name: v for v, name in enumerate(names)}
    found = narrow_width(len(names), [[index[name] for name in clique] for clique in cliques], TUNING.narrow, check)
    return found, f"wider than {TUNING.narrow}" if found is None else f"width {found}"


def _has_opaque(component: Sequence[Formula]) -> bool:
    """Whether a family inside the rules is small only in its own order."""
    leaves = {node for part in component for node in part.nodes() if isinstance(node, Leaf)}
    return any(not isinstance(leaf, Cnf) and leaf.reader(leaf.labels) is None for leaf in leaves)
