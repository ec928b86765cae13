"""The generated part of docs/warcraft.md, from the files in the results folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.evidence import update_pages
from experiments.provenance import read_json
from experiments.warcraft.larger import grids_markdown
from experiments.warcraft.tables import NETS, PUBLISHED, chosen_markdown, markdown, rows_of
from experiments.warcraft.tuning import FILE as CHOSEN
from semprola._files import write_atomically
from semprola.errors import FormatError

PAGE = Path("docs/warcraft.md")
RESULTS = Path("results/warcraft")
GRIDS = "grids.json"
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
    parts = []
    for net, title in NETS.items():
        if table := markdown(results, net):
            parts.append(f"### {title[0].upper()}{title[1:]}\n\n{table}")
    if any(result["model"]["net"] == "resnet18" for result in results):
        parts.insert(0, _beside(results))
    parts += _optional(folder / GRIDS, "Larger grids", grids_markdown)
    parts += _optional(folder / CHOSEN, "What was chosen on validation maps", chosen_markdown)
    return "\n".join(parts)


def _optional(path: Path, title: str, table: Any) -> list[str]:
    if not path.is_file():
        return []
    return [f"<details><summary>{title}</summary>\n\n{table(read_json(path))}\n</details>\n"]


def _beside(results: Sequence[Mapping[str, Any]]) -> str:
    """The paper's figures and ours with its network: exact match, Hamming score, consistency."""
    lines = ["| ResNet-18 | paper: exact / Hamming / consistent | ours |", "|---|---|---|"]
    for net, title, runs in rows_of([dict(result) for result in results]):
        method = runs[0]["model"]["method"]
        if net == "resnet18" and method in PUBLISHED:
            exact, hamming, consistent = PUBLISHED[method]
            mine = [sum(run["test"][key] for run in runs) / len(runs) for key in ("exact", "hamming", "consistent")]
            ours = " / ".join(f"{value:.1f}" for value in mine)
            lines.append(f"| {title} | {exact:.1f} / {hamming:.1f} / {consistent:.1f} | {ours} |")
    return "\n".join(lines) + "\n"
