"""Which rules of an unsatisfiable constraint contradict each other, in the user's own words.

Rules become clauses under a switch each; a solver says which switches cannot be on together. Of these, rules are left
out as long as the rest has no model: what remains is a contradiction of which every rule is needed. Then smaller ones
are looked for: any assignment breaks some rule of every contradiction, so that a smallest set that meets all rules
broken by each assignment seen so far is either a smallest contradiction or has a model, which is the next assignment.
Contradictions about numbers are hard for such a solver; there the rules are followed along one order instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from semprola.compiler.backends.line.backend import Line
from semprola.compiler.budget import Budget
from semprola.compiler.clausal import assertions
from semprola.compiler.sat import Solver
from semprola.errors import CompilationBudgetError, UnsatisfiableError
from semprola.logic import Cnf, Formula, Kind, Leaf
from semprola.logic.messages import brief

_SECONDS = 8.0
_MOST_RULES, _MOST_FOLLOWED = 30_000, 500
"""Rules beyond which no contradiction is looked for, and none along an order."""
_CONFLICTS = 1_500
_ROUNDS = 4
_MOST_HITTING_WORK = 30_000
"""Rules times assignments that are looked at in search of a smaller contradiction."""
_MOST_STATES = 400_000
_SHOWN, _WIDTH = 8, 160


@dataclass(frozen=True)
class Contradiction:
    """Rules that cannot hold together.

    Attributes:
        rules: the rules, as they were written.
        minimal: whether the others of them can hold once any one is left out.
        smallest: whether no smaller set of rules is contradictory.
    """

    rules: tuple[Formula, ...]
    minimal: bool
    smallest: bool


def explained(constraint: Formula, budget: Budget) -> UnsatisfiableError:
    """The error for a constraint that has no model: it names rules that contradict each other.

    Example:
        >>> from semprola.logic import parse
        >>> explained(parse("(a -> b) & c & (b -> ~a) & a"), Budget()).args[0]
        'the constraint has no model: these 3 of its 4 rules contradict each other: a -> b; b -> ~a; a'
    """
    rules = written_rules(constraint)
    found = None
    if 1 < len(rules) <= _MOST_RULES:
        try:
            found = contradiction(rules, budget.within(_SECONDS))
        except CompilationBudgetError:
            found = None  # how it cannot hold is not known, that it cannot is
    if found is None:
        alone = f": {brief(constraint, _WIDTH)} cannot hold" if len(rules) == 1 else ": remove or weaken a rule"
        return UnsatisfiableError(f"the constraint has no model{alone}", rules=tuple(rules) if len(rules) == 1 else ())
    shown = "; ".join(_text(rule) for rule in found.rules[:_SHOWN])
    more = f"; and {len(found.rules) - _SHOWN} more" if len(found.rules) > _SHOWN else ""
    if len(found.rules) == 1:
        return UnsatisfiableError(f"the constraint has no model: the rule {shown} cannot hold", rules=found.rules)
    which = f"these {len(found.rules)} of its {len(rules)} rules contradict each other"
    return UnsatisfiableError(f"the constraint has no model: {which}: {shown}{more}", rules=found.rules)


def written_rules(constraint: Formula) -> list[Formula]:
    """The rules that a user wrote: the parts of a conjunction, the clauses of a file."""
    found: dict[Formula, None] = {}
    stack = [constraint]
    while stack:
        rule = stack.pop()
        if rule.kind is Kind.AND:
            stack.extend(reversed(rule.args))
        elif isinstance(rule, Cnf):
            stack.extend(reversed(list(rule.clause_formulas())))
        elif rule.kind is not Kind.TRUE:
            found[rule] = None
    return list(found)


def contradiction(rules: Sequence[Formula], budget: Budget) -> Contradiction | None:
    """Rules that contradict each other; None if that is not found out with a bounded effort, or there are none.

    Args:
        rules: formulas; their conjunction has no model.
        budget: what may be used.

    Example:
        >>> from semprola.logic import parse
        >>> found = contradiction([parse(text) for text in ("a | b", "~a", "~b", "c -> a")], Budget())
        >>> found.rules, found.smallest
        ((a | b, ~a, ~b), True)
    """
    search = _Search(rules, budget)
    core = search.first()
    if core is None:
        return _by_states(rules, budget) if len(rules) <= _MOST_FOLLOWED else None
    core, minimal = search.without_needless(core)
    smaller, smallest = search.smallest(core) if minimal else (core, False)
    chosen = sorted(smaller)
    return Contradiction(tuple(rules[i] for i in chosen), minimal, smallest)


class _Search:
    """Rules under switches in one solver."""

    def __init__(self, rules: Sequence[Formula], budget: Budget) -> None:
        self.rules, self.budget = rules, budget
        encoding, self.asserted = assertions(rules, budget)
        self.labels = len(encoding.names)
        self._numbers = {name: v for v, name in enumerate(encoding.names, start=1)}
        self.solver = Solver(encoding.num_vars + len(rules), budget.checker("looking for a contradiction"))
        self.switch = [encoding.num_vars + 1 + i for i in range(len(rules))]
        for clause in encoding.clauses:
            self.solver.add(clause)
        for clauses, switch in zip(self.asserted, self.switch, strict=True):
            for clause in clauses:
                self.solver.add((-switch, *clause))
        self._with: dict[int, list[int]] = {}
        for i, rule in enumerate(rules):
            for name in rule.labels():
                self._with.setdefault(self._numbers[name], []).append(i)

    def first(self) -> list[int] | None:
        """Any contradiction, made smaller by solving it again."""
        core = list(range(len(self.rules)))
        for _ in range(_ROUNDS):
            smaller = self.core_of(core)
            if smaller is None or len(smaller) == len(core):
                return smaller
            core = smaller
        return core

    def core_of(self, chosen: Sequence[int]) -> list[int] | None:
        """A contradictory part of some rules; None if there is none, or it takes too long."""
        if self.solver.solve([self.switch[i] for i in chosen], _CONFLICTS) is not False:
            return None
        offset = self.switch[0]
        return [literal - offset for literal in self.solver.core]

    def without_needless(self, core: list[int]) -> tuple[list[int], bool]:
        """A contradiction of which every rule is needed, and whether that is certain."""
        needed: set[int] = set()
        certain = True
        for i in list(core):
            if i in needed or i not in core:
                continue
            rest = [j for j in core if j != i]
            found = self.solver.solve([self.switch[j] for j in rest], _CONFLICTS)
            if found is False:
                offset = self.switch[0]
                core = sorted({literal - offset for literal in self.solver.core} | needed)
            else:
                certain &= found is True
                needed.add(i)
                if found:
                    self._rotate(i, core, needed)
        return core, certain

    def smallest(self, core: list[int]) -> tuple[list[int], bool]:
        """A contradiction of the fewest rules if it is found with a bounded effort, and whether it is proven."""
        if len(core) == len(self.rules):
            return core, True
        broken: list[frozenset[int]] = []
        work = 0
        while work <= _MOST_HITTING_WORK:
            chosen = _hitting_set(broken, len(core) - 1)
            if chosen is None:
                return core, True
            work += len(self.rules) + 50 * len(broken)
            found = self.solver.solve([self.switch[i] for i in chosen], _CONFLICTS)
            if found is None:
                break
            if not found:
                return sorted(chosen), True
            broken.append(self._broken_by(self.solver.model[: self.labels + 1], set(chosen)))
        return core, False

    def _broken_by(self, model: list[bool], kept: set[int]) -> frozenset[int]:
        """Rules that an assignment breaks, once labels are changed where that breaks fewer, and none of `kept`."""
        broken = {i for i in range(len(self.rules)) if not self._holds(i, model)}
        for _ in range(_ROUNDS):
            before = len(broken)
            for i in sorted(broken):
                for name in self.rules[i].labels() if i in broken else ():
                    v = self._numbers[name]
                    model[v] = not model[v]
                    touched = {j for j in self._with[v] if not self._holds(j, model)}
                    if (
                        i not in touched
                        and kept.isdisjoint(touched)
                        and len(touched) < len(broken.intersection(self._with[v]))
                    ):
                        broken = broken.difference(self._with[v]) | touched
                        break
                    model[v] = not model[v]
            if len(broken) == before:
                break
        return frozenset(broken)

    def _rotate(self, first: int, core: Sequence[int], needed: set[int]) -> None:
        """Find further rules that are needed: change one label of a model of all but one; only another is broken."""
        inside = set(core)
        stack = [(first, self.solver.model[: self.labels + 1])]
        while stack:
            i, model = stack.pop()
            for name in self.rules[i].labels():
                v = self._numbers[name]
                model[v] = not model[v]
                touched = [j for j in self._with[v] if j in inside and not self._holds(j, model)]
                if not any(j == i for j in touched) and self._holds(i, model) and len(touched) == 1:
                    (j,) = touched
                    if j not in needed:
                        needed.add(j)
                        stack.append((j, list(model)))
                model[v] = not model[v]

    def _holds(self, i: int, model: Sequence[bool]) -> bool:
        """Whether a rule holds under values of the labels."""
        clauses = self.asserted[i]
        if all(abs(literal) <= self.labels for clause in clauses for literal in clause):
            return all(any(model[abs(literal)] == (literal > 0) for literal in clause) for clause in clauses)
        rule = self.rules[i]
        return bool(rule.evaluate({name: model[self._numbers[name]] for name in rule.labels()}))


def _hitting_set(sets: Sequence[frozenset[int]], most: int) -> list[int] | None:
    """A smallest set that meets all sets, in the order of its numbers; None if it has more than `most` members."""
    for size in range(most + 1):
        found = _hit(sets, size)
        if found is not None:
            return found
    return None


def _hit(sets: Sequence[frozenset[int]], size: int) -> list[int] | None:
    # depth first; the smallest set that is not met yet is branched on
    stack: list[tuple[int, ...]] = [()]
    while stack:
        chosen = stack.pop()
        missed = [members for members in sets if not members.intersection(chosen)]
        if not missed:
            return sorted(chosen)
        if len(chosen) < size and _disjoint(missed) <= size - len(chosen):
            fewest: frozenset[int] = min(missed, key=len)
            stack.extend((*chosen, i) for i in sorted(fewest, reverse=True))
    return None


def _disjoint(sets: Iterable[frozenset[int]]) -> int:
    """How many disjoint sets there are at least: as many members are needed to meet all."""
    seen: set[int] = set()
    count = 0
    for members in sorted(sets, key=len):
        if seen.isdisjoint(members):
            seen |= members
            count += 1
    return count


def _by_states(rules: Sequence[Formula], budget: Budget) -> Contradiction | None:
    """A contradiction found by following rules along an order: left out kind by kind, then half by half."""

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
    """Rules that look alike: of one kind, with as many labels and the same bounds."""
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


def _text(rule: Formula) -> str:
    return brief(rule, _WIDTH)
