"""The paper's tables by the paper's protocol: published figures and ours in pairs of rows, and what is not run yet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments.campaign import Ablation, Comparison, Hierarchy, steps
from experiments.hmlc import hierarchy_only
from experiments.hmlc import published as hmlc_published
from experiments.hmlc.collecting import campaign_in
from experiments.hmlc.hierarchy_only import COLUMNS
from experiments.hmlc.sets import TWELVE
from experiments.provenance import read_json
from experiments.published import PUBLISHED
from experiments.tables import spread
from experiments.warcraft.tables import PUBLISHED as WARCRAFT

METHODS = ("fil", "semantic-loss", "nesy-entropy", "hmcnn", "spl", "product-spl")
HEADINGS = ("FIL", "+ semantic loss", "+ entropy", "HMCNN", "`SPL`", "`ProductSPL`")

PATHS = "simple-path-ends-published-paper-ends-first-public-search"
"""24 edges, end points given, public weights: the task of the published losses."""
PATHS_OF_SPL = "simple-path-paper-published-paper-ends-first-small-search"
"""40 labels: the task of the published SPL."""
PREFERENCES = {
    "of the text (50, 50, 50)": "preference-paper-published-text-small-search",
    "of the code (25, 25, 25, linear 50)": "preference-paper-published-released-small-search",
}
OTHER_PREFERENCES = "preference-paper-published-paper-small-search"
Exact = dict[str, list[float]]
"""For each method, the exact match of each seed on test rows, in percent."""


def table(results: Path) -> str:
    """Exact match, published and ours: mean ± standard deviation over seeds."""
    rows: list[Sequence[str]] = [("exact match on test rows, %", "seeds", *HEADINGS), ("---", *["---:"] * 7)]
    paper = {experiment: _means({m: f[0] for m, f in PUBLISHED[experiment].items()}) for experiment in PUBLISHED}
    rows.append(("**[simple paths](paths.md)**, published", "", *paper["simple-path"]))
    rows.append(_ours("ours, the task of the published losses: 24 edges, end points given", _runs(results, PATHS)))
    single = {method: _runs(results, PATHS_OF_SPL)[method] for method in ("spl", "product-spl")}
    rows.append(_ours("ours, the task of the published SPL: 40 labels", single))
    rows.append(("**[preferences](preferences.md)**, published", "", *paper["preference"]))
    for net, file in PREFERENCES.items():
        rows.append(_ours(f"ours, network {net}", _runs(results, file, f"{file}-by-likelihood")))
    other = _runs(results, OTHER_PREFERENCES, f"{OTHER_PREFERENCES}-by-likelihood")
    rows.append(_ours("ours, a network between these (25, 25, 25, 50)", other))
    rows.append(("**[Warcraft](warcraft.md)**, published", "", *_means({m: f[0] for m, f in WARCRAFT.items()})))
    rows.append(_ours("ours: not the same maps, ten epochs", _on_maps(results / "warcraft")))
    rows += hierarchy_rows(results / "hmlc")
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def small_table(results: Path) -> str:
    """The same for a reader in a hurry: independent labels, the best other method of the paper, and the layers."""
    rows: list[Sequence[str]] = [
        ("every label right, % of test rows", "independent labels", "best other method", "`SPL`", "`ProductSPL`"),
        ("---", *["---:"] * 4),
    ]
    files = [file for file in (*PREFERENCES.values(), OTHER_PREFERENCES) if _runs(results, f"{file}-by-likelihood")]
    for title, experiment, ours in (
        ("simple paths", "simple-path", _runs(results, PATHS)),
        ("preferences", "preference", _runs(results, files[0], f"{files[0]}-by-likelihood") if files else {}),
    ):
        paper = {method: [figures[0]] for method, figures in PUBLISHED[experiment].items()}
        seeds = min((len(values) for values in ours.values()), default=5)
        notes = ["another network"] if title == "preferences" and files and files[0] == OTHER_PREFERENCES else []
        notes += [_count(seeds, "seed")] if seeds < 5 else []
        note = f" ({', '.join(notes)})" if notes else ""
        rows += [_small(f"{title}, published", paper), _small(f"{title}, ours{note}", ours)]
    campaign = campaign_in(results / "hmlc")
    sets, names = hierarchy_only.by_set(campaign), hierarchy_only.complete(campaign)
    published = {m: hmlc_published.EXACT[title].values() for m, title in (("hmcnn", "HMCNN"), ("spl", "SPL"))}
    rows.append(_small("hierarchies, mean of 12 sets, published", {m: [v[0] for v in p] for m, p in published.items()}))
    whole = len(names) == len(TWELVE)
    ours = {m: [sum(by[n]) / len(by[n]) for n in names] for m, by in sets["train_only"].items()} if whole else {}
    rows.append(
        _small("hierarchies, ours" if whole else f"hierarchies, ours: {_count(len(names), 'set')} so far", ours)
    )
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def hierarchy_rows(folder: Path) -> list[Sequence[str]]:
    """Means over the sets that have all ten seeds with the hierarchy alone; the layers know no further rules."""
    campaign = campaign_in(folder)
    found, names = hierarchy_only.by_set(campaign), hierarchy_only.complete(campaign)
    if not names:
        return [("**[hierarchies](hmlc.md)**, hierarchy only", "not run yet", *["–"] * 6)]
    sets = "12 sets" if len(names) == len(TWELVE) else f"{len(names)} of 12 sets ({', '.join(names)})"
    paper = {"hmcnn": hmlc_published.EXACT["HMCNN"], "spl": hmlc_published.EXACT["SPL"]}
    means = {method: sum(figures[name][0] for name in names) / len(names) for method, figures in paper.items()}
    rows: list[Sequence[str]] = [(f"**[hierarchies](hmlc.md)**, mean of {sets}, published", "10", *_means(means))]
    for column, title in COLUMNS.items():
        ours = {
            method: [sum(values) / len(values) for values in zip(*(sets_of[n] for n in names), strict=True)]
            for method, sets_of in found[column].items()
        }
        rows.append(_ours(f"ours, hierarchy only, {title}", ours))
    return rows


def sentences(results: Path) -> str:
    """What the table says, in words: one item per table of the paper that has runs."""
    items = [*_of_paths(results), *_of_preferences(results)]
    items += hierarchy_only.sentences(campaign_in(results / "hmlc"))
    return "\n".join(f"- {item}" for item in items)


def not_run(results: Path) -> str:
    """What the campaign has not finished, as a list of commands."""
    plans: dict[str, str] = {}
    sets: dict[str, list[str]] = {}
    for step in steps():
        missing = step.missing(results)
        if missing and isinstance(step, Comparison):
            plans[step.plan.name] = f"- `{step.name}`: {missing} runs"  # of the last step, which has all seeds
        elif missing and isinstance(step, Hierarchy):
            sets.setdefault(f"--variant {step.variant}", []).append(step.set)
        elif missing and isinstance(step, Ablation):
            sets.setdefault("--ablation --paper-grid", []).append(step.set)
        elif missing:
            plans[step.name] = f"- `{step.name}`"
    lines = [*plans.values()]
    lines += [f"- `python -m experiments hmlc {words} --sets {','.join(left)}`" for words, left in sets.items()]
    return "\n".join(lines) or "Nothing."


def _of_paths(results: Path) -> list[str]:
    found, paper = _runs(results, PATHS), PUBLISHED["simple-path"]
    single = _runs(results, PATHS_OF_SPL)["spl"]
    on_labels = (
        f"on the task of the released SPL code, 40 labels, `SPL` gets {spread(single)} % ({paper['spl'][0]} published)"
    )
    if not found:
        return [f"**Simple paths**: the task of the published losses is not run yet; {on_labels}."]
    words = [f"{_NAMES[m]} {spread(found[m])} ({paper[m][0]})" for m in METHODS if m in found and m in paper]
    seeds = min(len(values) for values in found.values())
    return [
        f"**Simple paths**, our exact match and in brackets the published one, with 24 edges to predict and the end "
        f"points given ({_count(seeds, 'seed')}): {', '.join(words)}. The published `SPL` had 40 labels; {on_labels}."
    ]


def _of_preferences(results: Path) -> list[str]:
    items = []
    paper = PUBLISHED["preference"]["spl"][0]
    for net, file in {**PREFERENCES, "between these (25, 25, 25, 50)": OTHER_PREFERENCES}.items():
        found = _runs(results, file, f"{file}-by-likelihood")
        if not {"spl", "nesy-entropy", "semantic-loss"} <= set(found):
            continue
        best = max(sum(found[method]) / len(found[method]) for method in ("nesy-entropy", "semantic-loss"))
        gap = sum(found["spl"]) / len(found["spl"]) - best
        items.append(
            f"**Preferences**, network {net}: `SPL` {spread(found['spl'])} % ({paper} published), {gap:+.1f} points "
            f"from the better loss. The 986 test rows alone leave a standard error of 1.3 points."
        )
    return items


_NAMES = {"fil": "FIL", "semantic-loss": "semantic loss", "nesy-entropy": "entropy", "spl": "`SPL`", "hmcnn": "HMCNN"}


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def _runs(results: Path, *files: str) -> Exact:
    found: Exact = {}
    for file in files:
        path = results / f"{file}.json"
        for run in read_json(path)["results"] if path.is_file() else ():
            found.setdefault(run["method"], []).append(run["test"]["exact"])
    return found


def _on_maps(folder: Path) -> Exact:
    found: Exact = {}
    for path in sorted(folder.glob("resnet18-*seed*.json")):
        run = read_json(path)
        found.setdefault(run["model"]["method"], []).append(run["test"]["exact"])
    return found


def _ours(title: str, found: Exact) -> Sequence[str]:
    if not found:
        return (title, "not run yet", *["–"] * len(METHODS))
    counts = sorted({len(values) for values in found.values()})
    seeds = str(counts[0]) if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return (title, seeds, *(spread(found[method]) if method in found else "–" for method in METHODS))


def _small(title: str, found: Exact) -> Sequence[str]:
    """A row of the small table; the other method is the one that is best in the paper."""
    if not found:
        return (title, "not run yet", "–", "–", "–")
    means = {method: sum(values) / len(values) for method, values in found.items() if values}
    other = next((method for method in ("hmcnn", "nesy-entropy", "semantic-loss") if method in means), "")
    shown = [f"{means[method]:.1f}" if method in means else "–" for method in ("fil", other, "spl", "product-spl")]
    if other:
        shown[1] += f" ({_NAMES[other]})"
    return (title, *shown)


def _means(figures: Mapping[str, float]) -> list[str]:
    return [f"{figures[method]:.1f}" if method in figures else "–" for method in METHODS]
