"""Two lists of rules beside each other: which is stricter, and on which label vectors do they differ?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

from semprola._notebook import heading, shown, table, text
from semprola._words import size
from semprola.compiler.budget import Budget
from semprola.compiler.models import model_count
from semprola.errors import CompilationBudgetError
from semprola.logic import And
from semprola.rules.listing import Rule, listed
from semprola.rules.questions import Questions
from semprola.rules.solving import cheapest

Relation = Literal["equal", "stricter", "looser", "incomparable"]
_SAID = {
    "equal": "the rules allow the same label vectors",
    "stricter": "the first rules are stricter: they allow some of the label vectors that the second allow",
    "looser": "the first rules are looser: they allow all label vectors that the second allow, and more",
    "incomparable": "each of the two allows label vectors that the other does not",
}


@dataclass(frozen=True)
class Witness:
    """A label vector that only one of two lists of rules allows, with the fewest labels that are 1.

    Attributes:
        values: the value of each label.
        breaks: the rules of the other list that it breaks.
    """

    values: dict[str, int]
    breaks: tuple[Rule, ...]

    def __str__(self) -> str:
        ones = ", ".join(name for name, value in self.values.items() if value) or "no label"
        return f"{ones} (the others are 0) breaks {'; '.join(map(str, self.breaks))}"


@dataclass(frozen=True)
class Comparison:
    """How two lists of rules differ, over the labels of both; labels that a list does not mention are free in it.

    Attributes:
        relation: "equal", "stricter" (the first allows less), "looser" (it allows more), or "incomparable".
        models: how many label vectors each of the two allows; None if that is not known.
        only_first: the smallest label vector that the first allows and the second does not; None if there is none.
        only_second: the other way round.
        labels_of_first: labels that only the first mentions.
        labels_of_second: labels that only the second mentions.
    """

    relation: Relation
    models: tuple[int | None, int | None]
    only_first: Witness | None
    only_second: Witness | None
    labels_of_first: tuple[str, ...]
    labels_of_second: tuple[str, ...]

    @property
    def ratio(self) -> Fraction | None:
        """The label vectors that the first allows, as a multiple of those of the second; None if it is not known."""
        first, second = self.models
        return None if first is None or not second else Fraction(first, second)

    @shown
    def _repr_html_(self) -> str | None:
        sides = [("first", self.models[0], self.only_first, self.labels_of_first)]
        sides.append(("second", self.models[1], self.only_second, self.labels_of_second))
        rows = [
            [
                f"the {which}",
                "not known" if models is None else size(models),
                "nothing" if witness is None else text(witness),
                text(", ".join(names) or "none"),
            ]
            for which, models, witness, names in sides
        ]
        header = ["rules", "label vectors", "only they allow, for example", "labels only they mention"]
        return heading(_SAID[self.relation]) + table(header, rows, numbers=[1])

    def __str__(self) -> str:
        counts = ["an unknown number of" if count is None else size(count) for count in self.models]
        lines = [_SAID[self.relation], f"label vectors: {counts[0]} and {counts[1]}"]
        if self.only_first is not None:
            lines.append(f"only the first allow: {self.only_first}")
        if self.only_second is not None:
            lines.append(f"only the second allow: {self.only_second}")
        for which, names in (("first", self.labels_of_first), ("second", self.labels_of_second)):
            if names:
                lines.append(f"only the {which} mention: {', '.join(names[:10])}{', …' if len(names) > 10 else ''}")
        return "\n".join(lines)


def compare(a: Any, b: Any, *, timeout: float | None = 60.0) -> Comparison:
    """Compare two lists of rules.

    Args:
        a: rules in any form, see :func:`semprola.rules.review`.
        b: likewise.
        timeout: seconds. The numbers of models are left out if counting takes longer.

    Raises:
        CompilationBudgetError: time ran out before the relation was known.

    Example:
        >>> import semprola as sp
        >>> print(sp.rules.compare("cat -> animal\\ndog -> animal", "cat | dog -> animal\\n~(cat & dog)"))
        the first rules are looser: they allow all label vectors that the second allow, and more
        label vectors: 5 and 4
        only the first allow: cat, animal, dog (the others are 0) breaks ~(cat & dog)
    """
    budget = Budget(timeout, progress=False)
    first, second = listed(a), listed(b)
    groups = {rule.text: rule for rule in (*first.background, *second.background)}
    labels = tuple(dict.fromkeys((*first.labels, *second.labels)))
    both = replace(first, rules=first.rules + second.rules, background=tuple(groups.values()), labels=labels)
    asked = Questions(both, budget)
    of_first = list(range(len(first.rules)))
    of_second = list(range(len(first.rules), len(both.rules)))
    only_first, only_second = _witness(asked, of_first, of_second), _witness(asked, of_second, of_first)
    relation: Relation = "equal" if only_second is None else "stricter"
    if only_first is not None:
        relation = "looser" if only_second is None else "incomparable"
    return Comparison(
        relation,
        (_models(asked, of_first, budget), _models(asked, of_second, budget)),
        only_first,
        only_second,
        tuple(name for name in first.labels if name not in set(second.labels)),
        tuple(name for name in second.labels if name not in set(first.labels)),
    )


def _witness(asked: Questions, obeyed: Sequence[int], broken: Sequence[int]) -> Witness | None:
    """The model of some rules with the fewest ones that breaks at least one of some other rules."""
    solver = asked.solver
    switch = solver.new()
    ways = []
    for rule in broken:
        for clause in asked.clauses[rule]:
            way = solver.new()
            ways.append(way)
            for literal in clause:
                solver.add((-way, -literal))
    solver.add((-switch, *ways))
    assumed = [switch, *(asked.switches[rule] for rule in obeyed)]
    ones = cheapest(solver, dict.fromkeys((-v for v in range(1, asked.num_plain + 1)), 1), assumed)
    if ones is None:
        return None
    model = solver.model()
    values = dict(zip(asked.labels, model[: asked.num_plain].astype(int).tolist(), strict=True))
    wrong = [r for r in broken if any(all(model[abs(v) - 1] != (v > 0) for v in c) for c in asked.clauses[r])]
    return Witness(values, asked.named(wrong))


def _models(asked: Questions, rules: Sequence[int], budget: Budget) -> int | None:
    listed = asked.listed
    formulas = [rule.formula for rule in (*(listed.rules[rule] for rule in rules), *listed.background)]
    left = budget.seconds_left
    if left == 0:
        return None
    try:
        return model_count(And(formulas), asked.labels, timeout=left, progress=False)
    except CompilationBudgetError:
        return None
