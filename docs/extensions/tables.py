"""Tables of figures: two levels of headings, numbers to the right and words to the left, scrolling inside the page."""

from __future__ import annotations

import re
from itertools import groupby
from typing import Any

from docutils import nodes

NUMBER = re.compile(r"^[-+±−~]?\s*[\d.,]+|^(–|—|-|)$")
"""What a cell of a column of numbers starts with; a dash or nothing stands for a figure that is missing."""


def improve(app: Any, doctree: nodes.document) -> None:
    """Change all tables of a page."""
    for table in list(doctree.findall(nodes.table)):
        group = next(iter(table.findall(nodes.tgroup)), None)
        body = next(iter(table.findall(nodes.tbody)), None)
        if group is None or body is None:
            continue
        _align(group, body)
        _two_levels(group)
        box = nodes.container(classes=["scrolling"])
        table.replace_self(box)
        box += table


def _align(group: nodes.tgroup, body: nodes.tbody) -> None:
    """Mark the cells of columns in which all are numbers, and those of all others."""
    rows = [list(row.findall(nodes.entry)) for row in group.findall(nodes.row)]
    figures = [list(row.findall(nodes.entry)) for row in body.findall(nodes.row)]
    for place in range(max(len(row) for row in rows)):
        cells = [row[place].astext().strip() for row in figures if place < len(row)]
        number = place > 0 and any(re.search(r"\d", cell) for cell in cells) and all(map(_fits, cells))
        for row in rows:
            if place < len(row):
                kept = [name for name in row[place]["classes"] if not name.startswith("text-")]
                row[place]["classes"] = [*kept, "text-right" if number else "text-left"]


def _fits(cell: str) -> bool:
    """A figure, or a word or two in its place, such as "not run"."""
    return bool(NUMBER.match(cell) or re.fullmatch(r"[a-z]+( [a-z]+){0,2}", cell))


def _two_levels(group: nodes.tgroup) -> None:
    """Headings "group: column" become a first row with the groups and a second one with the columns."""
    head = next(iter(group.findall(nodes.thead)), None)
    if head is None or len(head) != 1:
        return
    cells = list(head[0].findall(nodes.entry))
    names = [cell.astext() for cell in cells]
    groups = [name.split(": ")[0] if ": " in name else "" for name in names]
    if not any(groups.count(name) > 1 for name in groups if name):
        return
    top = nodes.row()
    for name, members in groupby(range(len(cells)), key=lambda place: groups[place]):
        count = len(list(members))
        entry = nodes.entry(classes=["group"] if name else [])
        if count > 1:
            entry["morecols"] = count - 1
        entry += nodes.paragraph("", name)
        top += entry
    for cell, name in zip(cells, groups, strict=True):
        if name:
            first = next(iter(cell.findall(nodes.Text)))
            shorter = first.astext().split(": ", 1)
            if len(shorter) == 2:
                first.parent.replace(first, nodes.Text(shorter[1]))
    head.insert(0, top)


def setup(app: Any) -> dict[str, bool]:
    """Before pages are written."""
    app.connect("doctree-read", improve)
    return {"parallel_read_safe": True}
