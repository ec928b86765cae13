"""Reviews for people: parts with a title, as text and as HTML."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from semprola._notebook import code, table, text
from semprola._words import count
from semprola.rules.rows import RowReview
from semprola.rules.variables import quoted

if TYPE_CHECKING:
    from semprola.rules.findings import Review

_SHOWN = 20


@dataclass(frozen=True)
class Section:
    """A part of a report.

    Attributes:
        title: what it is about.
        items: what was found, as text.
        header: names of the columns, if HTML shows the items as rows of a table.
        cells: these rows; numbers are on the right.
    """

    title: str
    items: list[str] = field(default_factory=list)
    header: tuple[str, ...] = ()
    cells: list[list[str | int]] = field(default_factory=list)

    def text(self, most: int | None) -> str:
        """The title and at most so many items, one per line."""
        shown = self.items if most is None else self.items[:most]
        more = [f"… and {len(self.items) - len(shown):,} more"] if len(shown) < len(self.items) else []
        return "\n".join([self.title, *(f"  {item}" for item in (*shown, *more))])

    def html(self) -> str:
        """The title above a list or a table; all but the first items are folded away."""
        head = f"<p><b>{text(self.title)}</b></p>"
        rest = len(self.items) - _SHOWN
        more = f"<details><summary>{rest:,} more</summary>{self._html(_SHOWN, None)}</details>" if rest > 0 else ""
        return head + (self._html(0, _SHOWN) if self.items else "") + more

    def _html(self, start: int, end: int | None) -> str:
        if not self.header:
            return f"<ul>{''.join(f'<li>{code(item, 10_000)}</li>' for item in self.items[start:end])}</ul>"
        numbers = [i for i, cell in enumerate(self.cells[0]) if isinstance(cell, int)]
        rows = [[cell if isinstance(cell, str) else f"{cell:,}" for cell in row] for row in self.cells[start:end]]
        return table(self.header, rows, numbers=numbers)


def sections(review: Review) -> Iterator[Section]:
    """The parts of a review; what has nothing to say is left out."""
    rules, labels = len(review.rules), len(review.labels)
    models = "an unknown number of label vectors" if review.models is None else count(review.models, "label vector")
    obey = "obeys" if review.models == 1 else "obey"
    yield Section(f"{count(rules, 'rule')} over {count(labels, 'label')}, {models} {obey} them all")
    found = f"{'' if review.all_contradictions else 'at least '}{count(len(review.contradictions), 'contradiction')}"
    for title, items in (
        (f"{found}: these rules cannot hold together", ["; ".join(map(str, each)) for each in review.contradictions]),
        ("the fewest rules to remove; the rest of this report is about the others", [*map(str, review.left_out)]),
        ("labels with only one value", [f"{quoted(name)} = {value}" for name, value in review.forced.items()]),
        ("labels that are always equal (~: opposite)", [" = ".join(group) for group in review.equal]),
        ("rules that say nothing", [*map(str, review.vacuous)]),
        ("rules that another rule hides", [*map(str, review.hidden)]),
        ("rules that follow from others", [str(each) for each in review.redundant if each.why == "follows"]),
        ("labels with similar names: one label?", [", ".join(pair) for pair in review.similar_labels]),
    ):
        if items:
            yield Section(title, items)
    if review.data is not None:
        yield from _about_rows(review.data)
    if review.not_known:
        yield Section("not known, for want of time", [*review.not_known])


def _about_rows(data: RowReview) -> Iterator[Section]:
    items, cells = list[str](), list[list[str | int]]()
    for row in data.broken:
        change = "" if row.changes is None else f"; nearest row that obeys: {row.nearest}"
        items.append(f"{row.place}: {' and '.join(map(str, row.rules))} ({row.observed}){change}")
        nearest = "not known" if row.changes is None else code(row.nearest)
        cells.append([text(row.place), "<br>".join(map(code, row.rules)), code(row.observed), nearest])
    title = f"{len(items):,} of {count(data.rows, 'row')} break the rules"
    yield Section(title, items, ("row", "breaks", "because of", "nearest row that obeys"), cells)
    items, cells = [], []
    for use in sorted((use for use in data.uses if use.broken_by), key=lambda use: -use.broken_by):
        gain = None if use.log_likelihood is None else f"{use.log_likelihood:+.2f}"
        alone = f"{count(use.broken_by, 'row')}, {use.only_by_it:,} of them break no other rule"
        items.append(f"{use.rule}: {alone}" + ("" if gain is None else f"; without it {gain} nats per row"))
        cells.append([code(use.rule), use.broken_by, use.only_by_it, gain or "not known"])
    if items:
        header = ("rule", "rows", "that break no other", "nats per row without it")
        yield Section("rules by the rows that break them", items, header, cells)
    if data.broken and data.cells_to_change is not None:
        yield Section(f"all rows pass after a change of {count(data.cells_to_change, 'cell')}")
    if data.broken and data.to_drop is not None:
        yield Section(f"all rows pass without {count(len(data.to_drop), 'rule')}", [*map(str, data.to_drop)])
    if data.never_exercised:
        yield Section("rules that no row is about", [*map(str, data.never_exercised)])
