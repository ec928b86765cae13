"""The review of the rules on the page, alone or beside a table, and rules learnt from the table."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from semprola.cli.checking import rows_of
from semprola.cli.tables import as_numbers, read_table
from semprola.errors import FormatError, ParseError
from semprola.logic.parser import Rule as ParsedRule
from semprola.logic.parser import parse_lines
from semprola.logic.rules import placed
from semprola.playground.problems import RequestError
from semprola.rules import Review, learn, review
from semprola.rules.listing import listed

DROPPED = "# dropped: "
"""Lines of rules that the user has dropped begin with this, so that they are comments and can be brought back."""

_FILE = "rows.csv"
_MOST_ITEMS = 40
_MOST_LEARNT = 60


@dataclass(frozen=True)
class _Line:
    """A rule of the text: its first and last line, and whether it is dropped."""

    rule: ParsedRule
    last: int
    is_dropped: bool

    @property
    def place(self) -> str:
        return f"line {self.rule.line} {self.rule.name}".rstrip()


def review_text(text: str, rows: Any, seconds: float) -> dict[str, Any]:
    """What the page shows about its rules.

    Args:
        text: the rules, one per line; dropped ones begin with :data:`DROPPED`.

    Returns:
        The rules with their lines and what was found about each, and all sections of the report.

    Example:
        >>> found = review_text("a -> b\\n# dropped: b -> a\\na & c -> b", None, 5.0)
        >>> [(rule["first"], rule["dropped"], rule["notes"]) for rule in found["rules"]]
        [(1, False, []), (2, True, []), (3, False, ['a stricter rule hides it'])]
        >>> found["sections"][0]["title"]
        '2 rules over 3 labels, 6 label vectors obey them all'
    """
    lines = _lines(text)
    kept = [placed(line.rule.formula, line.place, line.rule.text) for line in lines if not line.is_dropped]
    if not kept:
        raise ParseError("there is no rule left: bring one back, or type one, such as cat -> animal")
    rules = listed(kept)
    with _file(rows) as path:
        table = None
        if path is not None:
            table = rows_of(path, rules)
            table.places = [place.replace(str(path), _FILE) for place in table.places]
        found = review(rules, table, timeout=seconds)
    notes = _notes(found)
    return {
        "ok": found.ok,
        "rules": [
            {
                "first": line.rule.line,
                "last": line.last,
                "text": line.rule.text,
                "name": line.rule.name,
                "dropped": line.is_dropped,
                "notes": [] if line.is_dropped else notes.get(line.place, []),
            }
            for line in lines
        ],
        "sections": [
            {"title": each.title, "items": each.items[:_MOST_ITEMS], "hidden": max(0, len(each.items) - _MOST_ITEMS)}
            for each in found.sections
        ],
    }


def learn_from(text: str, rows: Any, seconds: float) -> dict[str, Any]:
    """Rules that hold in the rows and do not follow from those of the text.

    Returns:
        The rules, those first that exclude most, and the columns that are not labels.

    Example:
        >>> rows = "cat,animal,name\\n" + "1,1,Tom\\n0,1,Rex\\n0,0,oak\\n" * 40
        >>> found = learn_from("", rows, 5.0)
        >>> [rule["text"] for rule in found["rules"]], found["not_labels"]
        (['cat -> animal'], ['name'])
    """
    with _file(rows) as path:
        if path is None:
            raise RequestError("choose a table first")
        table = read_table(path)
        columns, others = {}, []
        for name, column in table.columns.items():
            numbers, wrong = as_numbers(column)
            if wrong.any() or not (np.isnan(numbers) | (numbers == 0) | (numbers == 1)).all():
                others.append(name)
            else:
                columns[name] = numbers
        if not columns:
            raise FormatError(f"{_FILE}: no column has only 0, 1 and empty cells")
    known = [line.rule.formula for line in _lines(text) if not line.is_dropped]
    found = learn(columns, known or None, timeout=seconds)
    return {
        "rules": [
            {
                "text": str(rule.formula),
                "support": rule.support,
                "exceptions": rule.exceptions,
                "by_chance": round(rule.excludes, 1),
            }
            for rule in found.rules[:_MOST_LEARNT]
        ],
        "hidden": max(0, len(found.rules) - _MOST_LEARNT),
        "rows": found.rows,
        "constant": found.constant,
        "not_labels": others,
    }


def _lines(text: str) -> list[_Line]:
    """The rules of a text, those that are dropped among them."""
    lines = text.split("\n")
    dropped = {number for number, line in enumerate(lines, 1) if line.startswith(DROPPED)}
    try:
        rules = parse_lines("\n".join(line.removeprefix(DROPPED) for line in lines))
    except ParseError:  # a mistake in a rule that is dropped does not matter
        rules, dropped = parse_lines(text), set()
    ends = [rule.line for rule in rules[1:]] + [len(lines) + 1] * bool(rules)
    found = []
    for rule, end in zip(rules, ends, strict=True):
        last = end - 1
        while last > rule.line and _is_between(lines[last - 1]):
            last -= 1
        found.append(_Line(rule, last, rule.line in dropped))
    return found


def _is_between(line: str) -> bool:
    """Whether a line is no part of a rule: blank, a comment, or a declaration."""
    start = line.removeprefix(DROPPED).strip()
    return not start or start.startswith("#") or start.startswith("variable ")


def _notes(found: Review) -> dict[str, list[str]]:
    """In a few words what was found about each rule, by its place."""
    notes: dict[str, list[str]] = {}

    def note(rule: Any, words: str) -> None:
        listing = notes.setdefault(rule.place, [])
        if words not in listing:
            listing.append(words)

    for rules in found.contradictions:
        for rule in rules:
            note(rule, "part of a contradiction")
    why = {
        "always true": "always true",
        "never applies": "never applies",
        "same": "said twice",
        "stricter": "a stricter rule hides it",
        "follows": "follows from others",
    }
    for each in found.redundant:
        note(each.rule, why[each.why])
    for use in () if found.data is None else found.data.uses:
        if use.broken_by:
            note(
                use.rule,
                f"{use.broken_by:,} row{'' if use.broken_by == 1 else 's'} break{'s' * (use.broken_by == 1)} it",
            )
        if not use.exercised_by:
            note(use.rule, "no row is about it")
    return notes


@contextmanager
def _file(rows: Any) -> Iterator[Path | None]:
    """A file with these rows, for as long as it is read; errors do not name its folder."""
    if rows is None:
        yield None
        return
    if not isinstance(rows, str):
        raise RequestError("the rows must be text")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, _FILE)
        path.write_text(rows, encoding="utf-8", newline="")
        try:
            yield path
        except FormatError as error:
            raise FormatError(str(error).replace(str(path), _FILE)) from None
