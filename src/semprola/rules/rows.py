"""Rows of data against rules: which rows break which, the nearest row that obeys, and what would let all rows pass."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola._names import is_absent, named_rows, row_names
from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError, LabelError
from semprola.logic import And, Formula, Kind
from semprola.logic.evaluate import evaluate_columns
from semprola.logic.messages import brief
from semprola.rules.listing import Rule
from semprola.rules.questions import Questions
from semprola.rules.reading import is_frame
from semprola.rules.solving import cheapest, new_solver
from semprola.rules.variables import Variables, told

Table = NDArray[np.float32]
"""0, 1, and NaN where not observed [rows, labels]."""
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


@dataclass
class Rows:
    """A table of labels.

    Attributes:
        names: the labels.
        values: 0, 1, and NaN where not observed [rows, labels].
        index: what names each row.
        places: what messages call each row.
        whole: the variables with several values that are one column each.
    """

    names: Sequence[str]
    values: Table
    index: Sequence[Any]
    places: Sequence[str] = field(default_factory=list)
    whole: Variables = field(default_factory=lambda: Variables(()))

    def __post_init__(self) -> None:
        self.places = self.places or [f"row {name}" for name in self.index]


def as_rows(data: Any, names: Sequence[str], labels: Sequence[str] | None, variables: Variables | None = None) -> Rows:
    """Data in any form as a table with these labels.

    Args:
        data: a data frame or a mapping of columns, or an array or a tensor [rows, labels]; values are 0, 1, and NaN,
            None or NA where not observed. Or `Rows`.
        names: the labels of the rules.
        labels: names of the columns of an array; by default `names`.
        variables: variables with several values, which may be one column each, with their values.

    Raises:
        LabelError: a column is missing, a variable does not have a value, or the number of columns is wrong.
        ValueError: a value is something else.
    """
    if isinstance(data, Rows):
        return data
    if isinstance(data, str) or hasattr(data, "__fspath__"):
        raise TypeError(
            f"data must be a data frame or an array, not {data!r:.60}: read the file, or use semprola check"
        )
    index = row_names(data)
    whole = Variables(())
    own: Sequence[str] = names
    if is_frame(data) or isinstance(data, Mapping):
        columns = {name: data[name] for name in getattr(data, "columns", data)}
        if len({len(column) for column in columns.values() if np.ndim(column)}) > 1:
            raise LabelError("the columns of data differ in length")
        whole = (variables or whole).given(columns)
        data = whole.spelled(columns, _failing(index)) if whole.labels else data
        extra = {name for name in getattr(data, "columns", data) if name not in set(names)}
        kept = data if not extra else {name: data[name] for name in names if name in data}
        values = np.asarray(named_rows(kept, names, "data"))
    else:
        own = tuple(labels) if labels is not None else names
        values = _numbers(data)
    if values.ndim != 2 or values.shape[1] != len(own):
        raise LabelError(f"data has shape {values.shape}, expected [rows, {len(own)}], one column per label")
    missing = [name for name in names if name not in set(own)]
    if missing:
        raise LabelError(f"data has no column for {missing[0]!r}, which the rules mention")
    wrong = np.argwhere(~((values == 0) | (values == 1) | (np.isnan(values) if values.dtype.kind == "f" else False)))
    if len(wrong):
        row, column = wrong[0].tolist()
        place = row if index is None else index[row]
        found = f"data: row {place}, label {own[column]!r} is {values[row, column]}"
        raise ValueError(f"{found}, expected 0, 1, or NaN where not observed")
    column_of = {name: i for i, name in enumerate(own)}
    at = [column_of[name] for name in names]
    places = range(len(values)) if index is None else index
    return Rows(names, values[:, at].astype(np.float32), places, whole=whole)


def _numbers(data: Any) -> NDArray[Any]:
    try:
        values = np.asarray(data.detach().cpu() if hasattr(data, "detach") else data)
        if values.dtype == object:
            values = np.array([np.nan if is_absent(v) else v for v in values.flat], np.float64).reshape(values.shape)
    except (TypeError, ValueError):
        raise TypeError(f"data must be a data frame, a mapping of columns or an array, not {brief(data)}") from None
    return values


def _failing(index: Sequence[Any] | None) -> Callable[[str, int], None]:
    def fail(message: str, row: int) -> None:
        raise LabelError(f"data: row {row if index is None else index[row]}, {message}")

    return fail


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


def review_rows(
    asked: Questions, known: Facts, possible: Sequence[int], weights: Mapping[str, int] | None, budget: Budget
) -> RowReview:
    """What rows and rules say about each other.

    Args:
        asked: the rules.
        known: which rows break which rules.
        possible: the numbers of rules that can hold together; changes lead to rows that obey these.
        weights: what the change of a label costs.
        budget: what may be used for the changes, and for the rules to drop.
    """
    breaks, count = known.breaks, len(asked.everything)
    cores = _joint(asked, known, possible)
    changes = _changes(asked, known, cores, possible, weights, budget)
    rules = (*asked.listed.rules, *asked.listed.background)
    broken = []
    for row, at in enumerate(known.first.tolist()):
        found = np.flatnonzero(breaks[:, at]).tolist() or cores.get(at)
        if found:
            mentioned = (name for rule in found for name in rules[rule].formula.labels)
            names = dict.fromkeys(label for name in mentioned for label in known.table.whole.together(name))
            seen = {name: known.values[row, asked.index[name] - 1] for name in names}
            table = known.table
            observed = table.whole.whole({name: int(value) for name, value in seen.items() if not np.isnan(value)})
            chosen = tuple(rules[rule] for rule in found)
            broken.append(BrokenRow(table.index[row], table.places[row], chosen, observed, changes.get(at)))
    alone = breaks.sum(0) == 1
    uses = tuple(
        RuleUse(rule, int(breaks[r].sum()), int((breaks[r] & alone).sum()), int(known.exercised[r].sum()))
        for r, rule in enumerate(asked.listed.rules)
    )
    dropped = None if breaks[count:].any() else _to_drop(asked, known, budget)
    to_drop = None if dropped is None else tuple(asked.listed.rules[rule] for rule in dropped)
    return RowReview(len(known.values), tuple(broken), uses, to_drop)


def _matrices(asked: Questions, values: Table) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Which rule each row breaks, and which it is about [rules and background, rows]."""
    listed = asked.listed
    rules = [rule.formula for rule in (*listed.rules, *listed.background)]
    group_of = {label: group.formula for group in listed.background for label in group.formula.labels}
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
    weights: Mapping[str, int] | None,
    budget: Budget,
) -> dict[int, dict[str, Any]]:
    """For each broken row, the cheapest change after which it obeys; as far as time allows."""
    found: dict[int, dict[str, Any]] = {}
    whole = known.table.whole
    try:
        for row in known.distinct:
            if row not in cores and not known.breaks[:, row].any():
                continue
            budget.check(f"looking for the nearest rows that obey ({len(found):,} found)")
            values = zip(asked.labels, known.values[row].tolist(), strict=True)
            observed = whole.without_others({name: int(v) for name, v in values if v == v})
            change = asked.fewest_changes(possible, observed, weights)
            if change is not None:
                found[row] = whole.changed(*change)
    except CompilationBudgetError:
        pass
    return found


def _to_drop(asked: Questions, known: Facts, budget: Budget) -> list[int] | None:
    """The fewest rules without which all rows pass.

    A rule that a row breaks on its own must go. The others are chosen so that of each set of rules that leaves no
    completion of a row, at least one goes; such sets are collected until all rows pass.
    """
    gone = set(np.flatnonzero(known.breaks[: len(asked.everything)].any(1)).tolist())
    rest = [rule for rule in asked.everything if rule not in gone]
    chart = new_solver(len(asked.everything), (), budget)
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
