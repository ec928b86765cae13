"""Pictures for README and docs. Need matplotlib (extra `plot`)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.methods import METHODS
from experiments.pictures import COLOURS, blank_figure, save_svg

_TITLES = {
    "fil": "independent labels",
    "semantic-loss": "+ semantic loss",
    "nesy-entropy": "+ entropy",
    "spl": "SPL, one circuit",
    "product-spl": "SPL, two circuits",
}
_ENGINES = {
    "semprola": ("semprola", "#0072b2"),
    "klay eager": ("KLay, as it is", "#e69f00"),
    "klay compiled": ("KLay, compiled", "#d55e00"),
    "klay jax": ("KLay, in JAX", "#999999"),
}
_INK = "#333333"


def comparison_picture(groups: Mapping[str, Mapping[str, tuple[float, float, float]]], path: Path) -> Path:
    """Bars of exact match, one group per source of figures, one bar per method; returns the path.

    Args:
        groups: for each source the exact match, Hamming score and consistency of its methods.
        path: an SVG file.
    """
    figure = blank_figure(8.2, 3.4)
    axes = figure.subplots()
    width = 0.16
    for place, method in enumerate(METHODS):
        bars = [(x, seen[method][0]) for x, seen in enumerate(groups.values()) if method in seen]
        shift = (place - (len(METHODS) - 1) / 2) * width
        drawn = axes.bar(
            [x + shift for x, _ in bars], [value for _, value in bars], width * 0.92,
            color=COLOURS[method], label=_TITLES[method],
        )  # fmt: skip
        axes.bar_label(drawn, fmt="%.1f" if len(groups) < 3 else "%.0f", fontsize=7, color=_INK, padding=1)
    axes.set_xticks(range(len(groups)), [_wrapped(name) for name in groups], fontsize=8.5)
    axes.set_ylabel("all labels right, % of test rows", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(y=0.12)
    axes.tick_params(axis="x", length=0)
    axes.axvline(0.5, color="#bbbbbb", linewidth=1, linestyle=":")
    figure.legend(ncols=5, frameon=False, loc="upper center", fontsize=8.5, columnspacing=1.2, handlelength=1.2)
    figure.subplots_adjust(left=0.08, right=0.99, top=0.88, bottom=0.2)
    return save_svg(figure, path)


def speed_picture(calls: Mapping[str, Any], path: Path) -> Path:
    """Time from logits to log Z and its gradient for a batch of 128, on one thread; returns the path.

    Args:
        calls: the content of results/calls.json.
        path: an SVG file.
    """
    figure = blank_figure(8.2, 4.2)
    axes = figure.subplots()
    rows = [row for row in calls["rows"] if row["task"] == "log Z + gradient" and "cpu_ms" in row]
    circuits = sorted({row["circuit"]: row["edges"] for row in rows}.items(), key=lambda item: item[1])
    names = [name for name, _ in circuits]
    for place, (engine, (title, colour)) in enumerate(_ENGINES.items()):
        found = [(names.index(row["circuit"]), row["cpu_ms"]) for row in rows if row["engine"] == engine]
        shift = (place - 1.5) * 0.21
        bars = axes.barh([y + shift for y, _ in found], [ms for _, ms in found], 0.19, color=colour, label=title)
        axes.bar_label(bars, [_brief(ms) for _, ms in found], fontsize=7, color=_INK, padding=2)
    axes.set_yticks(range(len(names)), [f"{name}, {edges:,} edges" for name, edges in circuits], fontsize=8.5)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.margins(x=0.08)
    axes.set_xlabel("milliseconds on one thread, batch of 128: normaliser and gradient (log scale)", fontsize=8.5)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(ncols=4, frameon=False, loc="upper center", fontsize=9)
    figure.subplots_adjust(left=0.25, right=0.97, top=0.92, bottom=0.14)
    return save_svg(figure, path)


def _brief(ms: float) -> str:
    return f"{ms:.2g}" if ms < 10 else f"{ms:.0f}"


def _wrapped(name: str) -> str:
    return name.replace(": ", ":\n").replace(", ", ",\n")
