"""The review: everything that can be said about a list of rules, alone or beside data."""

from __future__ import annotations

import functools
import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from semprola.compiler.budget import Budget, Progress
from semprola.compiler.models import model_count
from semprola.errors import CompilationBudgetError, LabelError
from semprola.logic.messages import brief
from semprola.rules.consequences import Consequences
from semprola.rules.contradictions import contradictions
from semprola.rules.findings import Redundant, Review, Why
from semprola.rules.likelihood import likelihoods_without
from semprola.rules.listing import listed
from semprola.rules.questions import Questions
from semprola.rules.rows import Facts, RowReview, facts, review_rows
from semprola.rules.spelling import similar_names
from semprola.rules.tables import as_rows
from semprola.rules.variables import Variables

Found = TypeVar("Found")
Other = TypeVar("Other")

_SHARE, _LIKELIHOOD_SECONDS, _COUNT_SECONDS = 0.5, 5.0, 15.0
"""The most that one part may use of the time that is left, and the most seconds for two parts that may take long."""


def review(
    rules: Any,
    data: Any = None,
    labels: Sequence[str] | None = None,
    *,
    weights: Mapping[str, int] | None = None,
    most: int = 20,
    timeout: float | None = 60.0,
    progress: bool | Callable[[Progress], None] | None = False,
) -> Review:
    """Check rules, alone or beside data.

    Of the rules: contradictions, labels that are forced or always equal, rules that say nothing new, labels with
    similar names, the number of models. With data: the rows that break rules, the nearest rows that obey, rules that
    no row is about, and what would let all rows pass.

    Args:
        rules: a formula; a text or a file with one rule per line; a data frame (see :func:`semprola.rules.read`); a
            list of these.
        data: a data frame, a mapping of columns, or an array [rows, labels] with values 0, 1, and NaN where not
            observed. A row with empty cells breaks a rule if no way to fill them in obeys it. A variable with several
            values may be one column with its values.
        labels: names of the columns of an array; by default the labels of the rules, in order of first appearance.
        weights: what the change of a label or a variable costs when the nearest row is looked for: whole numbers of at
            least 1, which is the default.
        most: stop after so many contradictions.
        timeout: seconds. Parts that would take longer are left out, and listed in ``not_known``.
        progress: as for :func:`semprola.compile`.

    Returns:
        The report. Large lists of rules need the extra `rules` (python-sat); small ones do not.

    Raises:
        ParseError, FormatError: the rules cannot be read.
        LabelError, ValueError: the data lacks a column, or has values that are not 0, 1 or NaN; or a weight is wrong.

    Example:
        >>> import semprola as sp
        >>> rules = "cat -> pet\\npet -> animal\\ncat -> animal\\ndog -> animal"
        >>> print(sp.rules.review(rules, {"cat": [1, 0], "pet": [1, 0], "animal": [0, 1], "dog": [0, 0]}))
        4 rules over 4 labels, 7 label vectors obey them all
        rules that follow from others
          cat -> animal  follows from cat -> pet; pet -> animal
        1 of 2 rows break the rules
          row 0: pet -> animal and cat -> animal (pet=1, animal=0, cat=1); nearest row that obeys: animal=1
        rules by the rows that break them
          pet -> animal: 1 row, 0 of them break no other rule; without it -0.04 nats per row
          cat -> animal: 1 row, 0 of them break no other rule; without it +0.00 nats per row
        all rows pass after a change of 1 cell
        all rows pass without 2 rules
          pet -> animal
          cat -> animal
        rules that no row is about
          dog -> animal
    """
    started = time.monotonic()
    if most < 1:
        raise ValueError(f"most must be at least 1, not {most}")
    budget = Budget(timeout, progress=progress)
    try:
        found = _Reviewer(rules, budget, most).report(data, labels, weights)
    finally:
        budget.close()
    return replace(found, seconds=time.monotonic() - started)


