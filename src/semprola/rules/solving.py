"""Questions to a SAT solver: python-sat if it is installed, otherwise the compiler of clauses, for small cases.

What is asked about rules (contradictions, what follows, the smallest change) needs three things only: is there a model
under some assumptions, which one, and if there is none, which assumptions are to blame.
"""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from semprola.compiler.backends.topdown.search import Ddnnf, compile_cnf
from semprola.compiler.budget import Budget
from semprola.errors import UnsatisfiableError

Item = TypeVar("Item")

_CONFLICTS = 2_000
"""The solver looks at the clock after this many conflicts."""
_SUM = 2


class Solver(ABC):
    """Clauses that grow, and questions about them. Literals are those of DIMACS.

    Args:
        budget: what a question may use; it may be replaced between two questions.
    """

    def __init__(self, num_vars: int, budget: Budget) -> None:
        self.num_vars, self.budget = num_vars, budget

    def new(self) -> int:
        """A new variable."""
        self.num_vars += 1
        return self.num_vars

    @abstractmethod
    def add(self, clause: Sequence[int]) -> None:
        """Add a clause over variables that exist."""

    @abstractmethod
    def solve(self, assumptions: Sequence[int] = ()) -> bool:
        """Whether there is a model in which the assumptions hold."""

    @abstractmethod
    def model(self) -> NDArray[np.bool_]:
        """The model that the last question found: one value per variable, variable v at place v - 1."""

    @abstractmethod
    def core(self) -> list[int]:
        """Some of the last assumptions that no model has together; all others can be left out."""

    def obvious(self, assumptions: Sequence[int]) -> list[int]:
        """Literals that hold in every model with these assumptions and are found without a search; maybe none."""
        return []

    @abstractmethod
    def prefer(self, literals: Iterable[int]) -> None:
        """Try these literals first where the clauses leave a choice."""


def new_solver(num_vars: int, clauses: Iterable[Sequence[int]], budget: Budget) -> Solver:
    """A solver with these clauses."""
    kind: Callable[[int, Budget], Solver] = PySatSolver if importlib.util.find_spec("pysat") else CompilerSolver
    solver = kind(num_vars, budget)
    for clause in clauses:
        solver.add(clause)
    return solver


class PySatSolver(Solver):
    """A solver of python-sat, which keeps what it has learnt from one question to the next."""

    def __init__(self, num_vars: int, budget: Budget) -> None:
        from pysat.solvers import Minisat22

        super().__init__(num_vars, budget)
        self._solver: Any = Minisat22()

    def add(self, clause: Sequence[int]) -> None:
        self._solver.add_clause(list(clause))

    def solve(self, assumptions: Sequence[int] = ()) -> bool:
        while True:
            self.budget.check("asking the solver")
            self._solver.conf_budget(_CONFLICTS)
            answer = self._solver.solve_limited(assumptions=list(assumptions))
            if answer is not None:
                return bool(answer)

    def model(self) -> NDArray[np.bool_]:
        values = np.zeros(self.num_vars, dtype=bool)
        known = np.array(self._solver.get_model() or (), dtype=np.int64)
        values[: len(known)] = known > 0
        return values

    def core(self) -> list[int]:
        return list(self._solver.get_core() or ())

    def obvious(self, assumptions: Sequence[int]) -> list[int]:
        return list(self._solver.propagate(assumptions=list(assumptions))[1])

    def prefer(self, literals: Iterable[int]) -> None:
        self._solver.set_phases(list(literals))


class CompilerSolver(Solver):
    """The compiler of clauses as a solver: every question is compiled anew."""

    def __init__(self, num_vars: int, budget: Budget) -> None:
        super().__init__(num_vars, budget)
        self._clauses: list[Sequence[int]] = []
        self._made: Ddnnf | None = None
        self._asked: list[int] = []

    def add(self, clause: Sequence[int]) -> None:
        self._clauses.append(tuple(clause))

    def solve(self, assumptions: Sequence[int] = ()) -> bool:
        self._asked = list(assumptions)
        self._made = self._compiled(assumptions)
        return self._made is not None

    def model(self) -> NDArray[np.bool_]:
        values = np.zeros(self.num_vars, dtype=bool)
        if self._made is None:
            return values
        start, children = self._made.child_start, self._made.children
        pending = [self._made.num_nodes - 1]
        while pending:
            node = pending.pop()
            literal = int(self._made.literal[node])
            if literal > 0:
                values[literal - 1] = True
            below = children[start[node] : start[node + 1]].tolist()
            pending += below[:1] if self._made.kind[node] == _SUM else below
        return values

    def core(self) -> list[int]:
        return minimal(self._asked, lambda kept: self._compiled(kept) is None)

    def prefer(self, literals: Iterable[int]) -> None:
        """Nothing to do: the compiler makes no choices."""

    def _compiled(self, assumptions: Sequence[int]) -> Ddnnf | None:
        self.budget.check("asking the compiler")
        clauses = [*self._clauses, *((literal,) for literal in assumptions)]
        try:
            return compile_cnf(self.num_vars, clauses, self.budget)
        except UnsatisfiableError:
            return None


def minimal(items: Sequence[Item], is_enough: Callable[[list[Item]], bool]) -> list[Item]:
    """A smallest part that cannot be made smaller by leaving out one item; ever smaller pieces are tried."""
    kept, size = list(items), len(items)
    while size > 0:
        place = 0
        while place < len(kept):
            rest = kept[:place] + kept[place + size :]
            if is_enough(rest):
                kept = rest
            else:
                place += size
        if size == 1:
            break
        size = -(-size // 2)
    return kept


def cheapest(solver: Solver, soft: Mapping[int, int], assumptions: Sequence[int] = ()) -> list[int] | None:
    """The soft literals that must fail: a set of least weight, such that all others can hold together.

    This is core-guided maximum satisfiability (PMRES, Narodytska and Bacchus 2014). Each set of soft literals that no
    model has together is replaced by the statement that only one of them fails. All that is added to the solver
    are definitions of new variables, so it can go on to answer other questions.

    Args:
        soft: literals and their weights, which are whole numbers of at least 1.

    Returns:
        None if the assumptions have no model.
    """
    weights = dict(soft)
    fixed = list(assumptions)
    while not solver.solve([*fixed, *weights]):
        core = [literal for literal in solver.core() if literal in weights]
        if not core:
            return None
        core = minimal(core, lambda kept: not solver.solve([*fixed, *kept])) if len(core) > 1 else core
        if not core:
            return None
        least = min(weights[literal] for literal in core)
        for literal in core:
            weights[literal] -= least
            if not weights[literal]:
                del weights[literal]
        for literal in _only_one_fails(solver, core):
            weights[literal] = weights.get(literal, 0) + least
    model = solver.model()
    return [literal for literal in soft if model[abs(literal) - 1] != (literal > 0)]


def _only_one_fails(solver: Solver, core: Sequence[int]) -> list[int]:
    """New soft literals, one fewer than in the core, of which as many fail as literals of the core beyond the first."""
    made = []
    rest = core[-1]
    for literal in reversed(core[:-1]):
        # either := literal | rest; both := literal & rest, which is what is left of them
        either, both = solver.new(), solver.new()
        for clause in ([-either, literal, rest], [either, -literal], [either, -rest]):
            solver.add(clause)
        for clause in ([-both, literal], [-both, rest], [both, -literal, -rest]):
            solver.add(clause)
        made.append(either)
        rest = both
    return made
