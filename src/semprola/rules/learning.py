"""Learns rules from rows of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._notebook import code, heading, more, shown, table
from semprola._words import count
from semprola.compiler.budget import Budget
from semprola.errors import LabelError, UnsatisfiableError
from semprola.logic import And, Formula
from semprola.rules.chance import q_values
from semprola.rules.learnt import LearntRule, worded
from semprola.rules.listing import listed
from semprola.rules.mining import Pattern, candidates, evidence, literals_of
from semprola.rules.questions import Questions
from semprola.rules.reading import is_frame
from semprola.rules.solving import Solver
from semprola.rules.tables import as_rows

_LISTED = 40


@dataclass(frozen=True)
class Learnt:
    """Rules that hold in rows, a minimal cover, those that exclude most first.

    Attributes:
        rules: none of them follows from the others and the known rules.
        constant: labels that have the same value in all rows. Rows cannot tell whether that is a rule.
        rows: the number of rows.
        tested: how many rules were tested on the rows held out.
    """

    rules: tuple[LearntRule, ...]
    constant: dict[str, int] = field(default_factory=dict)
    rows: int = 0
    tested: int = 0

    @property
    def formula(self) -> Formula:
        """All of them."""
        return self.accept(range(len(self.rules)))

    def accept(self, chosen: Sequence[int]) -> Formula:
        """The chosen rules as one formula; rules are named by their places from 0.

        Raises:
            IndexError: there is no rule at a place.
        """
        wrong = [place for place in chosen if not 0 <= place < len(self.rules)]
        if wrong:
            raise IndexError(f"there is no rule {wrong[0]} among {count(len(self.rules), 'rule')}, counted from 0")
        return And([self.rules[place].formula for place in chosen])

    @shown
    def _repr_html_(self) -> str | None:
        title, *_ = str(self).split("\n")
        rows = [
            [str(place), code(rule.formula), f"{rule.support:,}", f"{rule.exceptions:,}", f"{rule.excludes:,.1f}"]
            for place, rule in enumerate(self.rules[:_LISTED])
        ]
        header = ["", "rule", "rows that could break it", "rows that do", "by chance"]
        listing = table(header, rows, numbers=[0, 2, 3, 4]) if rows else ""
        return heading(title) + listing + more(len(self.rules) - _LISTED, "rules")

    def __str__(self) -> str:
        found = f"{count(len(self.rules), 'rule')} hold{'s' * (len(self.rules) == 1)}"
        lines = [f"{found} in {count(self.rows, 'row')} ({self.tested:,} tested on the rows held out)"]
        lines += [f"  {place}: {rule}" for place, rule in enumerate(self.rules)]
        if self.constant:
            shown = ", ".join(f"{name}={value}" for name, value in list(self.constant.items())[:10])
            lines.append(f"labels with one value in all rows: {shown}{', …' if len(self.constant) > 10 else ''}")
        return "\n".join(lines)


def learn(
    data: Any,
    known: Any = None,
    *,
    labels: Sequence[str] | None = None,
    literals: int = 3,
    exceptions: float = 0.0,
    fdr: float = 0.05,
    seed: int = 0,
    timeout: float | None = 60.0,
) -> Learnt:
    """Learn rules that hold in rows: implications, exclusions, equivalences, cardinalities, and short clauses.

    One half of the rows, drawn at random, proposes rules; the other half tests each one. The test is Fisher's: would so
    few rows break the rule if one of its labels were independent of the others? It must be rejected for each of them.
    The procedure of Benjamini and Hochberg limits the expected share of rules, among those found, that hold by chance.
    A rule that passes may still be a strong correlation: look at the rules before you use them.

    Rules that follow from known rules, or from rules that exclude more, are left out.

    Args:
        data: a data frame, a mapping of columns, or an array [rows, labels] of 0 and 1; NaN where not observed.
        known: rules in any form that hold already, see :func:`semprola.rules.review`.
        labels: names of the columns of an array.
        literals: the most labels in a clause, 2 or 3. Groups of labels that exclude each other may be larger.
        exceptions: the share of the support that may break a rule, below 0.5.
        fdr: the rate of false discoveries.
        seed: of the draw of halves.
        timeout: seconds.

    Raises:
        LabelError: labels are missing, or do not match the data.
        ValueError: a value is not 0, 1 or NaN, or an option is out of range.
        UnsatisfiableError: the known rules contradict each other.
        CompilationBudgetError: time ran out; fewer literals need less.

    Example:
        >>> animal = np.tile([1, 1, 0, 0, 1], 40)
        >>> cat = np.tile([1, 0, 0, 0, 0], 40)
        >>> print(learn({"cat": cat, "animal": animal}))
        1 rule holds in 200 rows (1 tested on the rows held out)
          0: cat -> animal  (40 rows; by chance 16.0 would break it)
    """
    if literals not in (2, 3) or not 0 <= exceptions < 0.5 or not 0 < fdr < 1:
        raise ValueError("learn needs literals=2 or 3, 0 <= exceptions < 0.5 and 0 < fdr < 1")
    budget = Budget(timeout, progress=False)
    names = _names(data, labels)
    table = as_rows(data, names, names)
    held = literals_of(table.values)
    constant = _constant(names, held)
    order = np.random.default_rng(seed).permutation(len(held))
    first, second = held[order[::2]], held[order[1::2]]
    proposed = candidates(first, literals, exceptions, budget)
    kept = evidence(proposed, first, budget).holds(exceptions)
    proposed = [pattern for pattern, keep in zip(proposed, kept, strict=True) if keep]
    tests = evidence(proposed, second, budget)
    q = q_values(tests.log_p)
    whole = evidence(proposed, held, budget)
    passed = (q <= fdr) & tests.holds(exceptions) & whole.holds(exceptions)
    order = np.argsort(-whole.expected, kind="stable")
    places = _cover(order[passed[order]].tolist(), proposed, names, known, budget)
    rules = worded({proposed[place]: float(q[place]) for place in places}, names, held)
    return Learnt(tuple(sorted(rules, key=lambda rule: -rule.excludes)), constant, len(held), len(proposed))


def _names(data: Any, labels: Sequence[str] | None) -> list[str]:
    if labels is not None:
        own = list(labels)
    elif is_frame(data) or isinstance(data, Mapping):
        own = list(getattr(data, "columns", data))
        if not own:
            raise LabelError("learn: the data has no columns")
    else:
        raise LabelError("learn needs a data frame, a mapping of columns, or an array and labels= to name its columns")
    wrong = [name for name in own if not isinstance(name, str)]
    if wrong or len(set(own)) != len(own):
        raise LabelError(f"learn: labels must be distinct texts, not {wrong[0] if wrong else 'one of them twice'!r}")
    return own


def _constant(names: Sequence[str], held: NDArray[np.bool_]) -> dict[str, int]:
    ones, zeros = (np.asarray(held[:, start::2].any(0)).tolist() for start in (0, 1))
    return {name: int(one) for name, one, zero in zip(names, ones, zeros, strict=True) if one != zero}


def _cover(places: list[int], patterns: list[Pattern], names: Sequence[str], known: Any, budget: Budget) -> list[int]:
    """Of these patterns, in this order, some that imply the others; none follows from the rest and the known rules."""
    solver, variables = _knowing(known, names, budget)
    if not solver.solve():
        raise UnsatisfiableError("learn: the known rules contradict each other; sp.rules.review names them")
    kept: dict[int, list[int]] = {}
    for place in places:
        pattern = [variables[literal // 2] * (-1 if literal % 2 else 1) for literal in patterns[place]]
        denied = [-literal for literal in pattern]
        if solver.solve(pattern) and any(solver.solve([literal]) for literal in denied):
            solver.add(denied)
            kept[place] = pattern
    return _without_needless(kept, _knowing(known, names, budget)[0])


def _without_needless(kept: Mapping[int, list[int]], solver: Solver) -> list[int]:
    """Those that do not follow from the others; those that exclude least go first."""
    switch = {place: solver.new() for place in kept}
    for place, pattern in kept.items():
        solver.add([-switch[place], *(-literal for literal in pattern)])
    for place in reversed(list(kept)):
        others = [switch[other] for other in switch if other != place]
        if not solver.solve([*others, *kept[place]]):
            del switch[place]
    return list(switch)


def _knowing(known: Any, names: Sequence[str], budget: Budget) -> tuple[Solver, list[int]]:
    """A solver in which the known rules hold, and the variables of the labels."""
    asked = Questions(listed([] if known is None else known), budget)
    for switch in asked.switches:
        asked.solver.add([switch])
    return asked.solver, [asked.index.get(name) or asked.solver.new() for name in names]
