"""The pictures of docs/concepts.md: a compilation step by step, and the two layers, all drawn by the library.

``python -m experiments concepts`` writes them into docs/images.
"""

from __future__ import annotations

import argparse
import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from experiments.compile_steps import trace
from semprola._files import write_atomically
from semprola.circuit import Circuit

RULES = "(cat -> animal) & (dog -> animal)"
_INK, _PALE, _BLUE, _GREEN = "#24303d", "#eef2f6", "#3b6fd4", "#3c9a5f"
_SIZE = re.compile(r'width="(\d+)" height="(\d+)"')


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw all of them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m experiments concepts", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/images"), help="folder for the pictures")
    for path in draw(parser.parse_args(arguments).out):
        print(path)
    return 0


def draw(folder: Path) -> list[Path]:
    """Write the pictures into a folder; returns their paths."""
    steps = trace(RULES)
    pictures = {f"compile_{number}.svg": _drawn(step.circuit) for number, step in enumerate(steps, 1)}
    whole = pictures[f"compile_{len(steps)}.svg"]
    pictures["layer_one.svg"] = _one_circuit(whole)
    pictures["layer_two.svg"] = _two_circuits(whole, steps[-1].circuit.labels)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pictures.items():
        write_atomically(folder / name, text.encode())
    return [folder / name for name in pictures]


def _drawn(circuit: Circuit) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "circuit.svg"
        circuit.draw(path)
        return path.read_text(encoding="utf-8")


def _one_circuit(circuit: str) -> str:
    """The gate's outputs weight the branches of the constraint."""
    width, height = _size(circuit)
    middle = height / 2 + 20
    parts = [
        _box(20, middle, 96, "network", "features z"),
        _arrow(118, middle, 176),
        _box(178, middle, 132, "gate", "one weight", "per branch"),
        _arrow(312, middle, 376, "at each ⊕"),
        _inside(circuit, 380, 20),
        _arrow(384 + width, middle, 440 + width),
        _text(448 + width, middle - 6, "p(y | x)", 15, "start"),
        _text(448 + width, middle + 14, "normalised as it is", 11, "start"),
    ]
    return _page(580 + width, height + 40, parts)


def _two_circuits(circuit: str, labels: Sequence[str]) -> str:
    """The gate gives a distribution q; it is multiplied by the circuit, and one pass gives the normaliser."""
    width, height = _size(circuit)
    middle = height / 2 + 20
    rows = [middle + 34 * (place - (len(labels) - 1) / 2) for place in range(len(labels))]
    parts = [
        _box(20, middle, 96, "network", "features z"),
        _arrow(118, middle, 176),
        _box(178, middle, 112, "gate", "one logit", "per label"),
        *(_arrow(292, middle, 346, bend=row) for row in rows),
        *(_pill(348, row, f"q({label})") for label, row in zip(labels, rows, strict=True)),
        _text(466, middle + 7, "×", 24),
        _inside(circuit, 484, 20),
        _text(500 + width, middle + 6, "÷ Z", 18, "start"),
        _arrow(540 + width, middle, 580 + width),
        _text(586 + width, middle - 6, "p(y | x)", 15, "start"),
        _text(586 + width, middle + 14, "Z = q(rules), one pass", 11, "start"),
    ]
    return _page(730 + width, height + 40, parts)


def _size(svg: str) -> tuple[int, int]:
    found = _SIZE.search(svg)
    if found is None:
        raise ValueError("the picture of a circuit has no size")
    return int(found[1]), int(found[2])


def _inside(svg: str, x: float, y: float) -> str:
    return svg.replace("<svg ", f'<svg x="{x:g}" y="{y:g}" ', 1).rstrip()


def _box(x: float, middle: float, width: float, title: str, *lines: str) -> str:
    height = 34 + 16 * len(lines)
    top = middle - height / 2
    parts = [
        f'<rect x="{x:g}" y="{top:g}" width="{width:g}" height="{height}" rx="8" fill="{_PALE}" stroke="{_BLUE}"/>',
        _text(x + width / 2, top + 21, title, 14),
    ]
    parts += [_text(x + width / 2, top + 40 + 16 * number, line, 11) for number, line in enumerate(lines)]
    return "\n".join(parts)


def _pill(x: float, middle: float, text: str) -> str:
    shape = f'<rect x="{x:g}" y="{middle - 12:g}" width="100" height="24" rx="12" fill="#e3f4e7" stroke="{_GREEN}"/>'
    return shape + "\n" + _text(x + 50, middle + 4, text, 12)


def _arrow(x: float, y: float, end: float, label: str = "", bend: float | None = None) -> str:
    target = y if bend is None else bend
    half = (x + end) / 2
    lines = (
        f"M{x:g},{y:g} C{half:g},{y:g} {half:g},{target:g} {end:g},{target:g}",
        f"M{end - 7:g},{target - 4:g} L{end:g},{target:g} L{end - 7:g},{target + 4:g}",
    )
    drawn = [f'<path d="{line}" fill="none" stroke="{_INK}"/>' for line in lines]
    return "\n".join([*drawn, *([_text(half, y - 8, label, 11)] if label else [])])


def _text(x: float, y: float, text: str, size: int, anchor: str = "middle") -> str:
    return f'<text x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{_INK}">{text}</text>'


def _page(width: float, height: float, parts: Sequence[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:g}" height="{height:g}" '
        f'viewBox="0 0 {width:g} {height:g}" font-family="Helvetica, Arial, sans-serif">'
    )
    return "\n".join([head, '<rect width="100%" height="100%" fill="#ffffff"/>', *parts, "</svg>", ""])
