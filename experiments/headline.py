"""The small table of README.md, the paper's figures and ours, for a reader in a hurry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import fill

from experiments.hmlc import hierarchy_only
from experiments.hmlc import published as hmlc_published
from experiments.hmlc.collecting import campaign_in, rank_sum
from experiments.like_for_like import (
    ENOUGH,
    NAMES,
    PREFERENCES,
    SCALED_START,
    TASKS,
    Exact,
    counted,
    exact_in,
    hierarchies,
)
from experiments.published import PUBLISHED, comparable
from experiments.tables import spread

_OTHERS = ("semantic-loss", "nesy-entropy", "hmcnn")
_LAYERS = ("spl", "product-spl")
_SEEDS = 10
"""How many are planned where fewer than `ENOUGH` are done."""


def small_table(results: Path) -> str:
    """Independent labels, the best other method and the layers, in pairs of rows with the same task; and notes."""
    rows: list[Sequence[str]] = [
        ("every label right, % of test rows", "independent labels", "best other method", "`SPL`", "`ProductSPL`"),
        ("---", *["---:"] * 4),
    ]
    for setting, (title, file) in TASKS.items():
        found = exact_in(results, file)
        rows.append(_published(f"simple paths, {title}: published", comparable("simple-path", setting)))
        rows.append(_ours("ours", found))
    file = _preferences(results)
    rows.append(_published("preferences: published", PUBLISHED["preference"]))
    another = "another network, " if file == [*PREFERENCES.values()][-1] else ""
    rows.append(_ours(f"ours, {another}", exact_in(results, file, f"{file}-by-likelihood")))
    columns, names = hierarchies(results / "hmlc")
    if names:
        sets = " and ".join(names) if len(names) < 3 else f"mean of {len(names)} sets"
        means = {
            method: (sum(hmlc_published.EXACT[title][name][0] for name in names) / len(names),)
            for method, title in (("hmcnn", "HMCNN"), ("spl", "SPL"))
        }
        rows.append(_published(f"hierarchies, {sets}: published", means))
        rows.append(_ours("ours, train rows", columns["train_only"]))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + f"\n\n{fill(_notes(results), 120)}"


def _notes(results: Path) -> str:
    scaled = exact_in(results, SCALED_START)
    loss, layer = (spread(scaled[method]) for method in ("semantic-loss", "spl"))
    greedy = exact_in(results, f"{_preferences(results)}-by-likelihood", decoder="greedy_decoder")["spl"]
    return (
        "Means over seeds. Empty: not in the paper. For simple paths, the published losses predict 24 edges and the "
        "published `SPL` 40 labels, so there are two tasks. For preferences, our last three figures are within the "
        "noise of 986 test rows. With the released decoder, our `SPL` has "
        f"{sum(greedy) / len(greedy):.1f} on preferences.{_of_hierarchies(results)} Whether the layers lead depends on "
        "the network: on the 40 labels, the same network with other first weights and dropout has "
        f"{loss} with the semantic loss and {layer} with `SPL`."
    )


def _of_hierarchies(results: Path) -> str:
    """Whether SPL and HMCNN are told apart in the row of hierarchies, and how SPL stands to the published figure."""
    columns, names = hierarchies(results / "hmlc")
    if not names:
        return ""
    campaign = campaign_in(results / "hmlc")
    found = hierarchy_only.by_set(campaign)["train_only"]
    values = {name: rank_sum(found["spl"][name], found["hmcnn"][name]) or 1.0 for name in names}
    apart = sum(p < 0.05 for p in values.values())
    shown = f" (p = {' and '.join(f'{p:.2g}' for p in values.values())})" if len(names) < 3 else ""
    ours = sum(columns["train_only"]["spl"]) / len(columns["train_only"]["spl"])
    paper = sum(hmlc_published.EXACT["SPL"][name][0] for name in names) / len(names)
    side = "below" if ours < paper else "not below"
    told = f"are told apart on {apart} of {counted(len(names), 'set')}" if apart else "are not told apart by ten seeds"
    return f" On hierarchies, our `SPL` and our HMCNN {told}{shown}, and `SPL` is {side} the published {paper:.1f}."


def _preferences(results: Path) -> str:
    """The file of the first network, in the order of `PREFERENCES`, that has runs of the layers."""
    files = [*PREFERENCES.values()]
    return next((file for file in files if exact_in(results, f"{file}-by-likelihood")), files[-1])


def _published(title: str, figures: Mapping[str, Sequence[float]]) -> Sequence[str]:
    return _row(title, {method: values[0] for method, values in figures.items()}, "")


def _ours(title: str, found: Exact) -> Sequence[str]:
    """A row of means; its title ends with the number of seeds. No figures with fewer than `ENOUGH`."""
    least = min(map(len, found.values()), default=0)
    if least < ENOUGH:
        done = f" ({least} of {_SEEDS} seeds)" if least else ""
        return (f"{title.rstrip(', ')}: not run yet{done}", "", "", "", "")
    seeds = counted(least, "seed")
    means = {method: sum(values) / len(values) for method, values in found.items()}
    return _row(f"{title.rstrip(', ')}, {seeds}", means, "not run")


def _row(title: str, means: Mapping[str, float], missing: str) -> Sequence[str]:
    other = max((method for method in _OTHERS if method in means), key=lambda method: means[method], default=None)
    best = missing if other is None else f"{means[other]:.1f} ({NAMES[other]})"
    fil, *layers = (f"{means[method]:.1f}" if method in means else missing for method in ("fil", *_LAYERS))
    return (title, fil, best, *layers)
