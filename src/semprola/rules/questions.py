"""What is asked about a list of rules: can some of them hold together, what follows from them, and through which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from semprola.compiler.backends.topdown.backend import assertions
from semprola.compiler.budget import Budget
from semprola.rules.listing import Rule, RuleList
from semprola.rules.solving import Solver, cheapest, minimal, new_solver

Clause = tuple[int, ...]


class Questions:
    """A solver that knows each rule apart from the others.

    Rules are named by their number. A rule is in force if its switch is assumed, which is a variable of the solver.

    Attributes:
        labels: all labels; label number v - 1 is the variable v.
        clauses: the clauses of each rule. They may use variables that stand for parts of rules; the labels determine
            these, so the clauses of a rule are violated exactly where the rule is.
        switches: the switch of each rule.
    """

    def __init__(self, listed: RuleList, budget: Budget) -> None:
        self.listed, self.budget = listed, budget
        self._all = (*listed.rules, *listed.background)
        encoding, asserted = assertions([rule.formula for rule in self._all], budget)
        count = len(listed.rules)
        self.labels = encoding.names
        self.index = {name: v for v, name in enumerate(self.labels, start=1)}
        self.clauses: list[list[Clause]] = asserted[:count]
        self.num_plain = len(self.labels)
        always = [*encoding.clauses, *(clause for clauses in asserted[count:] for clause in clauses)]
        self.solver: Solver = new_solver(encoding.num_vars, always, budget)
        self.switches = [self.solver.new() for _ in range(count)]
        for switch, clauses in zip(self.switches, self.clauses, strict=True):
            for clause in clauses:
                self.solver.add((-switch, *clause))
        self._number = {switch: rule for rule, switch in enumerate(self.switches)}

    @property
    def everything(self) -> range:
        """The numbers of all rules."""
        return range(len(self.switches))

    def named(self, rules: Iterable[int]) -> tuple[Rule, ...]:
        """The rules with these numbers; after those that a user wrote come those that variables bring along."""
        return tuple(self._all[rule] for rule in rules)

    def literals(self, values: Mapping[str, int]) -> list[int]:
        """Values of labels as literals; labels that no rule mentions are left out."""
        return [
            self.index[name] if value else -self.index[name] for name, value in values.items() if name in self.index
        ]

    def has_model(self, rules: Iterable[int], literals: Sequence[int] = ()) -> bool:
        """Whether rules and literals can hold together."""
        return self.solver.solve([*(self.switches[rule] for rule in rules), *literals])

    def model(self) -> NDArray[np.bool_]:
        """The values of the labels in the model that the last question found."""
        return self.solver.model()[: self.num_plain]

    def blamed(self) -> list[int]:
        """After an answer "no": rules that have no model together with the literals; not all may be needed."""
        return [self._number[literal] for literal in self.solver.core() if literal in self._number]

    def against(self, rules: Iterable[int], literals: Sequence[int] = ()) -> list[int]:
        """Of rules that have no model together with the literals, some of which each is needed for that."""
        if self.has_model(rules, literals):
            raise ValueError("these rules have a model")
        blamed = self.blamed()
        few, own = self._about(blamed, literals)
        return sorted(blamed[i] for i in minimal(few.everything, lambda kept: not few.has_model(kept, own)))

    def conflict(self, rules: Iterable[int], literals: Sequence[int]) -> tuple[list[int], dict[str, int]]:
        """Of rules and values that have no model together, some of which each is needed for that."""
        found = self.against(rules, literals)
        few, own = self._about(found, literals)
        needed = minimal(own, lambda kept: not few.has_model(few.everything, kept))
        return found, {few.labels[abs(v) - 1]: int(v > 0) for v in needed}

    def _about(self, rules: Sequence[int], literals: Sequence[int]) -> tuple[Questions, list[int]]:
        """A few of the rules, and the literals of their labels."""
        few = self.about(rules)
        return few, few.literals({self.labels[abs(v) - 1]: int(v > 0) for v in literals})

    def follows(self, rule: int, rules: Sequence[int]) -> bool:
        """Whether a rule holds wherever the others do."""
        return all(not self.has_model(rules, _denied(clause)) for clause in self.clauses[rule])

    def through(self, rule: int, rules: Sequence[int]) -> list[int]:
        """Of rules that imply a rule, some of which each is needed for that."""
        needed: dict[int, None] = {}
        for clause in self.clauses[rule]:
            if self.has_model(rules, _denied(clause)):
                raise ValueError("the rule does not follow")
            needed.update(dict.fromkeys(self.blamed()))
        blamed = sorted(needed)
        few = self.about([*blamed, rule])
        return [blamed[i] for i in minimal(range(len(blamed)), lambda kept: few.follows(len(blamed), kept))]

    def about(self, rules: Sequence[int]) -> Questions:
        """The same questions about a few of the rules, whose numbers are their places in the list."""
        listed = self.listed
        chosen = tuple(listed.rules[rule] for rule in rules)
        return Questions(replace(listed, rules=chosen), self.budget)

    def fewest_without(self, rules: Sequence[int], among_equals: Mapping[int, int] | None = None) -> list[int]:
        """The fewest of these rules without which the others can hold together.

        Args:
            among_equals: how much speaks against each rule; of several answers, one with the largest sum is taken.
        """
        against = {rule: (among_equals or {}).get(rule, 0) for rule in rules}
        unit = 1 + max(against.values(), default=0) * len(against)
        costs = {self.switches[rule]: unit + max(against.values()) - weight for rule, weight in against.items()}
        lost = cheapest(self.solver, costs)
        return [] if lost is None else sorted(self._number[switch] for switch in lost)

    def fewest_changes(
        self, rules: Iterable[int], values: Mapping[str, int], weights: Mapping[str, int] | None = None
    ) -> tuple[dict[str, int], dict[str, int]] | None:
        """The cheapest change of some values that makes the rules possible.

        Returns:
            The values that change, with their new value; and a model of the rules with all values. None if the rules
            have no model.
        """
        wanted = dict(zip(self.literals(values), (name for name in values if name in self.index), strict=True))
        costs = {literal: (weights or {}).get(name, 1) for literal, name in wanted.items()}
        lost = cheapest(self.solver, costs, [self.switches[rule] for rule in rules])
        if lost is None:
            return None
        model = dict(zip(self.labels, self.model().astype(int).tolist(), strict=True))
        return {wanted[literal]: model[wanted[literal]] for literal in lost}, model


def _denied(clause: Clause) -> list[int]:
    return [-literal for literal in clause]
