"""Which rules of an unsatisfiable constraint contradict each other, in the user's own words.

The clauses of each rule get a switch, and a solver says which switches cannot be on together. Rules are dropped from
this set as long as the rest has no model; what remains is a contradiction in which every rule is needed. The search for
smaller ones uses that any assignment breaks some rule of every contradiction: a smallest set that contains some rule
broken by each assignment seen so far is either a smallest contradiction or has a model, which is the next assignment.
Contradictions about numbers are hard for such a solver. A flow looks for them first; if it finds none and the solver
gives up, the rules are followed along one variable order.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from semprola.compiler.backends.line.backend import Line
from semprola.compiler.budget import Budget
from semprola.compiler.cores import MOST_WORK, CoreSearch
from semprola.compiler.tallies import overdemand, tallies
from semprola.errors import CompilationBudgetError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Kind, Leaf
from semprola.logic.messages import brief
from semprola.logic.places import located, places_of
from semprola.logic.rules import conjuncts

_SECONDS = 8.0
_MOST_RULES, _MOST_FOLLOWED = 30_000, 500
"""With more rules than this there is no search for a contradiction, or none along an order."""
_MOST_STATES = 400_000
_SHOWN, _WIDTH = 8, 160
_MANY = 400
"""With at least this many rules, the solver runs before anything is compiled."""
_MOST_BESIDE_NUMBERS = 1_000
"""Up to this many labels in all rules, the solver looks for a contradiction smaller than one of numbers."""
_MOST_FLOWS = 400_000
"""Up to this many rules times labels, each rule of a contradiction of numbers is left out to see if it is needed."""
_EARLY_CONFLICTS, _BESIDE_NUMBERS = 200, 4
"""Conflicts before an early search gives up; and the factor by which the effort for a smaller contradiction shrinks if
one of numbers is already known."""


@dataclass(frozen=True)
class Contradiction:
    """Rules that cannot hold together.

    Attributes:
        rules: the rules, as they were written.
        minimal: whether the rest has a model if any one of them is left out.
        smallest: whether no smaller set of rules is contradictory.
    """

    rules: tuple[Formula, ...]
    minimal: bool
    smallest: bool


def explained(constraint: Formula, budget: Budget) -> UnsatisfiableError:
    """The error for a constraint without a model, which names rules that contradict each other.

    Example:
        >>> from semprola.logic import parse
        >>> explained(parse("(a -> b) & c & (b -> ~a) & a"), Budget()).args[0]
        'the constraint has no model: these 3 of its 4 rules contradict each other: a -> b; b -> ~a; a'
    """
    rules = written_rules(constraint)
    return _error(constraint, rules, _within(rules, budget, _numbers(rules, budget)))


def refuted_early(constraint: Formula, budget: Budget) -> UnsatisfiableError | None:
    """The error for a constraint without a model if that can be seen before anything is compiled, otherwise None.

    A flow finds numbers that contradict each other. If there are many rules, they go to a clause solver, except for
    families that cannot be written as clauses at once.

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
    with _uncollected():
        return _refuted(constraint, rules, budget)


def _refuted(constraint: Formula, rules: Sequence[Formula], budget: Budget) -> UnsatisfiableError | None:
    numbers = _numbers(rules, budget)
    if numbers is not None:
        return _error(constraint, rules, _within(rules, budget, numbers))
    if len(rules) < _MANY:
        return None
    plain = [rule for rule in rules if _is_plain(rule)]
    search = CoreSearch(plain, budget)
    if search.core_of(range(len(plain)), _EARLY_CONFLICTS) is None:
        return None
    return _error(constraint, rules, _within(rules, budget, None, search if len(plain) == len(rules) else None))


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Pause the garbage collector: there are no cycles here, and looking for them among many rules takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _is_plain(rule: Formula) -> bool:
    """Whether a rule can be written as clauses at once: it contains no family, or is one that can be spelled out."""
    if isinstance(rule, Leaf):
        return type(rule).as_rules is not Leaf.as_rules or rule.as_clauses() is not None
    return not any(isinstance(part, Leaf) for part in (rule.nodes() if _is_deep(rule) else rule.args))


def _is_deep(rule: Formula) -> bool:
    return any(part.args for part in rule.args)


def _numbers(rules: Sequence[Formula], budget: Budget) -> list[int] | None:
    """Rules whose numbers contradict each other."""
    return overdemand(tallies(rules), budget.checker("looking for a contradiction"))


def _within(
    rules: Sequence[Formula], budget: Budget, numbers: list[int] | None, search: CoreSearch | None = None
) -> Contradiction | None:
    """A contradiction, if one is found in the time that an explanation may take."""
    if not 1 < len(rules) <= _MOST_RULES:
        return None
    try:
        return _named(rules, budget.within(_SECONDS), numbers, search)
    except CompilationBudgetError:
        return None  # it is unknown why the constraint has no model, but certain that it has none


