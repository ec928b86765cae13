"""A comparison as one HTML file: the table, the plots, the settings."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from semprola._files import write_atomically
from semprola._html import html_page
from semprola.comparison.comparing import Comparison
from semprola.comparison.methods import METHODS
from semprola.comparison.plots import panels


def write_report(comparison: Comparison, path: str | Path, command: str = "") -> None:
    """Write ``path`` (HTML) and, next to it, the same figures as JSON. Each file is self-contained.

    Args:
        comparison: what to report.
        path: the HTML file; its folder is created if necessary.
        command: the command line to record in the JSON file.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    content = {"command": command, "about": comparison.about, "rows": comparison.rows}
    write_atomically(target.with_suffix(".json"), (json.dumps(content, indent=1) + "\n").encode())
    write_atomically(target, page(comparison).encode())


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


def page(comparison: Comparison) -> str:
    """The HTML text."""
    about = comparison.about
    header, *rows = comparison.table()
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(_row(row, "refused" in found) for row, found in zip(rows, comparison.rows, strict=True))
    settings = {key: value for key, value in about.items() if key not in ("rules", "labels", "data")}
    size = f"{about['rows']:,} rows, {about['features']} features, {len(about['labels'])} labels"
    return html_page(
        "Methods compared",
        f"<p>{size}. Every method has the same backbone and the same {about['folds']} folds. Each keeps its best epoch "
        "by exact match on validation rows.</p>"
        "<p>Figures are means ± standard deviations over folds, on held-out rows. “Consistent” is the share of "
        "predictions that obey the rules.</p>",
        f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>',
        _weights(comparison.rows),
        "<p>In the plots, the two SPLs are blue, and bars are standard deviations.</p>",
        f'<div class="plots">{panels(comparison)}</div>',
        f"<h2>Rules</h2><pre>{html.escape(about['rules'])}</pre>",
        f"<h2>Settings</h2><pre>{html.escape(json.dumps(settings, indent=1))}</pre>",
    )


def _row(cells: list[str], refused: bool) -> str:
    first = f"<td>{html.escape(cells[0])}</td>"
    if refused:
        return f'<tr>{first}<td class="refused" colspan="{len(cells) - 1}">{html.escape(cells[1])}</td></tr>'
    return "<tr>" + first + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells[1:]) + "</tr>"


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
