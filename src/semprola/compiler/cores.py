"""Finds rules that contradict each other, with a solver that can switch each rule on and off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from semprola.compiler.budget import Budget
from semprola.compiler.clausal import assertions
from semprola.compiler.counting import counted_literals
from semprola.compiler.sat import Solver
from semprola.logic import Formula, Leaf

_Test = Callable[[list[bool]], bool]

_CONFLICTS = 1_500
_ROUNDS = 4
_FEW, _MOST_TOGETHER = 12, 2_000_000
"""To see whether a rule holds, up to this many clauses are checked one by one, and up to this many literals at once."""
_MOST_FLIPS = 400
"""The labels of a rule are not flipped one by one if there are more."""
MOST_WORK = 100_000
"""The effort of a search for a smaller contradiction: labels of rules times assignments."""


class CoreSearch:
    """One solver for all rules, each under its own switch.

    Args:
        rules: formulas.
        budget: what may be used.
    """

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
        self._variables = [
            # no clause mentions a label that is free
            [self._numbers[name] for name in rule.labels() if name in self._numbers]
            for rule in rules
        ]
        for i, variables in enumerate(self._variables):
            for v in variables:
                self._with.setdefault(v, []).append(i)
        self._flips = [variables if len(variables) <= _MOST_FLIPS else [] for variables in self._variables]
        self._tests = [self._test(i) for i in range(len(rules))]

    def first(self, conflicts: int = _CONFLICTS) -> list[int] | None:
        """Any contradiction found within this many conflicts, made smaller by solving it again."""
        core = list(range(len(self.rules)))
        for _ in range(_ROUNDS):
            smaller = self.core_of(core, conflicts)
            if smaller is None or len(smaller) == len(core):
                return smaller
            core = smaller
        return core

    def core_of(self, chosen: Sequence[int], conflicts: int = _CONFLICTS) -> list[int] | None:
        """Rules among those chosen that contradict each other; None if there are none, or it takes too long."""
        if self.solver.solve([self.switch[i] for i in chosen], conflicts) is not False:
            return None
        offset = self.switch[0]
        return [literal - offset for literal in self.solver.core]

    def without_needless(self, core: list[int]) -> tuple[list[int], bool]:
        """A contradiction in which every rule is needed, and whether that is certain."""
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

    def smallest(self, core: list[int], most: int = MOST_WORK) -> tuple[list[int], bool]:
        """The smallest contradiction found with limited effort, and whether it is proven to be the smallest."""
        if len(core) == len(self.rules):
            return core, True
        broken: list[frozenset[int]] = []
        work, size = 0, sum(map(len, self._variables))
        while work <= most:
            chosen = _hitting_set(broken, len(core) - 1)
            if chosen is None:
                return core, True
            work += size + 50 * len(broken)
            found = self.solver.solve([self.switch[i] for i in chosen], _CONFLICTS)
            if found is None:
                break
            if not found:
                return sorted(chosen), True
            broken.append(self._broken_by(self.solver.model[: self.labels + 1], set(chosen)))
        return core, False

    def _broken_by(self, model: list[bool], kept: set[int]) -> frozenset[int]:
        """The rules that an assignment breaks, after flipping labels to break fewer rules, but none of `kept`."""
        broken = {i for i, test in enumerate(self._tests) if not test(model)}
        for _ in range(_ROUNDS):
            before = len(broken)
            for i in sorted(broken):
                for v in self._flips[i] if i in broken else ():
                    model[v] = not model[v]
                    touched = {j for j in self._with[v] if not self._tests[j](model)}
                    if (
                        i not in touched
                        and kept.isdisjoint(touched)
                        and len(touched) < len(broken.intersection(self._with[v]))
                    ):
                        broken.difference_update(self._with[v])
                        broken |= touched
                        break
                    model[v] = not model[v]
            if len(broken) == before:
                break
        return frozenset(broken)

    def _rotate(self, first: int, core: Sequence[int], needed: set[int]) -> None:
        """Find further rules that are needed.

        Start from a model that breaks only the first rule. If flipping one label makes it break only another rule, that
        rule is needed, too.
        """
        inside = set(core)
        stack = [(first, self.solver.model[: self.labels + 1])]
        while stack:
            i, model = stack.pop()
            for v in self._flips[i]:
                model[v] = not model[v]
                touched = [j for j in self._with[v] if j in inside and not self._tests[j](model)]
                if len(touched) == 1 and touched[0] not in needed and touched[0] != i and self._tests[i](model):
                    needed.add(touched[0])
                    stack.append((touched[0], list(model)))
                model[v] = not model[v]

    def _test(self, i: int) -> _Test:
        """A function that says whether a rule holds for values of the labels."""
        rule, clauses, variables = self.rules[i], self.asserted[i], self._variables[i]
        direct = all(abs(literal) <= self.labels for clause in clauses for literal in clause)
        if direct and len(clauses) <= _FEW:
            return lambda model: all(any(model[abs(x)] == (x > 0) for x in clause) for clause in clauses)
        spelled = rule.as_rules() if isinstance(rule, Leaf) else None
        count = spelled[0] if spelled is not None and len(spelled) == 1 else rule
        counted = counted_literals(count)
        if counted is not None and all(counted[1]):
            lowest, highest = count.bounds
            return lambda model: lowest <= sum(map(model.__getitem__, variables)) <= highest
        longest = max(map(len, clauses), default=0)
        if direct and longest and longest * len(clauses) <= _MOST_TOGETHER:
            # short clauses are padded with their first literal
            table = np.array([[*clause, *clause[:1] * (longest - len(clause))] for clause in clauses])
            return lambda model: bool((np.array(model)[np.abs(table)] == (table > 0)).any(axis=1).all())
        names = rule.labels()
        return lambda model: bool(rule.evaluate({name: model[v] for name, v in zip(names, variables, strict=True)}))


def _hitting_set(sets: Sequence[frozenset[int]], most: int) -> list[int] | None:
    """A smallest set that meets all sets, sorted; None if it has more than `most` members."""
    for size in range(most + 1):
        found = _hit(sets, size)
        if found is not None:
            return found
    return None


def _hit(sets: Sequence[frozenset[int]], size: int) -> list[int] | None:
    # depth first, branching on the smallest set that is not met yet
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
    """A number of disjoint sets: at least this many members are needed to meet all sets."""
    seen: set[int] = set()
    count = 0
    for members in sorted(sets, key=len):
        if seen.isdisjoint(members):
            seen |= members
            count += 1
    return count
