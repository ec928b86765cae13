"""Tables of what was tried on validation rows: settings, variants, and the ablation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from experiments.hmlc.campaign import BY_COST
from experiments.hmlc.collecting import EXACT, Campaign, spread
from experiments.hmlc.run import COLUMNS
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


def _ablated(changes: dict[str, Any]) -> str:
    parts = [f"m = {changes['components']}"]
    if "units" in changes:
        parts.append(f"k = {changes['units']}" + (" (cross)" if changes.get("mixing") == "cross" else ""))
    if "gate" in changes:
        parts.append(f"{len(changes['gate'])} gate layers")
    return ", ".join(parts)


def _bold(text: str, best: bool) -> str:
    return f"**{text}**" if best else text
