"""Tables of the map experiment, from its results files."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from experiments.warcraft.models import METHODS

PUBLISHED = {
    "fil": (55.0, 97.7, 56.9),
    "semantic-loss": (59.4, 97.7, 61.2),
    "product-spl": (78.2, 96.3, 100.0),
}
"""The paper's exact match, Hamming score and consistency, on the published maps with ResNet-18."""
COLUMNS = ("exact", "optimal", "cost ratio", "Hamming", "Hamming*", "consistent", "layer", "s")


def rows_of(results: Sequence[dict[str, Any]]) -> list[tuple[str, str, list[str]]]:
    """One row per network and method: network, title, and cells for `COLUMNS`, means with spreads over seeds."""
    groups: dict[tuple[str, str, int], list[dict[str, Any]]] = {}
    for result in results:
        model = result["model"]
        groups.setdefault((model["net"], model["method"], model["components"]), []).append(result)
    order = list(METHODS)
    made = []
    for (net, method, components), runs in sorted(groups.items(), key=lambda item: _place(item[0], order)):
        title = METHODS[method] + (f", M = {components}" if components > 1 else "")
        made.append((net, f"{title} ({len(runs)})", _cells(runs)))
    return made


def markdown(results: Sequence[dict[str, Any]]) -> str:
    """A Markdown table."""
    lines = ["| net | method (seeds) | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 2) + "|"]
    lines += [f"| {net} | {title} | " + " | ".join(cells) + " |" for net, title, cells in rows_of(results)]
    return "\n".join(lines) + "\n"


def print_summary(results: Sequence[dict[str, Any]]) -> None:
    """The main columns, in 80 characters."""
    print(f"\n{'net':<9}{'method (seeds)':<39}{'exact':>8}{'optimal':>8}{'ratio':>7}{'consist.':>9}")
    for net, title, cells in rows_of(results):
        exact, optimal, ratio, _, _, consistent, *_ = (cell.split(" ")[0] for cell in cells)
        print(f"{net:<9}{title[:38]:<39}{exact:>8}{optimal:>8}{ratio:>7}{consistent:>9}")
    print("\nPercent of test maps. Optimal: the path has the least cost. Exact: it is also")
    print("the one that the tie rule chooses among several.")


def _place(key: tuple[str, str, int], order: list[str]) -> tuple[str, int, int]:
    return key[0], order.index(key[1]), key[2]


def _cells(runs: Sequence[dict[str, Any]]) -> list[str]:
    test = [run["test"] for run in runs]
    return [
        _spread([row["exact"] for row in test]),
        _spread([row["optimal"] for row in test]),
        f"{mean(row['cost_ratio'] for row in test):.3f}",
        _spread([row["hamming"] for row in test], 2),
        _spread([row["hamming_decoder"]["hamming"] for row in test], 2),
        f"{mean(row['consistent'] for row in test):.1f}",
        f"{100 * mean(run['layer_share'] for run in runs):.0f} %",
        f"{mean(run['history']['seconds'] for run in runs):.0f}",
    ]


def _spread(values: list[float], digits: int = 1) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"
