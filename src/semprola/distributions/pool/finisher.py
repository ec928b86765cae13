"""OR-Tools' CP-SAT as a finisher: for independent labels, whose score is a sum over labels."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Any

import torch
from torch import Tensor

from semprola.compiler.backends.topdown.backend import encoded
from semprola.compiler.budget import Budget
from semprola.compiler.contradiction import written_rules
from semprola.compiler.parts import counted_literals
from semprola.compiler.splitting import Split
from semprola.errors import SemprolaError
from semprola.logic import Formula, Leaf
from semprola.logic.rewrite import simplify
from semprola.logic.rules import conjuncts

_LARGEST = 2.0**52
"""The sum of the whole numbers that stand for log-odds; the error by rounding is far below that of a sum of floats."""
_SECONDS = 60.0
_KEPT = "_finisher"


@dataclass(frozen=True)
class Finished:
    """What the solver found for a row.

    Attributes:
        state: a state that satisfies all rules [labels]; None if none was found.
        bound: no state has a larger sum of log-odds.
    """

    state: Tensor | None
    bound: float


def cp_sat() -> ModuleType:
    """The solver."""
    try:
        return import_module("ortools.sat.python.cp_model")
    except ImportError:
        raise SemprolaError("this needs OR-Tools: pip install 'semprola[solver]'") from None


def finisher_of(split: Split) -> Finisher:
    """The finisher of a split, made once; it lives as long as the split."""
    found: Finisher | None = split.__dict__.get(_KEPT)
    if found is None:
        found = Finisher(split)
        object.__setattr__(split, _KEPT, found)
    return found


class Finisher:
    """The rules of a split as a model for CP-SAT: counts as they are, everything else as clauses."""

    def __init__(self, split: Split) -> None:
        self._cp = cp_sat()
        if split.source is None:
            raise SemprolaError("the solver needs the rules, which this split does not know: make it by sp.split")
        self._model: Any = self._cp.CpModel()
        self._x = {label: self._model.NewBoolVar("") for label in split.labels}
        rest = [part for rule in written_rules(split.source) for part in _parts(rule) if not self._count(part)]
        encoding = encoded([rest], Budget(timeout=_SECONDS, progress=False))
        known = [self._x[name] for name in encoding.names]
        known += [self._model.NewBoolVar("") for _ in range(encoding.num_vars - len(known))]
        for clause in encoding.clauses:
            self._model.AddBoolOr([known[i - 1] if i > 0 else known[-i - 1].Not() for i in clause])

    def finish(self, odds: Tensor, fixed: Tensor, known: Tensor | None, seconds: float) -> Finished:
        """The state with the largest sum of log-odds.

        Args:
            odds: of each label [labels].
            fixed: 0, 1, or NaN where free [labels].
        """
        cp, x = self._cp, list(self._x.values())
        model = self._model.Clone()
        numbers = odds.double().cpu()
        scale = _LARGEST / max(1e-300, float(numbers.abs().sum()))
        whole = (numbers * scale).round().long().tolist()
        variables = [model.GetBoolVarFromProtoIndex(each.Index()) for each in x]
        model.Maximize(sum(w * v for w, v in zip(whole, variables, strict=True)))
        for variable, value in zip(variables, fixed.tolist(), strict=True):
            if value == value:
                model.Add(variable == int(value))
        if known is not None:
            for variable, value in zip(variables, known.tolist(), strict=True):
                model.AddHint(variable, int(value))
        solver = cp.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = 0
        solver.parameters.max_time_in_seconds = seconds
        status = solver.Solve(model)
        if status == cp.INFEASIBLE:
            return Finished(None, float("-inf"))
        error = len(x) / (2 * scale)
        bound = solver.BestObjectiveBound() / scale + error
        if status not in (cp.OPTIMAL, cp.FEASIBLE):
            return Finished(None, float("inf") if status == cp.UNKNOWN else bound)
        return Finished(torch.tensor([float(solver.Value(v)) for v in variables], dtype=torch.float64), bound)

    def _count(self, rule: Formula) -> bool:
        """Add a rule that counts literals; false if it does not."""
        counted = counted_literals(rule)
        if counted is None:
            return False
        low, high = rule.bounds
        literals = [self._x[name] if sign else self._x[name].Not() for name, sign in zip(*counted, strict=True)]
        if low == high == 1:
            self._model.AddExactlyOne(literals)
        elif (low, high) == (0, 1):
            self._model.AddAtMostOne(literals)
        else:
            self._model.AddLinearConstraint(sum(literals), low, min(high, len(literals)))
        return True


def _parts(rule: Formula) -> list[Formula]:
    spelled = rule.as_rules() if isinstance(rule, Leaf) else None
    if spelled is not None:
        return [part for each in spelled for part in _parts(each)]
    return [rule] if isinstance(rule, Leaf) else list(conjuncts(simplify(rule)))
