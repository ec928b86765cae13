"""Tables of what was tried on validation rows: settings, variants, and the ablation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.hmlc import published
from experiments.hmlc.campaign import BY_COST
from experiments.hmlc.collecting import EXACT, Campaign, spread
from experiments.hmlc.run import COLUMNS
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.settings import TITLES
from experiments.hmlc.tables import markdown
from experiments.hmlc.tuning import tried_settings

_VALID = (("exact", 2), ("auprc", 4))
_TRIED = (("exact", 2), ("hamming", 3), ("auprc", 4))


def variants(campaign: Campaign) -> str:
    """Runs with other settings: the best figures on validation rows, and exact match on test rows."""
    rows = []
    for (name, method, variant), runs in campaign.variants.items():
        chosen = [run["valid"] for run in runs]
        valid = [spread([best[figure] for best in chosen if figure in best], digits) for figure, digits in _VALID]
        test = [spread(EXACT.of(runs, column), 2) for column in COLUMNS]
        what = "hierarchy only" if variant == "optionsFalse" else variant
        rows.append((name, TITLES[method], what, *valid, *test, str(len(runs))))
    if not rows:
        return "None yet. `--components`, `--units`, `--mixing`, `--gates` and `--circuit` make them."
    tests = ("test: exact, train rows", "test: exact, retrained")
    head = ("", "method", "settings that differ", "valid: exact", "valid: AU(PRC)", *tests, "seeds")
    return markdown((head, rows))


def tried_table(path: Path) -> str:
    """What was tried on validation rows, the best per figure in bold; sets by cost, methods in the order of titles."""
    rows = []
    methods = list(TITLES)
    for name, method, tried in sorted(
        tried_settings(path), key=lambda entry: (BY_COST.index(entry[0]), methods.index(entry[1]))
    ):
        best = {figure: max(one[figure]["value"] for one in tried) for figure, _ in _TRIED}
        for one in tried:
            what = ", ".join(_setting(key, value) for key, value in one["changes"].items())
            cells = [_bold(f"{one[f]['value']:.{d}f}", one[f]["value"] == best[f]) for f, d in _TRIED]
            epochs = " / ".join(str(one[figure]["epoch"]) for figure, _ in _TRIED)
            rows.append((name, TITLES[method], what or "defaults", *cells, epochs))
    if not rows:
        return "Nothing yet: `python -m experiments hmlc --tune`."
    return markdown((("", "method", "settings", "exact", "Hamming", "AU(PRC)", "their epochs"), rows))


def _setting(name: str, value: Any) -> str:
    if name == "options":
        return "with options" if value else "hierarchy only"
    shown = " × ".join(map(str, value)) if isinstance(value, list) else f"{value:g}"
    return f"{name.replace('_', ' ')} {shown}"


def ablation_table(path: Path) -> str:
    """Exact match on validation rows by components, units and gate layers, the best of a set in bold."""
    found = {name: tried for name, _, tried in tried_settings(path)}
    if not found:
        return "Nothing yet: `python -m experiments hmlc --ablation`."
    heads = list(dict.fromkeys(_ablated(one["changes"]) for tried in found.values() for one in tried))
    heads.sort(key=lambda head: ("cross" in head, "gate" in head, "k" in head))
    rows = []
    for name, tried in found.items():
        values = {_ablated(one["changes"]): one["exact"]["value"] for one in tried}
        best = max(values.values())
        rows.append(
            (name, *(_bold(f"{values[head]:.2f}", values[head] == best) if head in values else "–" for head in heads))
        )
    return markdown((("", *heads), rows))


def paper_ablation_table(path: Path) -> str:
    """The grid of the paper's appendix: published, and ours as far as it is run."""
    found = {
        name: {_place(one["changes"]): one["exact"]["value"] for one in tried}
        for name, _, tried in tried_settings(path)
    }
    if not found:
        return "Not run yet: `python -m experiments hmlc --ablation --paper-grid`."
    rows = []
    for name in (name for name in TWELVE if name in found):
        paper = published.ABLATION[name]
        rows.append((name, "paper", *(_bold(f"{value:.2f}", value == max(paper)) for value in paper)))
        ours = [found[name].get(place) for place in published.ABLATION_GRID]
        best = max(found[name].values())
        rows.append((name, "ours", *("–" if value is None else _bold(f"{value:.2f}", value == best) for value in ours)))
    heads = (f"m = {m}, {gates} gate layers, k = {k}" for m, gates, k in published.ABLATION_GRID)
    return markdown((("", "", *heads), rows))


def _place(changes: dict[str, Any]) -> tuple[int, int, int]:
    return changes["components"], len(changes["gate"]), changes["units"]


def _ablated(changes: dict[str, Any]) -> str:
    parts = [f"m = {changes['components']}"]
    if "units" in changes:
        parts.append(f"k = {changes['units']}" + (" (cross)" if changes.get("mixing") == "cross" else ""))
    if "gate" in changes:
        parts.append(f"{len(changes['gate'])} gate layers")
    return ", ".join(parts)


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text
