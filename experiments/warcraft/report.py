"""The generated part of docs/warcraft.md, from the files in the results folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.evidence import update_pages
from experiments.provenance import read_json
from experiments.warcraft.larger import grids_markdown
from experiments.warcraft.models import METHODS
from experiments.warcraft.shares import shares_markdown
from experiments.warcraft.tables import NETS, PUBLISHED, chosen_markdown, markdown, rows_of
from experiments.warcraft.tuning import FILE as CHOSEN
from semprola._files import write_atomically
from semprola.errors import FormatError

PAGE = Path("docs/warcraft.md")
RESULTS = Path("results/warcraft")
GRIDS = "grids.json"
SHARES = "shares.json"
_COMPARED = ("fil", "semantic-loss", "nesy-entropy", "spl", "product-spl")
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"


def write_report(folder: Path, page: Path = PAGE) -> Path:
    """Rewrite the part of the page between its markers, and the overview of all experiments if it is the real page.

    Raises:
        FormatError: the page lacks the markers.
    """
    text = page.read_text(encoding="utf-8")
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise FormatError(f"{page}: expected a part between {BEGIN} and {END}")
    write_atomically(page, f"{before}{BEGIN}\n\n{sections(folder)}\n{END}{after}".encode())
    if page == PAGE and folder == RESULTS:
        update_pages(folder.parent, Path())
    return page


def sections(folder: Path) -> str:
    """All tables, as Markdown."""
    results = [read_json(path) for path in sorted(folder.glob("*-seed*.json"))]
    parts = [_beside(results)]
    for net, title in NETS.items():
        if table := markdown(results, net):
            parts.append(_fold(f"{title[0].upper()}{title[1:]}, all figures", table))
    parts += _optional(folder / GRIDS, "Larger grids", grids_markdown)
    parts += _optional(folder / SHARES, "The layer's share of a training step", shares_markdown)
    parts += _optional(folder / CHOSEN, "What was chosen on validation maps", chosen_markdown)
    return "\n".join(parts)


def _optional(path: Path, title: str, table: Any) -> list[str]:
    return [_fold(title, table(read_json(path)))] if path.is_file() else []


def _fold(title: str, table: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{table}\n</details>\n"


def _beside(results: Sequence[Mapping[str, Any]]) -> str:
    """Exact match, Hamming score and consistency of each method: the paper's, and ours with its network and with ours.

    Of several numbers of components, the smallest that was run.
    """
    nets = ("resnet18", "grid")
    found: dict[tuple[str, str], str] = {}
    for net, _, runs in rows_of([dict(result) for result in results]):
        found.setdefault((net, runs[0]["model"]["method"]), _triple(_means(runs)))
    lines = ["| exact / Hamming / consistent, % | published, ResNet-18 | ours, ResNet-18 | ours, grid net |"]
    lines.append("|---|---:|---:|---:|")
    for method in _COMPARED:
        paper = _triple(PUBLISHED[method]) if method in PUBLISHED else "–"
        ours = " | ".join(found.get((net, method), "–") for net in nets)
        lines.append(f"| {METHODS[method]} | {paper} | {ours} |")
    return "\n".join(lines) + "\n"


def _means(runs: Sequence[Mapping[str, Any]]) -> list[float]:
    return [sum(run["test"][key] for run in runs) / len(runs) for key in ("exact", "hamming", "consistent")]


def _triple(values: Sequence[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)
