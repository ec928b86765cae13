"""The small table of README.md, the paper's figures and ours, for a reader in a hurry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.hmlc import published as hmlc_published
from experiments.like_for_like import NAMES, PREFERENCES, SCALED_START, TASKS, Exact, counted, exact_in, hierarchies
from experiments.published import PUBLISHED, comparable
from experiments.warcraft.tables import PUBLISHED as WARCRAFT

_OTHERS = ("semantic-loss", "nesy-entropy", "hmcnn")
_LAYERS = ("spl", "product-spl")


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
    rows.append(_published("Warcraft maps: published", WARCRAFT))
    rows.append(("ours: not comparable (other maps, ten epochs)", "", "", "", ""))
    return "\n".join("| " + " | ".join(row) + " |" for row in rows) + f"\n\n{_notes(results)}"


def _notes(results: Path) -> str:
    scaled = exact_in(results, SCALED_START)
    loss, layer = (sum(scaled[method]) / len(scaled[method]) for method in ("semantic-loss", "spl"))
    return (
        "Means over seeds. Empty: not in the paper, or not comparable. For simple paths, the published losses predict\n"
        "24 edges and the published `SPL` 40 labels, so there are two tasks. For preferences, our last three figures\n"
        "are within the noise of 986 test rows. Whether the layers lead depends on the network: on the 40 labels, the\n"
        "same network with other first weights and dropout has "
        f"{loss:.1f} with the semantic loss and {layer:.1f} with `SPL`."
    )


def _preferences(results: Path) -> str:
    """The file of the first network, in the order of `PREFERENCES`, that has runs of the layers."""
    files = [*PREFERENCES.values()]
    return next((file for file in files if exact_in(results, f"{file}-by-likelihood")), files[-1])


def _published(title: str, figures: Mapping[str, Sequence[float]]) -> Sequence[str]:
    return _row(title, {method: values[0] for method, values in figures.items()}, "")


def _ours(title: str, found: Exact) -> Sequence[str]:
    """A row of means; its title ends with the number of seeds."""
    if not found:
        return (f"{title.rstrip(', ')}: not run yet", "", "", "", "")
    seeds = counted(min(len(values) for values in found.values()), "seed")
    means = {method: sum(values) / len(values) for method, values in found.items()}
    return _row(f"{title.rstrip(', ')}, {seeds}", means, "not run")


def _row(title: str, means: Mapping[str, float], missing: str) -> Sequence[str]:
    other = max((method for method in _OTHERS if method in means), key=lambda method: means[method], default=None)
    best = missing if other is None else f"{means[other]:.1f} ({NAMES[other]})"
    fil, *layers = (f"{means[method]:.1f}" if method in means else missing for method in ("fil", *_LAYERS))
    return (title, fil, best, *layers)