class _Reviewer:
    def __init__(self, rules: Any, budget: Budget, most: int) -> None:
        self.listed = listed(rules)
        self.budget, self.most = budget, most
        self.not_known: list[str] = []
        self.asked = Questions(self.listed, budget)
        self.variables = Variables(self.listed.variables)

    def report(self, data: Any, labels: Sequence[str] | None, weights: Mapping[str, int] | None) -> Review:
        asked = self.asked
        costs = self._costs(weights)
        # the data is looked at first, so that mistakes in it are reported at once
        known = None if data is None else facts(asked, as_rows(data, asked.labels, labels, self.variables))
        satisfiable = self._try("whether all rules can hold together", lambda: asked.has_model(asked.everything), None)
        bad, are_all = list[list[int]](), satisfiable is True
        left_out: list[int] | None = []
        if satisfiable is False:
            search = functools.partial(contradictions, asked, self.most)
            bad, are_all = self._try("all contradictions", search, (bad, False))
            left_out = self._try("the fewest rules to remove", lambda: self._fewest(known), None)
        possible = [rule for rule in asked.everything if left_out is not None and rule not in {*left_out}]
        forced, equal, redundant = dict[str, int](), list[list[str]](), list[Redundant]()
        if satisfiable is not None and left_out is not None:
            consequences = self._try("what follows", lambda: Consequences(asked, possible), None)
            if consequences is not None:
                forced, equal, redundant = self._consequences(consequences, possible)
        return Review(
            rules=self.listed.rules,
            labels=tuple(asked.labels),
            satisfiable=satisfiable,
            contradictions=tuple(map(asked.named, bad)),
            all_contradictions=are_all,
            left_out=asked.named(left_out or ()),
            forced=self.variables.whole(forced),
            equal=tuple(map(tuple, equal)),
            redundant=tuple(redundant),
            similar_labels=tuple(self._try("similar labels", lambda: similar_names(asked.labels), [])),
            models=0 if satisfiable is False else self._models(),
            data=None if known is None else self._rows(known, possible, costs),
            not_known=tuple(self.not_known),
            seconds=0.0,
        )

    def _costs(self, weights: Any) -> dict[str, int]:
        """What the change of each label costs; the weight of a variable holds for all of its labels."""
        if not isinstance(weights, Mapping | None):
            raise TypeError(f"weights must be a mapping from labels to whole numbers, not {brief(weights)}")
        found: dict[str, int] = {}
        for name, weight in (weights or {}).items():
            labels = self.variables.labels.get(name, (name,))
            if labels[0] not in self.asked.index:
                raise LabelError(f"weights: {brief(name)} is not a label of the rules")
            if not isinstance(weight, int | np.integer) or weight < 1:
                raise ValueError(f"weights: {name!r} must cost a whole number of at least 1, not {brief(weight)}")
            found |= dict.fromkeys(labels, int(weight))
        return found

    def _consequences(
        self, found: Consequences, possible: list[int]
    ) -> tuple[dict[str, int], list[list[str]], list[Redundant]]:
        forced: dict[str, int] = self._try("labels with only one value", found.forced, {})
        equal: list[list[str]] = self._try("labels that are always equal", found.equal, [])
        # of a variable with two values, one is always the opposite of the other
        home = self.variables.home
        equal = [group for group in equal if len({home.get(name.removeprefix("~"), name) for name in group}) > 1]
        none: tuple[list[int], list[int]] = ([], [])
        part = "rules that follow from others"
        vacuous, others = self._try(part, lambda: (found.vacuous(), found.redundant()), none)
        kept = [rule for rule in possible if rule not in {*others}]
        redundant = []
        for rule in others:
            why = functools.partial(self._why, found, rule, kept, vacuous)
            follows: tuple[Why, list[int]] = ("follows", [])
            reason, by = self._try("through which rules others follow", why, follows)
            redundant.append(Redundant(self.listed.rules[rule], reason, self.asked.named(by)))
        return forced, equal, redundant

    def _why(self, found: Consequences, rule: int, kept: list[int], vacuous: list[int]) -> tuple[Why, list[int]]:
        if rule in vacuous:
            return "always true", []
        single = found.single(rule, kept)
        if single is not None and self.asked.about([single, rule]).follows(0, [1]):
            return "same", [single]
        premise = found.premise(rule)
        if premise is not None and not self.asked.has_model(kept, premise):
            return "never applies", self.asked.against(kept, premise)
        return ("follows", self.asked.through(rule, kept)) if single is None else ("stricter", [single])

    def _models(self) -> int | None:
        left = self.budget.seconds_left
        seconds = min(_COUNT_SECONDS, _COUNT_SECONDS if left is None else left)
        if not seconds:
            self.not_known.append("the number of models")
            return None
        whole = self.listed.whole
        return self._try("the number of models", lambda: model_count(whole, timeout=seconds, progress=False), None)

    def _fewest(self, known: Facts | None) -> list[int]:
        """The fewest rules to remove: rules that many rows break go first, then those that fix most labels."""
        fixed = [sum(len(clause) == 1 for clause in clauses) for clauses in self.asked.clauses]
        broken_by = [0] * len(fixed) if known is None else known.breaks.sum(1).tolist()
        against = {rule: broken_by[rule] * (max(fixed) + 1) + fixed[rule] for rule in self.asked.everything}
        return self.asked.fewest_without(self.asked.everything, against)

    def _rows(self, known: Facts, possible: list[int], weights: Mapping[str, int]) -> RowReview | None:
        asked, table = self.asked, known.table
        found = self._try("the rows", lambda: review_rows(asked, known, possible, weights), None)
        if found is None:
            return None
        if any(row.changes is None for row in found.broken):
            self.not_known.append("the nearest row that obeys, for some rows")
        if found.to_drop is None and found.broken:
            self.not_known.append("the fewest rules without which all rows pass")
        if len(possible) < len(asked.everything):
            return found
        broken = {row.row for row in found.broken}
        obeys = [i for i, row in enumerate(table.index) if row not in broken and not np.isnan(table.values[i]).any()]
        if not obeys:
            return found
        importlib.import_module("semprola.nn")  # loads torch, which must not use up the time for the rules
        left = self.budget.seconds_left
        budget = self.budget.within(_LIKELIHOOD_SECONDS if left is None else min(_LIKELIHOOD_SECONDS, _SHARE * left))
        order = sorted(asked.everything, key=lambda rule: -found.uses[rule].broken_by)
        formulas = [*(rule.formula for rule in self.listed.rules), *(rule.formula for rule in self.listed.background)]
        changes = likelihoods_without(formulas, table.names, table.values[obeys], order, budget)
        if len(changes) < len(order):
            self.not_known.append("the likelihood without each rule")
        uses = [replace(use, log_likelihood=changes.get(number)) for number, use in enumerate(found.uses)]
        return replace(found, uses=tuple(uses))

    def _try(self, what: str, compute: Callable[[], Found], otherwise: Other) -> Found | Other:
        """A part of the review, unless it takes more than its share of the time."""
        left = self.budget.seconds_left
        own = self.budget if left is None else self.budget.within(_SHARE * left)
        self.asked.solver.budget = self.asked.budget = own
        try:
            return compute()
        except CompilationBudgetError:
            if what not in self.not_known:
                self.not_known.append(what)
            return otherwise
