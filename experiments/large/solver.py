"""The same rules for OR-Tools' CP-SAT: independent labels, repaired by a solver."""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from experiments.large.cases import Case
from experiments.large.clock import stopped_after
from semprola.errors import SemprolaError

_SCALE = 10**12
"""The solver's objective has whole numbers; it is not slower with large ones."""


@dataclass(frozen=True)
class Answer:
    """What the solver found: a state or None, whether it is proven to be the best, and seconds of processor time."""

    state: list[int] | None
    proven: bool
    seconds: float


class Solver:
    """The rules of a case; `solve` finds the best state for given log-odds, with one thread."""

    def __init__(self, case: Case) -> None:
        try:
            self._cp = import_module("ortools.sat.python.cp_model")
        except ImportError:
            raise SemprolaError("this experiment needs OR-Tools: pip install ortools") from None
        self._model: Any = self._cp.CpModel()
        self._x = [self._model.NewBoolVar(label) for label in case.labels]
        if case.cities:
            self._add_tour(case.cities)
            return
        for rule in case.rules:
            literals = [self._x[i - 1] if i > 0 else self._x[-i - 1].Not() for i in rule.literals]
            if rule.low == rule.high == 1:
                self._model.AddExactlyOne(literals)
            elif (rule.low, rule.high) == (0, 1):
                self._model.AddAtMostOne(literals)
            elif rule.low == 1 and rule.high == len(literals):
                self._model.AddBoolOr(literals)
            else:
                self._model.AddLinearConstraint(sum(literals), rule.low, rule.high)

    def _add_tour(self, cities: int) -> None:
        """A circuit through all cities, in either direction along each edge."""
        arcs = []
        for (a, b), edge in zip(itertools.combinations(range(cities), 2), self._x, strict=True):
            there, back = self._model.NewBoolVar(""), self._model.NewBoolVar("")
            self._model.Add(there + back == edge)
            arcs += [(a, b, there), (b, a, back)]
        self._model.AddCircuit(arcs)

    def solve(self, log_odds: Sequence[float], seconds: float, seed: int = 0) -> Answer:
        """The most probable state of independent labels that obeys the rules."""
        self._model.Maximize(sum(round(_SCALE * odds) * x for odds, x in zip(log_odds, self._x, strict=True)))
        solver = self._cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = seed
        began = time.process_time()
        with stopped_after(seconds, solver.StopSearch):
            status = solver.Solve(self._model)
        spent = time.process_time() - began
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            return Answer(None, False, spent)
        return Answer([solver.Value(x) for x in self._x], status == self._cp.OPTIMAL, spent)