def _error(constraint: Formula, rules: Sequence[Formula], found: Contradiction | None) -> UnsatisfiableError:
    if found is None:
        alone = f": {brief(constraint, _WIDTH)} cannot hold" if len(rules) == 1 else ": remove or weaken a rule"
        return UnsatisfiableError(f"the constraint has no model{alone}", rules=tuple(rules) if len(rules) == 1 else ())
    places = places_of(constraint)
    shown = "; ".join(located(rule, places, brief(rule, _WIDTH)) for rule in found.rules[:_SHOWN])
    more = f"; and {len(found.rules) - _SHOWN} more" if len(found.rules) > _SHOWN else ""
    if len(found.rules) == 1:
        return UnsatisfiableError(f"the constraint has no model: the rule {shown} cannot hold", rules=found.rules)
    which = f"these {len(found.rules)} of its {len(rules)} rules contradict each other"
    return UnsatisfiableError(f"the constraint has no model: {which}: {shown}{more}", rules=found.rules)


def written_rules(constraint: Formula) -> list[Formula]:
    """The rules that a user wrote: the parts of a conjunction, the clauses of a file."""
    return list(dict.fromkeys(rule for rule in conjuncts(constraint) if rule.kind is not Kind.TRUE))


def contradiction(rules: Sequence[Formula], budget: Budget) -> Contradiction | None:
    """Rules that contradict each other; None if there are none, or none are found with limited effort.

    Args:
        rules: formulas; their conjunction has no model.
        budget: what may be used.

    Example:
        >>> from semprola.logic import parse
        >>> found = contradiction([parse(text) for text in ("a | b", "~a", "~b", "c -> a")], Budget())
        >>> found.rules, found.smallest
        ((a | b, ~a, ~b), True)
    """
    return _named(rules, budget, _numbers(rules, budget), None)


def _named(
    rules: Sequence[Formula], budget: Budget, numbers: list[int] | None, search: CoreSearch | None
) -> Contradiction | None:
    """A contradiction; a known contradiction of numbers, and a solver with the rules, are used if there are any."""
    if numbers is not None and sum(len(rule.labels()) for rule in rules) > _MOST_BESIDE_NUMBERS:
        return Contradiction(tuple(rules[i] for i in _fewer(rules, numbers, budget)), False, False)
    search = search or CoreSearch(rules, budget)
    core = search.first() if numbers is None else search.first(_EARLY_CONFLICTS // _BESIDE_NUMBERS)
    if numbers is not None and (core is None or len(numbers) < len(core)):
        core = numbers
    if core is None:
        return _by_states(rules, budget) if len(rules) <= _MOST_FOLLOWED else None
    core, minimal = search.without_needless(core)
    most = MOST_WORK if numbers is None else MOST_WORK // _BESIDE_NUMBERS
    smaller, smallest = search.smallest(core, most) if minimal else (core, False)
    chosen = sorted(smaller)
    return Contradiction(tuple(rules[i] for i in chosen), minimal, smallest)


def _fewer(rules: Sequence[Formula], core: list[int], budget: Budget) -> list[int]:
    """The rules of a contradiction of numbers, without those that the flow does not need."""
    if len(core) * sum(len(rules[i].labels()) for i in core) > _MOST_FLOWS:
        return core
    for i in list(core):
        rest = [j for j in core if j != i]
        found = _numbers([rules[j] for j in rest], budget) if i in core else None
        if found is not None:
            core = [rest[j] for j in found]
    return core


def _by_states(rules: Sequence[Formula], budget: Budget) -> Contradiction | None:
    """A contradiction found by following rules along an order; they are left out kind by kind, then half by half."""

    certain = True

    def contradictory(chosen: Sequence[int]) -> bool:
        nonlocal certain
        budget.check("looking for a contradiction")
        found = line.has_no_model([part for i in chosen for part in spelled[i]], _MOST_STATES)
        certain &= found is not None
        return found is True

    spelled = [_spelled(rule) for rule in rules]
    line = Line([part for parts in spelled for part in parts], budget)
    core = list(range(len(rules)))
    if not contradictory(core):
        return None
    for members in _kinds(rules).values():
        rest = [i for i in core if i not in members]
        if rest and contradictory(rest):
            core = rest
    core = _halved(core, contradictory)
    return Contradiction(tuple(rules[i] for i in core), certain, False)


def _kinds(rules: Sequence[Formula]) -> dict[tuple[object, ...], set[int]]:
    """Rules that look alike: the same kind, number of labels and bounds."""
    kinds: dict[tuple[object, ...], set[int]] = {}
    for i, rule in enumerate(rules):
        bounds = rule.bounds if rule.kind is Kind.CARDINALITY else ()
        kinds.setdefault((rule.kind, type(rule), len(rule.labels()), bounds), set()).add(i)
    return kinds


def _halved(core: list[int], contradictory: Callable[[Sequence[int]], bool]) -> list[int]:
    """Leave out ever smaller pieces as long as the rest is contradictory."""
    size = max(1, len(core) // 2)
    while True:
        position = 0
        while position < len(core):
            rest = core[:position] + core[position + size :]
            if rest and contradictory(rest):
                core = rest
            else:
                position += size
        if size == 1:
            return core
        size = max(1, size // 2)


def _spelled(rule: Formula) -> tuple[Formula, ...]:
    rules = rule.as_rules() if isinstance(rule, Leaf) else None
    return (rule,) if rules is None else rules
