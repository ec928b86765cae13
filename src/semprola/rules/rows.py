"""Rows of data against rules: which rows break which, the nearest row that obeys, and what would let all rows pass."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.errors import CompilationBudgetError
from semprola.logic import And, Formula, Kind
from semprola.logic.evaluate import evaluate_columns
from semprola.rules.listing import Rule
from semprola.rules.questions import Questions
from semprola.rules.solving import cheapest, new_solver
from semprola.rules.tables import Rows, Table
from semprola.rules.variables import told

_MOST_CELLS = 8


@dataclass(frozen=True)
class BrokenRow:
    """A row that breaks rules.

    Attributes:
        row: its position from 0, or its name in the index of a data frame.
        place: the same for messages, such as "row 3" or "rows.csv:5".
        rules: the rules that it breaks; if it breaks none on its own, the rules that together leave no way to fill in
            its empty cells.
        values: the observed values of the labels in these rules; of a variable that the data has as one column, its
            value.
        changes: the fewest cells that must change (or the cheapest, with weights), and their new values; the row then
            obeys all rules. None if that is not known.
    """

    row: Any
    place: str
    rules: tuple[Rule, ...]
    values: dict[str, Any]
    changes: dict[str, Any] | None

    @property
    def observed(self) -> str:
        """The values as text; of many, the first."""
        return told(self.values, _MOST_CELLS)

    @property
    def nearest(self) -> str:
        """The changes as text; of many, the first."""
        return told(self.changes or {}, _MOST_CELLS) or "this one, without the rules to remove"


@dataclass(frozen=True)
class RuleUse:
    """What the rows say about one rule.

    Attributes:
        rule: the rule.
        broken_by: how many rows break it.
        only_by_it: how many of these rows break no other rule: as many more rows pass without it.
        exercised_by: how many rows it is about: of an implication, those in which the premise holds; of any other
            rule, those in which at least one of its labels is 1.
        log_likelihood: by how much the mean log-likelihood of the rows that obey all rules changes if the rule is
            dropped, for a single circuit with the best weights; None if that is not known.
    """

    rule: Rule
    broken_by: int
    only_by_it: int
    exercised_by: int
    log_likelihood: float | None = None


@dataclass(frozen=True)
class RowReview:
    """What the rows of a table and the rules say about each other.

    Attributes:
        rows: the number of rows.
        broken: the rows that break rules, in order.
        uses: what the rows say about each rule, in the order of the rules.
        to_drop: the fewest rules without which all rows pass; None if that is not known, or no rules would do.
    """

    rows: int
    broken: tuple[BrokenRow, ...]
    uses: tuple[RuleUse, ...]
    to_drop: tuple[Rule, ...] | None

    @property
    def never_exercised(self) -> list[Rule]:
        """The rules that no row is about: the data cannot say whether they are right."""
        return [use.rule for use in self.uses if not use.exercised_by]

    @property
    def cells_to_change(self) -> int | None:
        """The fewest cells that must change for all rows to pass; None if that is not known."""
        counts = [None if row.changes is None else len(row.changes) for row in self.broken]
        return None if None in counts else sum(count for count in counts if count is not None)


@dataclass(frozen=True)
class Facts:
    """Which rows break which rules.

    Attributes:
        table: the rows.
        values: the columns of the rules' labels, in the order of the solver's [rows, labels].
        breaks: which rows break each rule on its own; after the rules come those that variables bring along.
        exercised: which rows each rule is about.
        first: the first of all rows that are equal, for each row.
    """

    table: Rows
    values: Table
    breaks: NDArray[np.bool_]
    exercised: NDArray[np.bool_]
    first: NDArray[np.int64]

    @property
    def distinct(self) -> list[int]:
        """One of each set of equal rows."""
        return sorted({*self.first.tolist()})

    def is_partial(self, row: int) -> bool:
        """Whether a row has empty cells."""
        return bool(np.isnan(self.values[row]).any())

    def literals(self, row: int) -> list[int]:
        """The observed values of a row."""
        known = np.flatnonzero(~np.isnan(self.values[row]))
        return [int(place) + 1 if self.values[row, place] else -int(place) - 1 for place in known]


def facts(asked: Questions, table: Rows) -> Facts:
    """Compare each row with each rule."""
    place = {name: i for i, name in enumerate(table.names)}
    values = table.values[:, [place[name] for name in asked.labels]]
    breaks, exercised = _matrices(asked, values)
    _, first, inverse = np.unique(np.nan_to_num(values, nan=2), axis=0, return_index=True, return_inverse=True)
    return Facts(table, values, breaks, exercised, first[inverse.reshape(-1)])


def review_rows(asked: Questions, known: Facts, possible: Sequence[int], weights: Mapping[str, int]) -> RowReview:
    """What rows and rules say about each other.

    Args:
        possible: the numbers of rules that can hold together; changes lead to rows that obey these.
    """
    breaks, table = known.breaks, known.table
    cores = _joint(asked, known, possible)
    changes = _changes(asked, known, cores, possible, weights)
    broken = []
    for row, at in enumerate(known.first.tolist()):
        found = asked.named(np.flatnonzero(breaks[:, at]).tolist() or cores.get(at, ()))
        if found:
            mentioned = (name for rule in found for name in rule.formula.labels)
            names = dict.fromkeys(label for name in mentioned for label in table.whole.together(name))
            seen = {name: known.values[row, asked.index[name] - 1] for name in names}
            observed = table.whole.whole({name: int(value) for name, value in seen.items() if value == value})
            broken.append(BrokenRow(table.index[row], table.places[row], found, observed, changes.get(at)))
    alone = breaks.sum(0) == 1
    uses = tuple(
        RuleUse(rule, int(breaks[r].sum()), int((breaks[r] & alone).sum()), int(known.exercised[r].sum()))
        for r, rule in enumerate(asked.listed.rules)
    )
    dropped = None if breaks[len(uses) :].any() else _to_drop(asked, known)
    return RowReview(len(known.values), tuple(broken), uses, None if dropped is None else asked.named(dropped))


def _matrices(asked: Questions, values: Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rule each row breaks, and which it is about [rules and background, rows]."""
    background = asked.listed.background
    rules = [rule.formula for rule in (*asked.listed.rules, *background)]
    group_of = {label: group.formula for group in background for label in group.formula.labels}
    breaks = np.zeros((len(rules), len(values)), dtype=bool)
    exercised = np.zeros_like(breaks)
    is_one, unknown = values == 1, np.isnan(values)
    partial = unknown.any(1)
    for number, rule in enumerate(rules):
        places = [asked.index[name] - 1 for name in rule.labels]
        columns = {name: is_one[:, place] for name, place in zip(rule.labels, places, strict=True)}
        open_rows = unknown[:, places].any(1) if partial.any() else partial
        breaks[number] = ~evaluate_columns(rule, columns, len(values)) & ~open_rows
        if open_rows.any():  # empty cells are filled in so that each variable has one value
            whole = And([rule, *dict.fromkeys(group_of[name] for name in rule.labels if name in group_of)])
            columns_of = [asked.index[name] - 1 for name in whole.labels]
            breaks[number, open_rows] = _impossible(whole, values[open_rows][:, columns_of])
        exercised[number] = _is_about(rule, columns, unknown[:, places], len(values))
    return breaks, exercised


