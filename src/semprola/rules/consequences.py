"""What follows from rules that can hold together: labels that are forced or equal, rules that say nothing new."""

from __future__ import annotations

import functools
import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from semprola.logic import Kind
from semprola.logic.rules import conjuncts, literal_of
from semprola.rules.questions import Questions

_SAMPLES = 48
"""Models to begin with; each question that they answer need not be asked of the solver."""

Check = Callable[[], None]


class Consequences:
    """What follows from some of the rules.

    Args:
        rules: the numbers of those that hold; together they must have a model.
    """

    def __init__(self, asked: Questions, rules: Iterable[int]) -> None:
        self.asked, self.rules = asked, list(rules)
        self.models = _sampled(asked, self.rules)
        self._forced: dict[str, int] | None = None
        self._chance = random.Random(1)

    def forced(self) -> dict[str, int]:
        """The labels that have only one value, with that value."""
        if self._forced is not None:
            return self._forced
        asked = self.asked
        candidates: NDArray[np.bool_] = (self.models == self.models[0]).all(0)
        expected = self.models[0]
        found: dict[str, int] = {}
        asked.solver.prefer([-v if expected[v - 1] else v for v in range(1, asked.num_plain + 1)])
        obvious = {abs(v) - 1 for v in asked.solver.obvious([asked.switches[rule] for rule in self.rules])}
        for place in np.flatnonzero(candidates).tolist():
            if place in obvious:
                found[asked.labels[place]] = int(expected[place])
                continue
            if not candidates[place]:
                continue
            value = bool(expected[place])
            if asked.has_model(self.rules, [-(place + 1) if value else place + 1]):
                candidates &= self._also() == expected
            else:
                found[asked.labels[place]] = int(value)
        self._forced = found
        return found

    def equal(self) -> list[list[str]]:
        """Groups of labels that always have the same value; a label with "~" before it has the opposite one.

        Labels with only one value are left out.
        """
        forced = self.forced()
        asked, base = self.asked, self.models[0]
        # labels are in one class if they, or one and the negation of the other, agree in all models so far
        group = _refined(np.zeros(asked.num_plain, dtype=np.int64), self.models ^ base)
        alone = [asked.index[name] for name in forced] + list(self._flips[1])
        group[np.array(alone, dtype=np.int64) - 1] = np.arange(-len(alone), 0)
        members: dict[int, list[int]] = {}
        for place in range(asked.num_plain):
            # the first label of a class stands for it; classes shrink while we go on
            while (first := members.get(int(group[place]), [place])[0]) != place:
                model = self._difference(first, place, bool(base[first] == base[place]))
                if model is None:
                    members[int(group[place])].append(place)
                    break
                group = _refined(group, (model ^ base)[None])
                members = {int(group[each[0]]): each for each in members.values()}
            else:
                members[int(group[place])] = [place]
        return [
            [asked.labels[p] if base[p] == base[places[0]] else f"~{asked.labels[p]}" for p in places]
            for places in members.values()
            if len(places) > 1
        ]

    def redundant(self) -> list[int]:
        """Rules that can all be left out at once; the others imply them. Of two that say the same, the later."""
        needed, _ = self._flips
        kept = list(self.rules)
        for rule in reversed(self.rules):
            if rule not in needed:
                others = [other for other in kept if other != rule]
                if self.asked.follows(rule, others):
                    kept = others
        return sorted({*self.rules} - {*kept})

    def vacuous(self) -> list[int]:
        """Rules that hold whatever the labels are."""
        hard = bool(self.asked.listed.background)
        return [
            rule
            for rule in self.rules
            if not self.asked.clauses[rule] or ((hard or not self._is_plain(rule)) and self.asked.follows(rule, []))
        ]

    def premise(self, rule: int) -> list[int] | None:
        """The premise of an implication, if it is a conjunction of literals; None otherwise."""
        formula = self.asked.listed.rules[rule].formula
        if formula.kind is not Kind.IMPLIES:
            return None
        found = [literal_of(part) for part in conjuncts(formula.args[0])]
        values = dict(literal for literal in found if literal is not None)
        return self.asked.literals(values) if None not in found else None

    def single(self, rule: int, kept: Sequence[int]) -> int | None:
        """A rule that alone implies this one, if there is one among those kept."""
        rules = self.asked.listed.rules
        # a variable with several values relates labels that no rule has in common
        wanted = None if self.asked.listed.background else {*rules[rule].formula.labels}
        for other in kept:
            shared = wanted is None or not wanted.isdisjoint(rules[other].formula.labels)
            if shared and other != rule and self.asked.follows(rule, [other]):
                return other
        return None

    @functools.cached_property
    def _flips(self) -> tuple[set[int], set[int]]:
        """Rules that surely do not follow from the others, and variables that are surely independent of all others.

        In a model of all rules, one label is changed. If this breaks a single rule, no others imply it. If it breaks
        none, the label is neither forced nor always equal to another. Only labels of rules that are plain clauses are
        looked at.
        """
        asked = self.asked
        plain = [rule for rule in self.rules if self._is_plain(rule)]
        others = [asked.listed.rules[r] for r in {*self.rules} - {*plain}] + list(asked.listed.background)
        elsewhere = [asked.index[name] for name in {name for rule in others for name in rule.formula.labels}]
        clauses = [clause for r in plain for clause in asked.clauses[r]]
        owner = np.array([r for r in plain for _ in asked.clauses[r]], dtype=np.int64)
        start = np.cumsum([0, *map(len, clauses)])[:-1]
        flat = np.array([v for clause in clauses for v in clause], dtype=np.int64)
        where = np.repeat(np.arange(len(clauses)), [len(clause) for clause in clauses])
        needed: set[int] = set()
        unclear = np.ones(asked.num_plain + 1, dtype=bool)
        for model in self.models if clauses else ():
            holds = model[np.abs(flat) - 1] == (flat > 0)
            critical = np.add.reduceat(holds, start) == 1
            chosen = holds & critical[where] & ~np.isin(np.abs(flat), elsewhere)
            label, rule = np.abs(flat[chosen]), owner[where[chosen]]
            pairs = np.unique(np.stack([label, rule]), axis=1)
            names, first, count = np.unique(pairs[0], return_index=True, return_counts=True)
            needed.update(pairs[1][first[count == 1]].tolist())
            broken = np.zeros(asked.num_plain + 1, dtype=bool)
            broken[names] = True
            unclear &= broken
        unclear[elsewhere] = True
        return needed, set(np.flatnonzero(~unclear).tolist()) - {0}

    def _is_plain(self, rule: int) -> bool:
        """Whether the clauses of a rule are over labels only."""
        return all(abs(v) <= self.asked.num_plain for clause in self.asked.clauses[rule] for v in clause)

    def _difference(self, first: int, second: int, same: bool) -> NDArray[np.bool_] | None:
        """A model in which two labels differ (or agree, if they should not); None if there is none."""
        self._vary()
        for value in (1, -1):
            literals = [value * (first + 1), -value * (second + 1) if same else value * (second + 1)]
            if self.asked.has_model(self.rules, literals):
                return self._also()
        return None

    def _vary(self) -> None:
        """Make the next model as different from the last as the solver can."""
        share = self._chance.random()
        last = self.asked.num_plain
        self.asked.solver.prefer([v if self._chance.random() < share else -v for v in range(1, last + 1)])

    def _also(self) -> NDArray[np.bool_]:
        """One more model, which the solver has just found."""
        model = self.asked.model()
        if len(self.models) < 2 * _SAMPLES:
            self.models = np.concatenate([self.models, model[None]])
        return model


def _sampled(asked: Questions, rules: Sequence[int]) -> NDArray[np.bool_]:
    """Some models, as different as the solver makes them when it prefers random values [models, labels]."""
    chance = random.Random(0)
    found = []
    for share in np.linspace(0, 1, _SAMPLES).tolist():
        asked.solver.prefer([v if chance.random() < share else -v for v in range(1, asked.num_plain + 1)])
        if not asked.has_model(rules):
            raise ValueError("these rules have no model")
        found.append(asked.model())
    return np.unique(np.array(found), axis=0)


def _refined(group: NDArray[np.int64], differences: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The classes [labels] split by further bits [models, labels]; the number of a class is its first label."""
    for bits in differences:
        _, first, inverse = np.unique(group * 2 + bits, return_index=True, return_inverse=True)
        group = first[inverse]
    return group
