"""Which rules of an unsatisfiable constraint contradict each other, in the user's own words.

Ever smaller pieces of the rules are left out as long as the rest has no model. What remains is a contradiction in which
every rule is needed. Whether some rules have a model is asked of a flow, which sees numbers that contradict each other;
then of the compiler of clauses; and if that takes too long, the rules are followed along one order of their labels.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from semprola.compiler.backends.automata.backend import Joint
from semprola.compiler.backends.topdown.backend import assertions
from semprola.compiler.backends.topdown.search import compile_cnf
from semprola.compiler.budget import Budget
from semprola.compiler.tallies import Tally, overdemand, tallies
from semprola.errors import CompilationBudgetError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Kind, Leaf
from semprola.logic.messages import brief
from semprola.logic.rules import conjuncts, located, places_of

_SECONDS, _SECONDS_BY_CLAUSES = 5.0, 0.5
"""The most that a search for a contradiction may take, and one question to the compiler of clauses."""
_MOST_RULES, _MOST_FOLLOWED = 30_000, 500
"""With more rules than this there is no search for a contradiction, or none along an order."""
_MOST_BESIDE_NUMBERS = 1_000
"""With more labels in all rules, a contradiction of numbers is only made smaller by what the flow sees."""
_MOST_STATES = 400_000
_SHOWN, _WIDTH = 8, 160


def explained(constraint: Formula, budget: Budget) -> UnsatisfiableError:
    """The error for a constraint without a model, which names rules that contradict each other."""
    rules = written_rules(constraint)
    if len(rules) == 1:
        text = f"the constraint has no model: {brief(constraint, _WIDTH)} cannot hold"
        return UnsatisfiableError(text, rules=tuple(rules))
    found = contradiction(rules, budget) if len(rules) <= _MOST_RULES else None
    if found is None:
        return UnsatisfiableError("the constraint has no model: remove or weaken a rule", rules=())
    places = places_of(constraint)
    shown = "; ".join(located(rule, places, brief(rule, _WIDTH)) for rule in found[:_SHOWN])
    more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    if len(found) == 1:
        return UnsatisfiableError(f"the constraint has no model: the rule {shown} cannot hold", rules=found)
    which = f"these {len(found)} of its {len(rules)} rules contradict each other"
    return UnsatisfiableError(f"the constraint has no model: {which}: {shown}{more}", rules=found)


def refuted_early(constraint: Formula, budget: Budget) -> UnsatisfiableError | None:
    """The error for a constraint whose numbers contradict each other, otherwise None; no compiler would see that soon.

    Example:
        >>> from semprola.logic import parse
        >>> refuted_early(parse("exactly(2, a, b) & (a | c) & at_most(1, a, b, c)"), Budget()).rules
        (exactly(2, a, b), at_most(1, a, b, c))
    """
    if isinstance(constraint, Cnf) or constraint.kind is not Kind.AND:
        return None
    rules = written_rules(constraint)
    if not 1 < len(rules) <= _MOST_RULES:
        return None
    budget.check("looking for a contradiction")
    return None if overdemand(tallies(rules)) is None else explained(constraint, budget)


def written_rules(constraint: Formula) -> list[Formula]:
    """The rules that a user wrote: the parts of a conjunction, the clauses of a file."""
    return list(dict.fromkeys(rule for rule in conjuncts(constraint) if rule.kind is not Kind.TRUE))


def contradiction(rules: Sequence[Formula], budget: Budget) -> tuple[Formula, ...] | None:
    """Rules that contradict each other, and each of which is needed for that, unless time is up before.

    Returns:
        The rules; None if they have a model, or if it is not known within the time whether they have one.
    """
    own = budget.within(_SECONDS)
    counted = tallies(rules)
    core = overdemand(counted)
    try:
        large = sum(len(rule.labels) for rule in rules) > _MOST_BESIDE_NUMBERS
        search = _Search(rules, counted, own, numbers_only=core is not None and large)
        if core is None:
            core = list(range(len(rules)))
            if not search.is_contradictory(core):
                return None
        size = len(core)
        while size > 1:
            size = -(-size // 2)
            core = search.without(core, size)
    except CompilationBudgetError:
        if core is None:
            return None
    return tuple(rules[i] for i in core)


class _Search:
    """Whether some of the rules contradict each other."""

    def __init__(
        self, rules: Sequence[Formula], counted: Sequence[Tally], budget: Budget, *, numbers_only: bool
    ) -> None:
        self.rules, self.counted, self.budget, self.numbers_only = rules, counted, budget, numbers_only

    def without(self, core: list[int], size: int) -> list[int]:
        """The rules of a contradiction without the pieces of this size that it does not need."""
        position = 0
        while position < len(core):
            rest = core[:position] + core[position + size :]
            if rest and self.is_contradictory(rest):
                core = rest
            else:
                position += size
        return core

    def is_contradictory(self, chosen: Sequence[int]) -> bool:
        """Whether these rules are known to have no model."""
        self.budget.check("looking for a contradiction")
        kept = set(chosen)
        if overdemand([tally for tally in self.counted if tally.rule in kept]) is not None:
            return True
        if self.numbers_only:
            return False
        answer = self._by_clauses(chosen)
        if answer is None and len(self.rules) <= _MOST_FOLLOWED:
            parts = [part for i in chosen for part in self._spelled[i]]
            answer = self._joint.has_no_model(parts, _MOST_STATES)
        return answer is True

    def _by_clauses(self, chosen: Sequence[int]) -> bool | None:
        num_vars, shared, own = self._clauses
        clauses = [*shared, *itertools.chain.from_iterable(own[i] for i in chosen)]
        start = np.cumsum([0, *map(len, clauses)], dtype=np.int64)
        literals = np.fromiter(itertools.chain.from_iterable(clauses), np.int32, int(start[-1]))
        hidden = range(1, num_vars + 1)
        budget = self.budget.within(_SECONDS_BY_CLAUSES)
        try:
            compile_cnf(num_vars, (start, literals), budget, projected_out=hidden, determined=False)
        except UnsatisfiableError:
            return True
        except CompilationBudgetError:
            return None
        return False

    @functools.cached_property
    def _clauses(self) -> tuple[int, list[tuple[int, ...]], list[list[tuple[int, ...]]]]:
        """The number of variables, shared definitions, and the clauses of each rule."""
        encoding, asserted = assertions(self.rules, self.budget)
        return encoding.num_vars, encoding.clauses, asserted

    @functools.cached_property
    def _spelled(self) -> list[tuple[Formula, ...]]:
        spelled = [rule.as_rules() if isinstance(rule, Leaf) else None for rule in self.rules]
        return [(rule,) if parts is None else parts for rule, parts in zip(self.rules, spelled, strict=True)]

    @functools.cached_property
    def _joint(self) -> Joint:
        return Joint([part for parts in self._spelled for part in parts], self.budget)
