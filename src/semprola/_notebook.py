"""What notebooks show: small pieces of HTML, in colours that can be read on light and dark pages.

A picture in a notebook must never be slow and never fail: `shown` turns every error into "no picture", and the notebook
falls back to the text.
"""

from __future__ import annotations

import functools
import html
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

Owner = TypeVar("Owner")

BLUE, ORANGE = "#3b6fd4", "#d07a22"
COLOURS = (BLUE, "#b5520f", "#2a8553", "#9a48b3", "#a77700", "#c23b63", "#00818c", "#76700c")
"""For labels; each has enough contrast with white and with black."""
_CELL = "text-align:left;padding:2px 8px;border:0"
_NUMBER = "text-align:right;padding:2px 8px;border:0;font-variant-numeric:tabular-nums"
_QUIET = "opacity:.65;font-weight:normal"


def shown(make: Callable[[Owner], str | None]) -> Callable[[Owner], str | None]:
    """A method that returns HTML, or None where it fails or has nothing to show; notebooks then show the text."""

    @functools.wraps(make)
    def quietly(owner: Owner) -> str | None:
        try:
            return make(owner)
        except Exception:  # whatever it is: a picture is not worth an error
            return None

    return quietly


def text(words: object, most: int = 400) -> str:
    """Any text, safe in HTML and not too long."""
    words = str(words)
    return html.escape(words[:most] + "…" * (len(words) > most))


def heading(words: str) -> str:
    """A line above a table."""
    return f'<div style="{_QUIET}">{words}</div>'


def table(header: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Iterable[int] = ()) -> str:
    """A table of cells that are HTML already."""
    right = {*numbers}
    style = [_NUMBER if place in right else _CELL for place in range(len(header))]
    head = "".join(f'<th style="{s};{_QUIET}">{html.escape(name)}</th>' for s, name in zip(style, header, strict=True))
    body = "".join(
        "<tr>" + "".join(f'<td style="{s}">{cell}</td>' for s, cell in zip(style, row, strict=True)) + "</tr>"
        for row in rows
    )
    return (
        '<div style="overflow-x:auto"><table style="border-collapse:collapse;margin:2px 0">'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def bar(share: float, colour: str = BLUE) -> str:
    """A bar for a number from 0 to 1."""
    width = 80 * min(max(share, 0.0), 1.0)
    return (
        '<span style="display:inline-block;width:80px;background:rgba(128,128,128,.18)">'
        f'<span style="display:block;height:.7em;width:{width:.1f}px;background:{colour}"></span></span>'
    )


def beside(*parts: str) -> str:
    """Parts beside each other where there is room."""
    inside = "".join(f"<div>{part}</div>" for part in parts)
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px 32px">{inside}</div>'


def code(words: object, most: int = 400) -> str:
    """Text as code."""
    return f"<code>{text(words, most)}</code>"


def more(left: int, what: str) -> str:
    """A line that says how many are not shown; nothing if that is none."""
    return heading(f"… and {left:,} more {what}") if left > 0 else ""


def curve(title: str, xs: Sequence[float], ys: Sequence[float], mark: float | None = None, colour: str = BLUE) -> str:
    """A line chart as inline SVG."""
    low, high = min(ys), max(ys)
    span, width = (high - low) or 1.0, (xs[-1] - xs[0]) or 1.0

    def across(x: float) -> float:
        return 44 + 226 * (x - xs[0]) / width

    points = " ".join(f"{across(x):.1f},{112 - 84 * (y - low) / span:.1f}" for x, y in zip(xs, ys, strict=True))
    line = "" if mark is None else f'<line x1="{across(mark):.1f}" x2="{across(mark):.1f}" y1="24" y2="116" {_DASHED}/>'
    return (
        f'<svg viewBox="0 0 280 136" width="280" height="136" role="img" aria-label="{text(title)}" '
        'font-family="sans-serif" font-size="11" fill="currentColor">'
        f'<text x="44" y="14" font-weight="600">{text(title)}</text>'
        f'<text x="40" y="32" text-anchor="end">{high:.3g}</text>'
        f'<text x="40" y="116" text-anchor="end">{low:.3g}</text>'
        f'<line x1="44" x2="270" y1="116" y2="116" stroke="currentColor" stroke-opacity=".4"/>{line}'
        f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.8"/>'
        f'<text x="44" y="130">{xs[0]:g}</text><text x="270" y="130" text-anchor="end">{xs[-1]:g}</text></svg>'
    )


_DASHED = 'stroke="currentColor" stroke-opacity=".5" stroke-dasharray="3 3"'
