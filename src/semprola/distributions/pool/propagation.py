"""What fixed labels imply: through each circuit, and through clauses of the rules that are left out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from semprola.compiler.backends.topdown.backend import encoded
from semprola.compiler.budget import Budget
from semprola.compiler.splitting import Split
from semprola.distributions.pool.side_by_side import all_satisfied, possible_values, side_by_side
from semprola.errors import CompilationBudgetError
from semprola.logic import And, Formula, Kind, Leaf
from semprola.logic.rules import has_variables, literal_of

_MOST_COUNTED = 10**300
"""In a circuit with more models, the share of a possible literal can vanish in double precision; it is not asked."""
_MOST_NUMBERS = 2**24
_SECONDS = 10.0


_KEPT = "_propagation"


def propagation_of(split: Split) -> Propagation:
    """The propagation of a split, made once; it lives as long as the split."""
    found: Propagation | None = split.__dict__.get(_KEPT)
    if found is None:
        found = Propagation(split)
        object.__setattr__(split, _KEPT, found)
    return found


class Propagation:
    """Labels that follow from others under all rules of a split.

    Each circuit tells for every literal whether one of its models has it; rules that are left out are propagated as
    clauses, one unit after the other.
    """

    def __init__(self, split: Split) -> None:
        self.split = split
        self.plans = side_by_side(split.circuits)
        counted = [circuit for circuit in split.circuits if circuit.model_count() < _MOST_COUNTED]
        whole = len(counted) == len(split.circuits)
        self._asked = self.plans if whole else side_by_side(counted) if counted else None

    @torch.no_grad()
    def extend(self, fixed: Tensor) -> tuple[Tensor, Tensor]:
        """Fixed labels with all that follows from them.

        Args:
            fixed: 0, 1, or NaN where free [labels, columns].

        Returns:
            The same with more labels fixed, and whether a column has no model [columns].
        """
        fixed, dead = fixed.clone(), torch.zeros(fixed.shape[1], dtype=torch.bool, device=fixed.device)
        open_ = torch.arange(fixed.shape[1], device=fixed.device)
        while len(open_):
            before, some = fixed[:, open_].isnan().sum(0), fixed[:, open_]
            some, impossible = self._through(some)
            dead[open_] |= impossible
            some, impossible = self._by_clauses(some)
            dead[open_] |= impossible
            fixed[:, open_] = some
            open_ = open_[(some.isnan().sum(0) < before) & ~dead[open_]]
        return fixed, dead

    @torch.no_grad()
    def satisfied(self, states: Tensor) -> Tensor:
        """Whether states [labels, columns] satisfy all rules: bool [columns]."""
        inside = all_satisfied(self.plans, states)
        left_out = self.split.rules_left_out
        if left_out and bool(inside.any()):
            held = self.left_out_hold(states[:, inside] > 0.5)
            inside[inside.clone()] = held.to(inside.device)
        return inside

    def left_out_hold(self, states: Tensor) -> Tensor:
        """Whether states, bool [labels, columns], satisfy the rules that are left out: bool [columns]."""
        values, (clauses, others) = states.cpu().numpy(), self._checked
        held = np.ones(values.shape[1], bool)
        if clauses is not None:
            labels, signs, starts = clauses
            held &= np.logical_or.reduceat(values[labels] == signs[:, None], starts, axis=0).all(0)
        if others:
            held &= And(others).evaluate(values.T, labels=self.split.labels)
        return torch.from_numpy(held)

    @cached_property
    def _checked(self) -> tuple[tuple[np.ndarray, np.ndarray, np.ndarray] | None, list[Formula]]:
        """Labels, signs and starts of the rules that are left out and are clauses (quick to check), and the others."""
        place = {name: number for number, name in enumerate(self.split.labels)}
        labels: list[int] = []
        signs: list[bool] = []
        starts: list[int] = []
        others = []
        for rule in self.split.rules_left_out:
            found = [literal_of(part) for part in (rule.args if rule.kind is Kind.OR else (rule,))]
            literals = [literal for literal in found if literal is not None]
            if not literals or len(literals) < len(found) or has_variables(rule):
                others.append(rule)
                continue
            starts.append(len(labels))
            labels += [place[name] for name, _ in literals]
            signs += [value for _, value in literals]
        return (np.array(labels), np.array(signs), np.array(starts)) if starts else None, others

    def _through(self, fixed: Tensor) -> tuple[Tensor, Tensor]:
        """Labels that every model of a circuit has [labels, columns], and columns without a model."""
        if self._asked is None:
            return fixed, torch.zeros(fixed.shape[1], dtype=torch.bool, device=fixed.device)
        step = max(1, _MOST_NUMBERS // max(1, self._asked.layer_explicit.num_edges))
        parts, dead = [], []
        for some in fixed.split(step, dim=1):
            zero, one = possible_values(self._asked, some)
            dead.append((~zero & ~one).any(0))
            parts.append(torch.where(zero & one, torch.nan, one.double()))
        return torch.cat(parts, 1), torch.cat(dead)

    def _by_clauses(self, fixed: Tensor) -> tuple[Tensor, Tensor]:
        dead = torch.zeros(fixed.shape[1], dtype=torch.bool, device=fixed.device)
        if self._clauses is None:
            return fixed, dead
        num_vars, variables, signs, starts = self._clauses
        labels, columns = fixed.shape
        values = np.zeros((num_vars, columns), np.int8)
        known = fixed.cpu().numpy()
        values[:labels] = np.where(np.isnan(known), 0, np.where(known > 0.5, 1, -1))
        while True:
            literal = values[variables] * signs[:, None]
            true = np.maximum.reduceat(literal, starts, axis=0) == 1
            free = np.add.reduceat((literal == 0).astype(np.int32), starts, axis=0)
            broken = (~true & (free == 0)).any(axis=0)
            unit = np.repeat(~true & (free == 1), np.diff([*starts, len(variables)]), axis=0) & (literal == 0)
            at, column = np.nonzero(unit)
            wanted = signs[at]
            if broken.any() or not len(at):
                break
            values[variables[at], column] = wanted
            # two clauses that want opposite values: the next look finds one of them broken
        made = torch.from_numpy(values[:labels].astype(np.float64)).to(fixed.device)
        derived = torch.where(made == 0, torch.nan, (made > 0).double())
        return torch.where(fixed.isnan(), derived, fixed), torch.from_numpy(broken).to(fixed.device)

    @cached_property
    def _clauses(self) -> tuple[int, np.ndarray, np.ndarray, np.ndarray] | None:
        """Variables (labels first), signs and starts of the clauses of all rules that are left out; None without.

        Rules that take too long to write as clauses are checked, not propagated.
        """
        rules = [part for rule in self.split.rules_left_out for part in _spelled(rule)]
        if not rules:
            return None
        try:
            encoding = encoded([rules], Budget(timeout=_SECONDS, progress=False))
        except CompilationBudgetError:
            return None
        place = {name: v for v, name in enumerate(self.split.labels)}
        number = np.zeros(encoding.num_vars + 1, np.int64)
        for v in range(1, encoding.num_vars + 1):
            own = v <= len(encoding.names)
            number[v] = place[encoding.names[v - 1]] if own else len(place) + v - len(encoding.names) - 1
        flat = np.array([literal for clause in encoding.clauses for literal in clause], np.int64)
        starts = np.cumsum([0, *map(len, encoding.clauses)])[:-1]
        if not len(flat):
            return None
        total = len(place) + encoding.num_vars - len(encoding.names)
        return total, number[np.abs(flat)], np.sign(flat).astype(np.int8), starts


def _spelled(rule: Formula) -> Sequence[Formula]:
    rules = rule.as_rules() if isinstance(rule, Leaf) else None
    return [rule] if rules is None else rules
