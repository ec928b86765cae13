"""The picture of broken and whole paths on the front pages, in a light and a dark version, drawn as SVG text."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.data import grid_graph
from experiments.provenance import read_json
from semprola._files import write_atomically

SOURCE = "simple-path-paper-published-wide-turned-small-search"
"""The runs whose predictions are shown: of each method, those of the first seed."""
COLUMNS = {
    "fil": "independent labels",
    "semantic-loss": "with a penalty",
    "product-spl": "with semprola",
    "": "the right path",
}
"""Headings of the columns, by method; the empty name is the truth."""
THEMES = {
    "light": {"ink": "#24303d", "quiet": "#66727f", "edge": "#c9d0d7", "whole": "#1a8a4a", "broken": "#d0342c"},
    "dark": {"ink": "#e6e9ec", "quiet": "#a3adb8", "edge": "#4a535c", "whole": "#4cc37d", "broken": "#ff6b61"},
}
_SIDE, _STEP, _LEFT, _TOP, _WIDTH, _HEIGHT = 4, 38, 33, 58, 180, 186


def draw(results: Path, folder: Path, shown: int = 2) -> list[Path]:
    """Write ``front-light.svg`` and ``front-dark.svg`` into a folder; returns their paths.

    Args:
        results: the folder of the results files.
        folder: where the pictures go.
        shown: number of test rows: the first ones that independent labels break.
    """
    runs = {run["method"]: run["examples"] for run in reversed(read_json(results / f"{SOURCE}.json")["results"])}
    rows = [row for row, obeys in enumerate(runs["fil"]["obeys"]) if not obeys][:shown]
    paths = []
    for name, colours in THEMES.items():
        path = folder / f"front-{name}.svg"
        write_atomically(path, _picture(runs, rows, colours).encode())
        paths.append(path)
    return paths


def _picture(runs: dict[str, Any], rows: Sequence[int], colours: dict[str, str]) -> str:
    width, height = _WIDTH * len(COLUMNS), _TOP + _HEIGHT * len(rows) - 26
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" '
        'font-family="-apple-system, Segoe UI, Helvetica, Arial, sans-serif">',
        "<title>Paths on a grid: independent labels and a penalty break them, the layer never does</title>",
    ]
    for column, (method, heading) in enumerate(COLUMNS.items()):
        middle = column * _WIDTH + _WIDTH / 2
        weight = "600" if method == "product-spl" else "400"
        parts.append(
            f'<text x="{middle:g}" y="22" text-anchor="middle" font-size="17" font-weight="{weight}" '
            f'fill="{colours["ink"]}">{html.escape(heading)}</text>'
        )
        examples = runs[method or "fil"]
        for place, row in enumerate(rows):
            whole = not method or bool(examples["obeys"][row])
            bits = examples["y" if not method else "predicted"][row]
            parts += _grid(column * _WIDTH + _LEFT, _TOP + place * _HEIGHT, examples["x"][row], bits, whole, colours)
    return "\n".join([*parts, "</svg>", ""])


def _grid(left: float, top: float, x: str, used: str, whole: bool, colours: dict[str, str]) -> list[str]:
    """One grid: what is there in grey, what is predicted in colour, the two ends as rings."""
    colour = colours["whole" if whole else "broken"]
    thin, thick, dots = [], [], []
    for number, (u, v) in enumerate(grid_graph().edges):
        (x1, y1), (x2, y2) = (_place(left, top, node) for node in (u, v))
        line = f'<path d="M{x1:g} {y1:g}L{x2:g} {y2:g}" stroke-linecap="round"'
        there = x[_SIDE * _SIDE + number] == "1"
        if there:
            thin.append(f'{line} stroke="{colours["edge"]}" stroke-width="2"/>')
        if used[number] == "1":
            dashes = "" if there else ' stroke-dasharray="3 8"'
            thick.append(f'{line} stroke="{colour}" stroke-width="7"{dashes}/>')
    for node in range(_SIDE * _SIDE):
        cx, cy = _place(left, top, node)
        end = x[node] == "1"
        dots.append(
            f'<circle cx="{cx:g}" cy="{cy:g}" r="{8 if end else 2.6}" fill="{colours["ink" if end else "quiet"]}"/>'
        )
    mark, word = ("✓", "a path") if whole else ("✗", "not a path")
    text = (
        f'<text x="{left + 1.5 * _STEP:g}" y="{top + 3 * _STEP + 33:g}" text-anchor="middle" font-size="15" '
        f'fill="{colour}">{mark} {word}</text>'
    )
    return [*thin, *thick, *dots, text]


def _place(left: float, top: float, node: int) -> tuple[float, float]:
    return left + _STEP * (node % _SIDE), top + _STEP * (node // _SIDE)
