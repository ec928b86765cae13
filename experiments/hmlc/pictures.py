"""The picture: how far each method is from our HMCNN, one row per set."""

from __future__ import annotations

import math
from pathlib import Path

from experiments.hmlc.collecting import AUPRC, EXACT, HAMMING, KNOWN, Campaign, Figures, deviation
from experiments.hmlc.sets import TWELVE
from experiments.pictures import COLOURS, save_svg
from semprola.errors import SemprolaError

_SERIES = (
    ("SPL", "spl", COLOURS["spl"], "o", -0.12),
    ("SPL + known label sets", "spl-known", COLOURS["spl-known"], "D", 0.12),
    ("FIL", "fil", COLOURS["fil"], "s", 0.3),
)
_KNOWN = ("SPL, best seen set", "#7ab6dd", "^", -0.3)
"""A figure of `spl`, in a lighter blue."""
_PANELS: tuple[tuple[str, Figures], ...] = (
    ("exact match (percentage points)", EXACT),
    ("Hamming score (points; beyond 0.01 logarithmic)", HAMMING),
    ("AU(PRC)", AUPRC),
)
_HAMMING_TICKS = (-0.1, -0.01, 0, 0.01, 0.1)


def difference_picture(campaign: Campaign, path: Path) -> None:
    """Write an SVG: difference to our HMCNN, with the standard deviation of the difference of two runs.

    Raises:
        SemprolaError: matplotlib is not installed.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise SemprolaError("pictures are drawn by matplotlib: install semprola[plot]") from None
    figure = Figure(figsize=(11, 5.6), layout="constrained")
    panels = figure.subplots(1, len(_PANELS), sharey=True)
    for axes, (title, place) in zip(panels, _PANELS, strict=True):
        series = [(label, place, method, colour, marker, shift) for label, method, colour, marker, shift in _SERIES]
        if place is EXACT:
            series.append((_KNOWN[0], KNOWN, "spl", *_KNOWN[1:]))
        for label, figures, method, colour, marker, shift in series:
            points = _differences(campaign, figures, place, method)
            if not points:
                continue
            axes.errorbar(
                [value for _, value, _ in points],
                [row + shift for row, _, _ in points],
                xerr=[error for _, _, error in points],
                fmt=marker, color=colour, label=label, markersize=5, capsize=2, linewidth=1.2,
            )  # fmt: skip
        axes.axvline(0, color="black", linewidth=0.8)
        axes.set_title(title, fontsize=10)
        axes.grid(axis="x", alpha=0.3)
        if (
            place is HAMMING
        ):  # differences from 0.001 to 0.1: on a linear scale most sets would be dots on the zero line
            axes.set_xscale("symlog", linthresh=0.01, linscale=1.2)
            axes.set_xticks(_HAMMING_TICKS, [f"{tick:g}" for tick in _HAMMING_TICKS])
            axes.minorticks_off()
        else:
            axes.locator_params(axis="x", nbins=6)  # more would touch each other
    panels[0].set_yticks(range(len(TWELVE)), TWELVE)
    panels[0].set_ylim(len(TWELVE) - 0.5, -0.5)
    # below the panels, where it hides no point
    figure.legend(
        *panels[0].get_legend_handles_labels(), fontsize=9, loc="outside lower center", ncols=4, frameon=False
    )
    figure.suptitle("Difference to our HMCNN, test rows, retrained on train + valid", fontsize=11)
    save_svg(figure, path)


def _differences(
    campaign: Campaign, figures: Figures, baseline: Figures, method: str
) -> list[tuple[int, float, float]]:
    """Row, difference of means, and its standard deviation, for every set with runs of both."""
    points = []
    for row, name in enumerate(TWELVE):
        ours = figures.of(campaign.of(name, method), "retrained")
        theirs = baseline.of(campaign.of(name, "hmcnn"), "retrained")
        if ours and theirs:
            gap = sum(ours) / len(ours) - sum(theirs) / len(theirs)
            points.append((row, gap, math.hypot(deviation(ours), deviation(theirs))))
    return points
