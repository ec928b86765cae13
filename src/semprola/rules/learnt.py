"""Rules learnt from rows, in words: patterns that do not occur become implications, exclusions, and cardinalities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from semprola.compiler.budget import Budget
from semprola.logic import And, Bool, Formula, Iff, Implies, Not, Or, at_most, exactly
from semprola.rules.mining import Pattern, broken, evidence

Kind = Literal["implication", "exclusion", "equivalence", "cardinality", "clause"]


@dataclass(frozen=True, eq=False)
class LearntRule:
    """A rule that holds in rows.

    Attributes:
        formula: the rule.
        kind: "implication", "exclusion", "equivalence", "cardinality", or "clause" for any other.
        support: rows that could break it: those in which all but one of its labels have the value that would. Of the
            choices of that one label, and of the parts of an equivalence or a cardinality, the smallest counts.
        exceptions: rows that break it.
        excludes: rows that would break it, at least, if one label were independent of the others.
        q_value: the smallest rate of false discoveries at which it is accepted, by the rows held out.
    """

    formula: Formula
    kind: Kind
    support: int
    exceptions: int
    excludes: float
    q_value: float

    def __str__(self) -> str:
        wrong = f", {self.exceptions:,} exceptions" if self.exceptions else ""
        return f"{self.formula}  ({self.support:,} rows{wrong}; by chance {self.excludes:,.1f} would break it)"


def worded(accepted: dict[Pattern, float], names: Sequence[str], held: NDArray[np.bool_]) -> list[LearntRule]:
    """Patterns as rules; several make one rule where that says the same.

    Args:
        held: which literals hold in each row [rows, 2 * labels].
    """
    left = dict.fromkeys(accepted)
    atoms = [Bool(name) for name in names]
    made: list[LearntRule] = []

    def make(formula: Formula, kind: Kind, parts: list[Pattern]) -> None:
        for part in parts:
            left.pop(part, None)
        found = evidence(parts, held, Budget())
        wrong = np.logical_or.reduce([broken(part, held) for part in parts])
        q = max(accepted[part] for part in parts)
        made.append(
            LearntRule(formula, kind, int(found.support.min()), int(wrong.sum()), float(found.expected.sum()), q)
        )

    for pattern in [each for each in accepted if _is_implication(each)]:
        back = tuple(sorted(literal ^ 1 for literal in pattern))
        if pattern in left and back in left:
            one, other = (atoms[literal // 2] for literal in pattern)
            make(Iff(one, other), "equivalence", [pattern, back])
    for pattern in [each for each in accepted if all(literal % 2 for literal in each)]:
        pairs = [*combinations((literal - 1 for literal in pattern), 2)]
        if all(pair in accepted for pair in pairs):
            make(exactly(1, [atoms[literal // 2] for literal in pattern]), "cardinality", [pattern, *pairs])
    for count in (1, 2):
        edges = {each for each in accepted if len(each) == count + 1 and not any(literal % 2 for literal in each)}
        for edge in [each for each in accepted if each in edges]:
            group = _grown(edge, edges) if edge in left else edge
            if len(group) > count + 1:
                members = [atoms[literal // 2] for literal in group]
                make(at_most(count, members), "cardinality", [*combinations(group, count + 1)])
    for pattern in list(left):
        make(*_clause(pattern, atoms), [pattern])
    return made


def _is_implication(pattern: Pattern) -> bool:
    return len(pattern) == 2 and sum(literal % 2 for literal in pattern) == 1


def _grown(edge: Pattern, edges: Iterable[Pattern]) -> Pattern:
    """A larger group of which all parts of the size of the edge are edges."""
    known, group = set(edges), edge
    for literal in sorted({literal for other in known if set(other) & set(edge) for literal in other} - set(edge)):
        if all(tuple(sorted((*part, literal))) in known for part in combinations(group, len(edge) - 1)):
            group = tuple(sorted((*group, literal)))
    return group


def _clause(pattern: Pattern, atoms: Sequence[Formula]) -> tuple[Formula, Kind]:
    premise = [atoms[literal // 2] for literal in pattern if not literal % 2]
    conclusion = [atoms[literal // 2] for literal in pattern if literal % 2]
    if not conclusion:
        return Not(And(premise)), "exclusion" if len(premise) == 2 else "clause"
    if not premise:
        return Or(conclusion), "clause"
    return Implies(And(premise), Or(conclusion)), "implication" if len(pattern) == 2 else "clause"
