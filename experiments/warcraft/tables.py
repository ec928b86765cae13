"""Tables of the map experiment, from its results files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import mean, stdev
from typing import Any

from experiments.warcraft.models import METHODS

PUBLISHED = {
    "fil": (55.0, 97.7, 56.9),
    "semantic-loss": (59.4, 97.7, 61.2),
    "product-spl": (78.2, 96.3, 100.0),
}
"""The paper's exact match, Hamming score and consistency, on the published maps with ResNet-18."""
COLUMNS = ("exact", "optimal", "cost ratio", "Hamming", "Hamming*", "consistent", "CPU s")
NETS = {
    "grid": "grid net",
    "costs": "cost net",
    "costs/8": "cost net, eight neighbours",
    "resnet18": "ResNet-18",
}
"""Parts of the tables, in order."""


def rows_of(results: Sequence[dict[str, Any]]) -> list[tuple[str, str, list[dict[str, Any]]]]:
    """One row per network and method: a key of `NETS`, the method's title, and its runs."""
    groups: dict[tuple[str, str, int, bool], list[dict[str, Any]]] = {}
    for result in results:
        model = result["model"]
        net = model["net"] + ("/8" if result["neighbours"] == 8 else "")
        groups.setdefault((net, model["method"], model["components"], model["biased"]), []).append(result)
    made = []
    for (net, method, components, biased), runs in sorted(groups.items(), key=lambda item: _place(item[0])):
        title = METHODS[method] + (f", m = {components}" if components > 1 else "")
        made.append((net, title + (", a bias per edge" if biased else ""), runs))
    return made


def markdown(results: Sequence[dict[str, Any]], net: str) -> str:
    """A Markdown table of all methods on one network; "" if there are none."""
    rows = [(title, runs) for name, title, runs in rows_of(results) if name == net]
    if not rows:
        return ""
    costs = any("rank_correlation" in run["test"] for _, runs in rows for run in runs)
    columns = ["method", *COLUMNS, *(["cost rank corr."] if costs else []), "seeds"]
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for title, runs in rows:
        cells = [title, *_cells(runs), *([_correlation(runs)] if costs else []), str(len(runs))]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def print_summary(results: Sequence[dict[str, Any]]) -> None:
    """The main columns, in 80 characters."""
    print(f"\n{'net':<9}{'method (seeds)':<39}{'exact':>8}{'optimal':>8}{'ratio':>7}{'consist.':>9}")
    for net, title, runs in rows_of(results):
        exact, optimal, ratio, _, _, consistent, *_ = (cell.split(" ")[0] for cell in _cells(runs))
        named = f"{title[:33]} ({len(runs)})"
        print(f"{net:<9}{named:<39}{exact:>8}{optimal:>8}{ratio:>7}{consistent:>9}")
    print("\nPercent of test maps. Optimal: the path has the least cost. Exact: it is also")
    print("the one that the tie rule chooses among several.")


def chosen_markdown(chosen: Mapping[str, Any]) -> str:
    """What was tried on validation maps for each method, the chosen settings in bold."""
    lines = ["| network and method | tried: figure on validation maps |", "|---|---|"]
    for name, entry in chosen.items():
        cells = []
        for tried in entry["tried"]:
            figure = next(key for key in tried if key != "changes")
            changes = {**tried["changes"]["training"], **tried["changes"]["model"]}
            words = ", ".join(f"{key.replace('_', ' ')} {value:g}" for key, value in changes.items())
            text = f"{words}: {tried[figure]:.1f}"
            cells.append(f"**{text}**" if tried["changes"] == entry["chosen"] else text)
        net, method, *rest = name.split("/")
        lines.append(f"| {NETS['/'.join([net, *rest])]}, {METHODS[method]} | {'; '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _place(key: tuple[str, str, int, bool]) -> tuple[int, int, int, bool]:
    return list(NETS).index(key[0]), list(METHODS).index(key[1]), key[2], key[3]


def _cells(runs: Sequence[dict[str, Any]]) -> list[str]:
    test = [run["test"] for run in runs]
    valid = [row["cost_ratio"] for row in test if row["cost_ratio"] == row["cost_ratio"]]
    return [
        _spread([row["exact"] for row in test]),
        _spread([row["optimal"] for row in test]),
        f"{mean(valid):.3f}" if valid else "–",
        _spread([row["hamming"] for row in test], 2),
        _spread([row["hamming_decoder"]["hamming"] for row in test], 2),
        f"{mean(row['consistent'] for row in test):.1f}",
        f"{mean(run['history']['processor_seconds'] for run in runs):.0f}",
    ]


def _correlation(runs: Sequence[dict[str, Any]]) -> str:
    return f"{mean(run['test']['rank_correlation'] for run in runs):.3f}"


def _spread(values: list[float], digits: int = 1) -> str:
    if len(values) == 1:
        return f"{values[0]:.{digits}f}"
    return f"{mean(values):.{digits}f} ± {stdev(values):.{digits}f}"
