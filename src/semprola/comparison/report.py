"""A comparison as one HTML file: the table, a picture, the settings."""

from __future__ import annotations

import base64
import html
import io
import json
from pathlib import Path
from statistics import mean, stdev

from semprola._files import write_atomically
from semprola.comparison.comparing import Comparison

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 70rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
th, td { padding: .35rem .6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
td.refused { text-align: left; white-space: normal; opacity: .75; }
img { max-width: 100%; background: white; border-radius: 6px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
"""
_SHOWN = {"exact": "exact match (%)", "consistent": "consistent (%)", "auprc": "AU(PRC) (%)"}


def write_report(comparison: Comparison, path: str | Path, command: str = "") -> None:
    """Write ``path`` (HTML) and, beside it, the same figures as JSON; no other file is needed to read them.

    Args:
        comparison: what to report.
        path: of the HTML file; its folder is made.
        command: the command line to record in the JSON file.
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    content = {"command": command, "about": comparison.about, "rows": comparison.rows}
    write_atomically(target.with_suffix(".json"), (json.dumps(content, indent=1) + "\n").encode())
    write_atomically(target, page(comparison).encode())


def read_report(path: str | Path) -> Comparison:
    """A comparison from the JSON file beside a report."""
    content = json.loads(Path(path).read_text(encoding="utf-8"))
    return Comparison(content["rows"], content["about"])


def markdown(comparison: Comparison) -> str:
    """The table as Markdown."""
    header, *rows = comparison.table()
    lines = ["| " + " | ".join(header) + " |", "|---" + "|---:" * (len(header) - 1) + "|"]
    for cells, row in zip(rows, comparison.rows, strict=True):
        if "refused" in row:
            cells = [cells[0], "cannot take these rules", *[""] * (len(header) - 2)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def page(comparison: Comparison) -> str:
    """The HTML text."""
    about = comparison.about
    header, *rows = comparison.table()
    cells = "".join(f"<th>{html.escape(name)}</th>" for name in header)
    body = "".join(_row(row, "refused" in found) for row, found in zip(rows, comparison.rows, strict=True))
    picture = _picture(comparison)
    alt = html.escape(", ".join(_SHOWN.values()))
    shown = f'<p><img alt="{alt} of every method" src="{picture}"></p>' if picture else ""
    settings = {key: value for key, value in about.items() if key not in ("rules", "labels", "data")}
    size = f"{about['rows']:,} rows, {about['features']} features, {len(about['labels'])} labels"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>Methods compared</title><style>{_STYLE}</style></head><body><h1>Methods compared</h1>"
        f"<p>{size}; every method with the same backbone, {about['folds']} folds, and the best epoch by exact match on "
        "validation rows. Means ± standard deviations over folds, on held-out rows. Consistent: the share of "
        "predictions that obey the rules.</p>"
        f'<div class="wide"><table><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table></div>{shown}'
        f"<h2>Rules</h2><pre>{html.escape(about['rules'])}</pre><h2>Settings</h2>"
        f"<pre>{html.escape(json.dumps(settings, indent=1))}</pre></body></html>\n"
    )


def _row(cells: list[str], refused: bool) -> str:
    first = f"<td>{html.escape(cells[0])}</td>"
    if refused:
        return f'<tr>{first}<td class="refused" colspan="{len(cells) - 1}">{html.escape(cells[1])}</td></tr>'
    return "<tr>" + first + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells[1:]) + "</tr>"


def _picture(comparison: Comparison) -> str | None:
    """Dots with error bars, one row per method, as a data URL; None without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None
    rows = [row for row in comparison.rows if "folds" in row][::-1]
    figure = Figure(figsize=(10, 0.6 + 0.38 * len(rows)), layout="constrained")
    axes = figure.subplots(1, len(_SHOWN), sharey=True)
    for axis, (metric, title) in zip(axes, _SHOWN.items(), strict=True):
        for place, row in enumerate(rows):
            values = [fold[metric] for fold in row["folds"]]
            error = stdev(values) if len(values) > 1 else 0.0
            colour = "#0072b2" if "spl" in row["method"] else "#7f7f7f"
            axis.errorbar(mean(values), place, xerr=error, fmt="o", color=colour, capsize=3)
        axis.set_title(title, fontsize=10)
        axis.grid(axis="x", color="#e0e0e0")
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_yticks(range(len(rows)), [row["title"] for row in rows])
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=110)
    return "data:image/png;base64," + base64.b64encode(out.getvalue()).decode()
