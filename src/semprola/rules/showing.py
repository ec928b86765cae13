"""Reviews as HTML: what is about rows as tables, the rest as lists."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from semprola._notebook import code, table, text
from semprola.rules.rows import RowReview

Item = TypeVar("Item")
_SHOWN = 20


def section(title: str, items: Sequence[str]) -> str:
    """A title above a list; all but the first are folded away."""
    return _titled(title, items, lambda some: f"<ul>{''.join(f'<li>{code(item, 10_000)}</li>' for item in some)}</ul>")


def broken_rows(title: str, data: RowReview) -> str:
    """The rows that break rules, one per line."""
    cells = [
        [
            text(row.place),
            "<br>".join(code(rule) for rule in row.rules),
            code(row.observed),
            "not known" if row.changes is None else code(row.nearest),
        ]
        for row in data.broken
    ]
    return _titled(title, cells, lambda some: table(["row", "breaks", "because of", "nearest row that obeys"], some))


def rules_by_rows(title: str, data: RowReview) -> str:
    """The rules that rows break, those that most rows break first."""
    broken = sorted((use for use in data.uses if use.broken_by), key=lambda use: -use.broken_by)
    cells = [
        [
            code(use.rule),
            f"{use.broken_by:,}",
            f"{use.only_by_it:,}",
            "not known" if use.log_likelihood is None else f"{use.log_likelihood:+.2f}",
        ]
        for use in broken
    ]
    header = ["rule", "rows", "that break no other", "nats per row without it"]
    return _titled(title, cells, lambda some: table(header, some, numbers=[1, 2, 3]))


def _titled(title: str, items: Sequence[Item], shape: Callable[[Sequence[Item]], str]) -> str:
    head = f"<p><b>{text(title)}</b></p>"
    if not items:
        return head
    rest = items[_SHOWN:]
    more = f"<details><summary>{len(rest):,} more</summary>{shape(rest)}</details>" if rest else ""
    return head + shape(items[:_SHOWN]) + more