def _impossible(rule: Formula, rows: Table) -> NDArray[np.bool_]:
    """Which rows with empty cells break a rule however they are filled in."""
    from semprola.distributions.conflicts import SECONDS, impossible_for  # needs torch

    try:
        return impossible_for(rule, rows, SECONDS)
    except CompilationBudgetError:
        return np.zeros(len(rows), bool)  # the solver looks at all rules together


def _is_about(rule: Formula, columns: Mapping[str, NDArray[np.bool_]], unknown: Any, rows: int) -> NDArray[np.bool_]:
    """Whether each row is about a rule; an empty cell counts as 0."""
    if rule.kind is Kind.IMPLIES:
        premise = rule.args[0]
        place = {name: i for i, name in enumerate(rule.labels)}
        open_rows = unknown[:, [place[name] for name in premise.labels]].any(1)
        holds: NDArray[np.bool_] = evaluate_columns(premise, columns, rows) & ~open_rows
        return holds
    some: NDArray[np.bool_] = np.logical_or.reduce([*columns.values(), np.zeros(rows, bool)])
    return some


def _joint(asked: Questions, known: Facts, possible: Sequence[int]) -> dict[int, list[int]]:
    """Rows with empty cells that break no rule on its own, with the rules that together leave no completion."""
    found = {}
    for row in known.distinct:
        if known.is_partial(row) and not known.breaks[:, row].any():
            literals = known.literals(row)
            if not asked.has_model(possible, literals):
                found[row] = asked.against(possible, literals)
    return found


def _changes(
    asked: Questions,
    known: Facts,
    cores: Mapping[int, list[int]],
    possible: Sequence[int],
    weights: Mapping[str, int],
) -> dict[int, dict[str, Any]]:
    """For each broken row, the cheapest change after which it obeys; as far as time allows."""
    found: dict[int, dict[str, Any]] = {}
    whole = known.table.whole
    try:
        for row in known.distinct:
            if row not in cores and not known.breaks[:, row].any():
                continue
            asked.budget.check(f"looking for the nearest rows that obey ({len(found):,} found)")
            values = zip(asked.labels, known.values[row].tolist(), strict=True)
            observed = whole.without_others({name: int(v) for name, v in values if v == v})
            change = asked.fewest_changes(possible, observed, weights)
            if change is not None:
                found[row] = whole.changed(*change)
    except CompilationBudgetError:
        pass
    return found


def _to_drop(asked: Questions, known: Facts) -> list[int] | None:
    """The fewest rules without which all rows pass.

    A rule that a row breaks on its own must go. The others are chosen so that of each set of rules that leaves no
    completion of a row, at least one goes; such sets are collected until all rows pass.
    """
    gone = set(np.flatnonzero(known.breaks[: len(asked.everything)].any(1)).tolist())
    rest = [rule for rule in asked.everything if rule not in gone]
    chart = new_solver(len(asked.everything), (), asked.budget)
    also: list[int] = []
    rows = [known.literals(row) for row in known.distinct if known.is_partial(row)]
    try:
        while True:
            kept = [rule for rule in rest if rule not in {*also}]
            cores = [asked.against(kept, row) for row in rows if not asked.has_model(kept, row)]
            if not cores:
                return sorted([*gone, *also])
            if any(not core for core in cores):
                return None
            for core in cores:
                chart.add([-rule - 1 for rule in core])
            also = [literal - 1 for literal in cheapest(chart, {rule + 1: 1 for rule in rest}) or ()]
    except CompilationBudgetError:
        return None
