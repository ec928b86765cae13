"""A comparison as one HTML file: what was found, the table, broken predictions, plots, settings."""

from __future__ import annotations

import html
import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

from semprola._files import write_atomically
from semprola._html import html_page
from semprola.comparison.comparing import METRICS, Comparison
from semprola.comparison.methods import METHODS
from semprola.comparison.plots import panels

_SMALLER = ("nll", "ece", "seconds")
"""Metrics of which smaller values are better."""


def write_report(comparison: Comparison, path: str | Path, command: str = "") -> None:
    """Write ``path`` (HTML) and, next to it, the same figures as JSON. Each file is self-contained."""
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    content = {"command": command, "date": date.today().isoformat(), "about": comparison.about, "rows": comparison.rows}
    write_atomically(target.with_suffix(".json"), (json.dumps(content, indent=1) + "\n").encode())
    write_atomically(target, page(comparison, command).encode())


def read_report(path: str | Path) -> Comparison:
    """A comparison from the JSON file of a report."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    rows = [{**row, "title": METHODS.get(row["method"], row["title"])} for row in content["rows"]]
    return Comparison(rows, content["about"])


def markdown(comparison: Comparison) -> str:
    """The table as Markdown."""
    header, *rows = comparison.table()
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for cells, row in zip(rows, comparison.rows, strict=True):
        if "refused" in row:
            cells = [cells[0], "cannot handle these rules", *[""] * (len(header) - 2)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(comparison: Comparison, command: str = "") -> str:
    """The HTML text."""
    about = comparison.about
    header, *rows = comparison.table()
    cells = "".join(f"<th>{html.escape(name)}{arrow(metric)}</th>" for name, metric in _headed(header))
    best = _best(comparison)
    body = "".join(
        _row(row, best.get(found["method"], set()), "refused" in found)
        for row, found in zip(rows, comparison.rows, strict=True)
    )
    settings = {key: value for key, value in about.items() if key not in ("rules", "labels")}
    size = f"{about['rows']:,} rows, {about['features']} features, {len(about['labels'])} labels"
    ran = f"<p><code>{html.escape(command)}</code></p>" if command else ""
    return html_page(
        "Methods compared",
        f"<p><strong>{html.escape(found_out(comparison))}</strong></p>",
        f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>',
        f"<p>Means ± standard deviations over {about['folds']} folds, on held-out rows ({size}). ↑ larger is better, "
        "↓ smaller is better; the best mean of a column is bold. “Consistent” is the share of predictions that obey "
        "the rules. Every method has the same backbone and the same folds, and keeps its best epoch by exact match on "
        "validation rows.</p>",
        _weights(comparison.rows),
        _broken(comparison.rows),
        "<h2>Plots</h2><p>The two SPLs are blue. Bars are standard deviations.</p>",
        f'<div class="plots">{panels(comparison)}</div>',
        f"<h2>Rules</h2><pre>{html.escape(about['rules'])}</pre>",
        f"<details><summary>Settings and data ({date.today().isoformat()})</summary>{ran}"
        f"<pre>{html.escape(json.dumps(settings, indent=1))}</pre></details>",
    )


def found_out(comparison: Comparison) -> str:
    """What was found, in a sentence or two."""
    ran = [row for row in comparison.rows if row.get("folds")]
    if not ran:
        return "No method can handle these rules."
    ranked = sorted(ran, key=lambda row: -comparison.mean(row["method"], "exact"))
    first, other = ranked[0], next((row for row in ran if row["method"] == "fil"), ranked[-1])
    said = f"{first['title']} has the most rows right: {comparison.mean(first['method'], 'exact'):.1f} %"
    if other is first and len(ranked) > 1:
        other = ranked[1]
    if other is not first:
        pairs = [(a["exact"], b["exact"]) for a, b in zip(first["folds"], other["folds"], strict=True)]
        ahead = sum(a > b for a, b in pairs)
        said += f", against {comparison.mean(other['method'], 'exact'):.1f} % of {other['title']}"
        said += f" (ahead in {ahead} of {len(pairs)} folds)"
    broken = {row["title"]: 100 - comparison.mean(row["method"], "consistent") for row in ran}
    never = [title for title, share in broken.items() if share == 0]
    worst = max(broken, key=lambda title: broken[title])
    parts = (
        [f"{worst[:1].upper()}{worst[1:]} breaks rules in {broken[worst]:.1f} % of its predictions"]
        if broken[worst] > 0
        else []
    )
    parts += [f"{_listed(never)} never {'do' if len(never) > 1 else 'does'}"] if parts and never else []
    return ". ".join([said, "; ".join(parts) or "All predictions obey the rules"]) + "."


def arrow(metric: str) -> str:
    """Whether larger or smaller values of a metric are better."""
    return "" if metric not in METRICS else " ↓" if metric in _SMALLER else " ↑"


def _headed(header: Sequence[str]) -> list[tuple[str, str]]:
    return list(zip(header, ["", *METRICS], strict=True))


def _best(comparison: Comparison) -> dict[str, set[int]]:
    """For each method, the columns of the table in which it is best, as far as the table shows it."""
    found: dict[str, set[int]] = {}
    for column, metric in enumerate(METRICS, start=1):
        means = {row["method"]: comparison.mean(row["method"], metric) for row in comparison.rows}
        places = 3 if metric in ("ece", "seconds") else 2 if metric == "nll" else 1
        known = {method: round(value, places) for method, value in means.items() if value == value}
        best = (min if metric in _SMALLER else max)(known.values(), default=None)
        for method, value in known.items():
            if value == best:
                found.setdefault(method, set()).add(column)
    return found


def _row(cells: list[str], best: set[int], refused: bool) -> str:
    first = f"<td>{html.escape(cells[0])}</td>"
    if refused:
        return f'<tr>{first}<td class="refused" colspan="{len(cells) - 1}">{html.escape(cells[1])}</td></tr>'
    marked = [f"<b>{html.escape(cell)}</b>" if place in best else html.escape(cell) for place, cell in enumerate(cells)]
    return "<tr>" + first + "".join(f"<td>{cell}</td>" for cell in marked[1:]) + "</tr>"


def _broken(rows: list[dict[str, Any]]) -> str:
    """Two predictions that break the rules, of the first method that has any."""
    for row in rows:
        cases = [case for fold in row.get("folds", []) for case in fold.get("broken", [])][:2]
        if cases:
            lines = "".join(
                f"<tr><td>{html.escape(_listed(case['predicted']) or 'no label')}</td>"
                f"<td>{html.escape(_listed(case['true']) or 'no label')}</td>"
                f"<td><code>{html.escape(case['rule'])}</code></td></tr>"
                for case in cases
            )
            head = "<thead><tr><th>predicted</th><th>true</th><th>breaks</th></tr></thead>"
            title = f"<h2>Predictions that break the rules</h2><p>Of {html.escape(row['title'])}, for example:</p>"
            return f'{title}<div class="wide"><table class="words">{head}<tbody>{lines}</tbody></table></div>'
    return ""


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (", …" if len(names) > 12 else "")


def _weights(rows: list[dict[str, Any]]) -> str:
    """Which weight of an added loss was chosen in each fold."""
    chosen = {
        row["title"]: [f"{fold['penalty']:g}" for fold in row["folds"]]
        for row in rows
        if any("penalty" in fold for fold in row.get("folds", []))
    }
    if not chosen:
        return ""
    parts = "; ".join(f"{html.escape(title)}: {', '.join(weights)}" for title, weights in chosen.items())
    return f"<p>Weights of added losses, chosen on validation rows in each fold: {parts}.</p>"
