"""Tables of results for the terminal, Markdown and HTML, with our figures next to the paper's."""

from __future__ import annotations

import html
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from experiments.methods import METHODS, SHORT_TITLES, TITLES
from experiments.published import comparable

HEADINGS = ("exact", "Hamming", "consistent")
_FIELDS = ("exact", "hamming", "consistent")
_COLUMNS = 80

Row = tuple[str, tuple[str, str, str], str, str, int]
"""Method, three figures, Hamming score of its decoder, the paper's figures, seeds."""


def summary(results: Sequence[Mapping[str, Any]], experiment: str, paper: bool = True) -> list[Row]:
    """One row per method: mean ± standard deviation over seeds, on test rows.

    Args:
        results: results of `experiments.runs.run`, all of one task.
        experiment: the experiment whose published figures to include.
        paper: whether to include them.
    """
    rows: list[Row] = []
    for method in METHODS:
        tests = [result["test"] for result in results if result["method"] == method]
        if not tests:
            continue
        a, b, c = (spread([test[name] for test in tests]) for name in _FIELDS)
        setting = results[0].get("setting", "paper")
        published = comparable(experiment, setting).get(method) if paper else None
        beside = " / ".join(f"{value:.1f}" for value in published) if published else "–"
        decoder = spread([test["hamming_decoder"]["hamming"] for test in tests])
        rows.append((TITLES[method], (a, b, c), decoder, beside, len(tests)))
    return rows


def spread(values: Sequence[float]) -> str:
    """Mean ± sample standard deviation, or just the value if there is only one.

    Example:
        >>> spread([1.0, 3.0]), spread([2.0])
        ('2.0 ± 1.4', '2.0')
    """
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.1f}"
    deviation = math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))
    return f"{mean:.1f} ± {deviation:.1f}"


def text_table(rows: Sequence[Row], title: str = "") -> str:
    """The table as plain text of at most 80 columns."""
    lines = _cells(rows)
    widths = _widths(lines)
    text = [title] if title else []
    for line in lines:
        cells = [line[0].ljust(widths[0])] + [cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True)]
        text.append("  ".join(cells).rstrip())
    text.insert(len(text) - len(rows), "-" * _width(lines))
    return "\n".join(text)


def markdown_table(rows: Sequence[Row]) -> str:
    """The table in Markdown."""
    text = [
        "| method | exact | Hamming | consistent | Hamming, its decoder | paper: the same three | seeds |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, (a, b, c), decoder, beside, seeds in rows:
        text.append(f"| {name} | {a} | {b} | {c} | {decoder} | {beside} | {seeds} |")
    return "\n".join(text)


def html_table(rows: Sequence[Row]) -> str:
    """The table in HTML: larger is better, and the best figure of a column is bold."""
    headings = ("method", *(f"{heading}, % ↑" for heading in (*HEADINGS, "Hamming, its decoder")), "paper", "seeds")
    text = ["<table><tr>" + "".join(f"<th>{html.escape(heading)}</th>" for heading in headings) + "</tr>"]
    columns = zip(*([*figures, decoder] for _, figures, decoder, *_ in rows), strict=True)
    best = [max(float(cell.split()[0]) for cell in column) for column in columns]
    for name, figures, decoder, beside, seeds in rows:
        marked = [
            f"<b>{cell}</b>" if float(cell.split()[0]) == top else cell
            for cell, top in zip((*figures, decoder), best, strict=True)
        ]
        cells = (html.escape(name), *marked, html.escape(beside), str(seeds))
        text.append("<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>")
    return "\n".join(text) + "</table>"


_NAMES = {
    "replicas": "m",
    "units": "k",
    "semantic_weight": "weight",
    "penalty_from": "from step",
    "entropy_weight": "entropy weight",
    "weight_decay": "weight decay",
}


def search_lines(search: Sequence[Mapping[str, Any]]) -> list[str]:
    """What a search tried, one line of Markdown per method: figures on validation rows, with the choice in bold.

    Args:
        search: the search entries that `experiments.reproduce.reproduce` returns.
    """
    lines = []
    for method in METHODS:
        tried = [entry for entry in search if entry["method"] == method]
        seen = []
        for entry in tried:
            figures = " / ".join(f"{entry['valid'][name]:.1f}" for name in _FIELDS)
            words = f"{described(entry['settings'])}: {figures}, nll {entry['valid']['nll']:.3f}"
            seen.append(f"**{words}**" if entry["chosen"] else words)
        if seen:
            lines.append(f"- {TITLES[method]}: " + "; ".join(seen) + ".")
    return lines


def described(settings: Mapping[str, Any]) -> str:
    """Settings in words.

    Example:
        >>> described({"replicas": 4, "lr": 0.001})
        'm 4, lr 0.001'
    """
    words = [f"{_NAMES.get(name, name)} {_value(value)}" for name, value in settings.items()]
    return ", ".join(words) or "one candidate"


def print_table(rows: Sequence[Row], title: str = "") -> None:
    """Print the table, with rich if it is installed, otherwise as plain text."""
    try:
        from rich.console import Console
        from rich.table import Table
    except ImportError:
        print(text_table(rows, title))
        return
    headings, *lines = _cells(rows)
    table = Table(title=title or None, title_justify="left", title_style="bold", box=None, pad_edge=False)
    table.add_column(headings[0], no_wrap=True)
    for heading in headings[1:]:
        table.add_column(heading, justify="right", no_wrap=True)
    best = max(range(len(rows)), key=lambda i: _first(rows[i][1][0]), default=None)
    for i, line in enumerate(lines):
        table.add_row(*line, style="bold green" if i == best else None)
    # a narrower terminal wraps lines, which is better than rich's truncation of figures
    width = max(_COLUMNS, Console().width) if sys.stdout.isatty() else _COLUMNS
    Console(width=width, highlight=False).print(table)


def _cells(rows: Sequence[Row]) -> list[list[str]]:
    """Headings and lines of the table; if it is too wide, cells lose their blanks, and then names are shortened."""
    columns = 6 if any(row[3] != "–" for row in rows) else 5
    lines = [["method", *HEADINGS, "Hamming*", "paper"][:columns]]
    lines += [[name, *figures, decoder, beside][:columns] for name, figures, decoder, beside, _ in rows]
    if _width(lines) > _COLUMNS:
        lines = [[line[0], *(cell.replace(" ", "") for cell in line[1:])] for line in lines]
    if _width(lines) > _COLUMNS:
        short = {TITLES[method]: SHORT_TITLES[method] for method in METHODS}
        lines = [[short.get(line[0], line[0]), *line[1:]] for line in lines]
    return lines


def _width(lines: list[list[str]]) -> int:
    """Width of the table in characters, with two blanks between columns."""
    return sum(_widths(lines)) + 2 * len(lines[0]) - 2


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " → ".join(map(str, value)) or "linear"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _widths(lines: list[list[str]]) -> list[int]:
    return [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]


def _first(cell: str) -> float:
    return float(cell.split()[0])
