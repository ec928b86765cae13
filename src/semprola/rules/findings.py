"""The report of a review: what was found, as Python values, text, HTML and JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal

from semprola._html import html_page
from semprola._words import size
from semprola.rules.listing import Rule
from semprola.rules.rows import RowReview
from semprola.rules.showing import Section, sections

Why = Literal["always true", "never applies", "same", "stricter", "follows"]
_WORDS: dict[Why, str] = {
    "always true": "holds whatever the labels are",
    "never applies": "its premise is impossible because of",
    "same": "says the same as",
    "stricter": "is hidden by the stricter rule",
    "follows": "follows from",
}


@dataclass(frozen=True)
class Redundant:
    """A rule that can be dropped without a change.

    Attributes:
        rule: the rule.
        why: "always true" (a vacuous rule); "never applies" (the premise is impossible); "same" (as one other rule),
            "stricter" (one other rule is stricter and hides it), or "follows" (from several rules together).
        by: the rules that imply it, or make its premise impossible; each is needed for that.
    """

    rule: Rule
    why: Why
    by: tuple[Rule, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, [f"{self.rule}  {_WORDS[self.why]}", "; ".join(map(str, self.by))]))


@dataclass(frozen=True)
class Review:
    """What a review of rules found. ``print(review)`` shows it; notebooks show it as HTML.

    Attributes:
        rules: the rules, in order.
        labels: their labels.
        satisfiable: whether all rules can hold together; None if that is not known.
        models: the number of label vectors that obey all rules; None if it is not known.
        contradictions: sets of rules that have no model and of which each rule is needed, the shortest first.
        all_contradictions: whether there are no others.
        left_out: the fewest rules without which the others can hold together. What follows is about the others.
        forced: labels, or variables with several values, that have only one value, with that value.
        equal: groups of labels that always have the same value; "~" marks a label with the opposite one.
        redundant: rules that can all be dropped at once, because the others imply them.
        similar_labels: pairs of labels that may be one label, spelt in two ways.
        data: what the rows and the rules say about each other; None without data.
        not_known: parts of the review for which there was not enough time.
        seconds: how long it took.
    """

    rules: tuple[Rule, ...]
    labels: tuple[str, ...]
    satisfiable: bool | None
    models: int | None
    contradictions: tuple[tuple[Rule, ...], ...]
    all_contradictions: bool
    left_out: tuple[Rule, ...]
    forced: dict[str, Any]
    equal: tuple[tuple[str, ...], ...]
    redundant: tuple[Redundant, ...]
    similar_labels: tuple[tuple[str, str], ...]
    data: RowReview | None
    not_known: tuple[str, ...]
    seconds: float

    @property
    def ok(self) -> bool:
        """Whether the rules can hold together, and every row obeys them."""
        return self.satisfiable is True and (self.data is None or not self.data.broken)

    @property
    def vacuous(self) -> list[Redundant]:
        """Rules that say nothing: they always hold, or their premise is impossible."""
        return [each for each in self.redundant if each.why in ("always true", "never applies")]

    @property
    def hidden(self) -> list[Redundant]:
        """Rules that one other rule implies."""
        return [each for each in self.redundant if each.why in ("same", "stricter")]

    @property
    def sections(self) -> list[Section]:
        """The parts of the report; what has nothing to say is left out."""
        return [*sections(self)]

    def text(self, most: int | None = 20) -> str:
        """The report as text, with at most so many items of each kind (None: all)."""
        return "\n".join(section.text(most) for section in sections(self))

    def __str__(self) -> str:
        return self.text()

    def html(self) -> str:
        """The report as a page that loads nothing else."""
        return html_page("Review of rules", self._repr_html_())

    def _repr_html_(self) -> str:
        return f"<div>{''.join(section.html() for section in sections(self))}</div>"

    def to_dict(self) -> dict[str, Any]:
        """Everything as lists, dicts, texts and numbers, for JSON. Rules are named by their position in "rules"."""
        number = {id(rule): i for i, rule in enumerate(self.rules)}

        def numbers(rules: Iterable[Rule]) -> list[Any]:
            return [number.get(id(rule), str(rule)) for rule in rules]

        return {
            "ok": self.ok,
            "satisfiable": self.satisfiable,
            "rules": [{"rule": rule.text, "place": rule.place} for rule in self.rules],
            "labels": list(self.labels),
            "models": self.models,
            "contradictions": [numbers(rules) for rules in self.contradictions],
            "all contradictions": self.all_contradictions,
            "left out": numbers(self.left_out),
            "forced": self.forced,
            "equal": [list(group) for group in self.equal],
            "redundant": [
                {"rule": numbers([each.rule])[0], "why": each.why, "by": numbers(each.by)} for each in self.redundant
            ],
            "similar labels": [list(pair) for pair in self.similar_labels],
            "not known": list(self.not_known),
            "seconds": self.seconds,
            **({} if self.data is None else _data_dict(self.data, numbers)),
        }

    def to_json(self) -> str:
        """Everything as a JSON text; a number of models with more than 4,300 digits is a text of a few digits."""
        content = self.to_dict()
        if self.models is not None and self.models >= 10**4300:  # Python refuses to print it
            content["models"] = size(self.models)
        return json.dumps(content, default=str)


def _data_dict(data: RowReview, numbers: Any) -> dict[str, Any]:
    return {
        "rows": data.rows,
        "broken": len(data.broken),
        "broken rows": [
            {
                "row": row.row,
                "place": row.place,
                "rules": numbers(row.rules),
                "values": row.values,
                "changes": row.changes,
            }
            for row in data.broken
        ],
        "uses": [
            {
                "rule": number,
                "broken by": use.broken_by,
                "only by it": use.only_by_it,
                "exercised by": use.exercised_by,
                "log likelihood without it": use.log_likelihood,
            }
            for number, use in enumerate(data.uses)
        ],
        "rules to drop": None if data.to_drop is None else numbers(data.to_drop),
        "cells to change": data.cells_to_change,
    }
