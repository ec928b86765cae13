"""Values that a constraint does not allow, where some may be missing: which rows, which values, which rules."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from semprola.circuit import Circuit
from semprola.compiler import Budget, compile
from semprola.compiler.contradiction import explained
from semprola.compiler.splitting import Split
from semprola.distributions.domain import plans_of
from semprola.engine import CircuitPlans, indicators, supported
from semprola.errors import CompilationBudgetError, UnsatisfiableError
from semprola.logic import And, Bool, Formula, Leaf

Rows = NDArray[np.float32]
"""0, 1, and NaN where not observed [rows, names]."""

SHOWN = 8
"""For rules with at most this many labels, all values are reported; for larger ones, a part that contradicts them."""
SECONDS = 10.0
"""Most time to spend on saying why a row is not allowed, where that takes a compilation or a search."""
_MOST_NUMBERS = 2**26
"""Most numbers that are held to check some rows at once."""


def is_small(rule: Formula) -> bool:
    """Whether all assignments of a rule can be tried."""
    return len(rule.labels) <= SHOWN and not isinstance(rule, Leaf)


def impossible_rows(circuit: Circuit, rows: Rows) -> NDArray[np.bool_]:
    """Which rows [rows, variables] no completion of their missing values makes a model [rows]."""
    partial = np.isnan(rows).any(1)
    wrong = np.zeros(len(rows), bool)
    whole = rows[~partial].astype(np.uint8)
    y, x = whole[:, : circuit.num_labels], whole[:, circuit.num_labels :]
    if len(whole):
        wrong[~partial] = ~np.asarray(circuit.satisfied(y, x if circuit.given else None), bool)
    if partial.any():
        values = torch.from_numpy(rows[partial].T.astype(np.float32))
        parts = values.split(max(1, _MOST_NUMBERS // max(1, circuit.num_nodes)), dim=1)
        known = [_impossible(plans_of(circuit), part, torch.ones_like(part, dtype=torch.bool)) for part in parts]
        wrong[partial] = torch.cat(known).numpy()
    return wrong


def impossible_in(constraint: Circuit | Split, rows: Rows) -> NDArray[np.bool_]:
    """Like `impossible_rows`, also for a split [rows].

    Rows with missing values are judged by each circuit of a split on its own, so a few may not be found.
    """
    if isinstance(constraint, Circuit):
        return impossible_rows(constraint, rows)
    wrong = np.logical_or.reduce([impossible_rows(circuit, rows) for circuit in constraint.circuits])
    whole = ~np.isnan(rows).any(1) & ~wrong
    wrong[whole] = ~np.asarray(constraint.satisfied(rows[whole].astype(np.uint8)), bool)
    return np.asarray(wrong)


def impossible_for(rule: Formula, rows: Rows, timeout: float | None = None) -> NDArray[np.bool_]:
    """Which rows [rows, labels of the rule] break a rule, however their missing values are completed [rows]."""
    names = rule.labels
    partial = np.isnan(rows).any(1)
    wrong = np.zeros(len(rows), bool)
    wrong[~partial] = ~np.asarray(rule.evaluate(rows[~partial].astype(bool), labels=names), bool)
    if not partial.any():
        return wrong
    if is_small(rule):
        states = np.array(list(itertools.product((False, True), repeat=len(names))), bool).reshape(-1, len(names))
        models = states[np.asarray(rule.evaluate(states, labels=names), bool)]
        part = rows[partial][:, None]
        wrong[partial] = ~((part == models) | np.isnan(part)).all(2).any(1)
        return wrong
    try:
        circuit = compile(rule, labels=names, given=[], timeout=timeout)
    except UnsatisfiableError:
        wrong[:] = True
        return wrong
    wrong[partial] = impossible_rows(circuit, rows[partial])
    return wrong


def cores(circuit: Circuit, rows: Rows) -> list[dict[str, int]]:
    """For each impossible row [rows, variables], a minimal set of values that contradicts the constraint."""
    plans = plans_of(circuit)
    values = torch.from_numpy(rows.T.astype(np.float32))
    kept = torch.zeros_like(values, dtype=torch.bool)
    width, count = values.shape
    index = torch.arange(width)[:, None]
    open_rows = ~_impossible(plans, values, kept)
    # the kept variables and the first `last` ones contradict the constraint; bisection finds the fewest first ones that
    # do, and the last of these is kept
    last = torch.full((count,), width)
    while bool(open_rows.any()):
        low, high = torch.zeros(count, dtype=torch.int64), last.clone()
        while bool((low < high).any()):
            middle = (low + high) // 2
            enough = _impossible(plans, values, kept | (index < middle))
            high, low = torch.where(enough, middle, high), torch.where(enough, low, torch.minimum(middle + 1, high))
        kept |= (index == high - 1) & open_rows
        last = high - 1
        open_rows &= ~_impossible(plans, values, kept)
    return [
        {circuit.variables[v]: int(rows[r, v]) for v in torch.nonzero(kept[:, r])[:, 0].tolist()} for r in range(count)
    ]


def rules_against(formula: Formula, found: Sequence[dict[str, int]]) -> list[tuple[Formula, ...]]:
    """For each set of values that contradicts the formula, the rules of the formula that do so together.

    The rules are empty where a search of limited time did not find them.
    """
    budget = Budget(timeout=SECONDS)
    known: dict[tuple[tuple[str, int], ...], tuple[Formula, ...]] = {}
    for values in found:
        key = tuple(values.items())
        if key not in known:
            known[key] = _rules_against(formula, values, budget)
    return [known[tuple(values.items())] for values in found]


def _rules_against(formula: Formula, values: dict[str, int], budget: Budget) -> tuple[Formula, ...]:
    literals = [Bool(name) if value else ~Bool(name) for name, value in values.items()]
    try:
        error = explained(And(formula, *literals), budget)
    except CompilationBudgetError:
        return ()
    return tuple(rule for rule in error.rules if isinstance(rule, Formula) and rule not in literals)


def _impossible(plans: CircuitPlans, values: Tensor, kept: Tensor) -> Tensor:
    """Whether no model has the values [variables, columns] that are kept and not NaN: bool [columns]."""
    observed = values.masked_fill(~kept, float("nan"))
    leaves = torch.stack(indicators(observed, values.dtype), dim=1).flatten(0, 1)
    return ~supported(plans.constraint_explicit, leaves)
