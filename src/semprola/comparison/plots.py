"""The plots of a comparison as SVG text, one panel per metric; needs no drawing library."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from statistics import mean, stdev

from semprola.comparison.comparing import METRICS, Comparison

_WIDTH, _NAMES, _ROW, _TOP, _BOTTOM = 400, 175, 22, 30, 26
_TICKS = 4
_PERCENT = ("exact", "hamming", "consistent", "auprc")


def panels(comparison: Comparison) -> str:
    """One SVG per metric that any method has: one dot per method, with a bar of one standard deviation to each side.

    Example:
        >>> rows = [{"method": "fil", "title": "FIL", "folds": [{"exact": 60.0}, {"exact": 62.0}]}]
        >>> panels(Comparison(rows, {})).count("<circle")
        1
    """
    return "".join(_panel(comparison, metric) for metric in METRICS)


def _panel(comparison: Comparison, metric: str) -> str:
    points = []
    for row in comparison.rows:
        values = [fold[metric] for fold in row.get("folds", []) if fold.get(metric) is not None]
        if values:
            points.append((row, mean(values), stdev(values) if len(values) > 1 else 0.0))
    if not points:
        return ""
    ticks = [0.0, 25.0, 50.0, 75.0, 100.0]
    if metric not in _PERCENT:
        low, high = (f(m + sign * spread for _, m, spread in points) for f, sign in ((min, -1), (max, 1)))
        ticks = _ticks(low, high)
    height = _TOP + _ROW * len(points) + _BOTTOM
    title = METRICS[metric] + (" (%)" if metric in _PERCENT else "")
    lines = [
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{html.escape(title)} of every method">',
        f'<text x="{_NAMES}" y="16" class="title">{html.escape(title)}</text>',
    ]
    for tick in ticks:
        x, low = _place(tick, ticks), height - _BOTTOM
        lines.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{low}" class="grid"/>')
        lines.append(f'<text x="{x:.1f}" y="{low + 16}" text-anchor="middle">{tick:.6g}</text>')
    for place, (row, middle, spread) in enumerate(points):
        y = _TOP + _ROW * (place + 0.5)
        kind = "own" if "spl" in row["method"] else "other"
        ends = (max(middle - spread, ticks[0]), middle, min(middle + spread, ticks[-1]))
        left, x, right = (_place(value, ticks) for value in ends)
        lines.append(f'<text x="{_NAMES - 10}" y="{y + 4:.1f}" text-anchor="end">{html.escape(row["title"])}</text>')
        lines.append(f'<line x1="{left:.1f}" x2="{right:.1f}" y1="{y:.1f}" y2="{y:.1f}" class="{kind}"/>')
        lines.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{kind}"/>')
    return "".join([*lines, "</svg>"])


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers from below `low` to above `high`."""
    span = max(high - low, 1e-3 * max(abs(low), abs(high)), 1e-9)
    power = 10.0 ** math.floor(math.log10(span / _TICKS))
    step = next(power * factor for factor in (1, 2, 5, 10) if span / (power * factor) <= _TICKS)
    first, last = math.floor(low / step), math.ceil(high / step)
    return [number * step for number in range(first, max(last, first + 1) + 1)]


def _place(value: float, ticks: Sequence[float]) -> float:
    share = (value - ticks[0]) / (ticks[-1] - ticks[0])
    return _NAMES + share * (_WIDTH - _NAMES - 20)
