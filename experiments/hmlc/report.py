"""The generated parts of docs/hmlc.md (results in sentences and tables) and docs/record_hmlc.md (what was tried)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.hmlc import hierarchy_only, published
from experiments.hmlc.aims import SEEDS, Aims
from experiments.hmlc.collecting import EXACT, EXACT_MODE_HAMMING, Campaign, spread, update_ensembles
from experiments.hmlc.pictures import difference_picture
from experiments.hmlc.search_tables import ablation_table, paper_ablation_table, tried_table, variants
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.settings import TITLES
from experiments.hmlc.tables import (
    auprc_table,
    brief_seeds,
    brief_table,
    ensemble_table,
    exact_table,
    gene_ontology,
    hamming_table,
    markdown,
    one_model_table,
    other_table,
    seconds_table,
    seeds_note,
    timing_table,
)
from experiments.hmlc.tuning import ABLATION_FILE, FILE, PAPER_ABLATION_FILE
from semprola._files import write_atomically
from semprola.errors import FormatError

PAGE = Path("docs/hmlc.md")
RECORD = Path("docs/record_hmlc.md")
PICTURE = Path("docs/images/hmlc.svg")
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
_TABLES = (("Exact match (%)", exact_table), ("Hamming score (%)", hamming_table), ("AU(PRC)", auprc_table))
_TRAININGS = (("retrained on train + valid", "retrained"), ("trained on train only", "train_only"))
_TIMING = (
    "These are epochs of this experiment. In the [benchmark of single steps](speed.md), which has another network, "
    "SPL with m = 1 takes a little longer than sigmoids on the same set; why the two differ was not looked into."
)
SUMMARY_BEGIN, SUMMARY_END = "<!-- summary: begin -->", "<!-- summary: end -->"


def write_report(
    folder: Path,
    marginals: Path,
    data: str | None = None,
    page: Path = PAGE,
    record: Path = RECORD,
    picture: Path = PICTURE,
) -> list[Path]:
    """Rewrite the generated parts of both pages, and the picture.

    Args:
        folder: of the results.
        marginals: of test rows, from which ensembles are made where they are new.
        data: the data folder, which ensembles need.
        page: a Markdown page with the markers of a summary and of results.
        record: a Markdown page with the markers of results.
        picture: an SVG file.

    Returns:
        The files that were written.

    Raises:
        FormatError: a page lacks the markers.
    """
    campaign = Campaign(folder)
    ensembles = update_ensembles(campaign, marginals, data)
    place = picture.relative_to(page.parent).as_posix()
    text = page.read_text(encoding="utf-8")
    text = _replaced(text, page, SUMMARY_BEGIN, SUMMARY_END, summary(campaign, place))
    text = _replaced(text, page, BEGIN, END, sections(campaign, ensembles))
    difference_picture(campaign, picture)
    write_atomically(page, text.encode())
    tried = _replaced(record.read_text(encoding="utf-8"), record, BEGIN, END, searches(campaign))
    write_atomically(record, tried.encode())
    return [page, record, picture]


def _replaced(text: str, page: Path, first: str, last: str, parts: Sequence[str]) -> str:
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise FormatError(f"{page}: expected a part between {first} and {last}")
    return f"{before}{first}\n\n" + "\n\n".join(parts) + f"\n\n{last}{after}"


def summary(campaign: Campaign, picture: str) -> list[str]:
    """What the page begins with: the results in sentences, one table beside the published figures, and the picture."""
    seeds = brief_seeds(campaign)
    plain = hierarchy_only.sentences(campaign) or ["The runs with the hierarchy alone are not complete on any set yet."]
    missing = [name for name in TWELVE if name not in hierarchy_only.complete(campaign)]
    note = f" A dash: not run yet, or fewer than ten seeds. Not complete: {', '.join(missing)}." if missing else ""
    return [
        "\n".join(f"- {item}" for item in plain),
        "Exact match in percent, mean ± standard deviation of seeds; ten where nothing else is said." + note,
        markdown(hierarchy_only.table(campaign, EXACT, published.EXACT, 2)),
        _fold(
            "Hamming score of the mode, as in the paper, of the same models",
            markdown(hierarchy_only.table(campaign, EXACT_MODE_HAMMING, published.HAMMING, 3)),
        ),
        "## What we do better, and by which means",
        Aims(campaign).findings(),
        f"Exact match in percent, mean ± standard deviation of {seeds} seeds. *Train rows*: trained on train rows "
        "alone. *Retrained*: trained again on train and validation rows. SPL has further rules here; HMCNN does not. "
        "The semantic loss with these rules: " + _with_rules(campaign),
        markdown(brief_table(campaign)),
        f"![Difference to our HMCNN on twelve sets]({picture})",
    ]


def _with_rules(campaign: Campaign) -> str:
    """Exact match of the semantic loss that has the further rules, on the sets that have runs."""
    cells = []
    for name in TWELVE:
        if values := EXACT.of(campaign.variant(name, "semantic-loss", "rules"), "retrained"):
            without = EXACT.of(campaign.of(name, "semantic-loss"), "retrained")
            cells.append(f"{spread(values, 2)} on {name} ({spread(without, 2)} without)")
    return "; ".join(cells) + ", retrained." if cells else "not run yet."


def sections(campaign: Campaign, ensembles: dict[str, Any]) -> list[str]:
    """The aims, and all other tables, each behind a fold."""
    aims = Aims(campaign)
    return [
        progress(campaign),
        aims.table(),
        aims.two_circuits(),
        Aims(campaign, "train_only").table(),
        *(
            _fold(f"{figure}, {training}", markdown(table(campaign, column)) + "\n\n" + seeds_note(campaign, column))
            for figure, table in _TABLES
            for training, column in _TRAININGS
        ),
        _fold("All figures of the model chosen by exact match, retrained", markdown(one_model_table(campaign))),
        _fold("AU(PRC) of ensembles, retrained on train + valid", markdown(ensemble_table(ensembles))),
        _fold("Calibration and consistency", markdown(other_table(campaign))),
        _fold("Time", timing_table(campaign.folder / "timing.json") + f"\n\n{_TIMING}\n\n" + _run_times(campaign)),
        _fold("Gene Ontology: cellcycle, 4,125 labels in a DAG", gene_ontology(campaign)),
        _fold(
            "Components, units and gates: exact match (%) on validation rows",
            ablation_table(campaign.folder / ABLATION_FILE),
        ),
        _fold(
            "The paper's grid of m, k and gates: exact match (%) on validation rows, hierarchy only",
            paper_ablation_table(campaign.folder / PAPER_ABLATION_FILE),
        ),
    ]


def searches(campaign: Campaign) -> list[str]:
    """What was tried on validation rows, and runs with other settings."""
    return ["### Variants", variants(campaign), "### Settings", tried_table(campaign.folder / FILE)]


def _run_times(campaign: Campaign) -> str:
    table = markdown(seconds_table(campaign))
    return (
        "Seconds of a run, retrained: the median over settings and seeds, wall clock on one core. Machines and load "
        f"differed, and so do the numbers of epochs.\n\n{table}"
    )


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def progress(campaign: Campaign) -> str:
    """How much of the campaign is done, in words."""
    lines = [f"**Runs so far** (of {SEEDS} seeds per set and method; a cell without ± is one run):", ""]
    for method, title in TITLES.items():
        counts = [campaign.seeds(name, method) for name in TWELVE]
        if any(counts):
            begun, full = sum(count > 0 for count in counts), sum(count >= SEEDS for count in counts)
            alone = sum(campaign.seeds(name, method, "train_only") for name in TWELVE)
            lines.append(
                f"- {title}: {sum(counts)} runs, {begun} of 12 sets begun, {full} complete"
                + (f"; {alone} of the runs also on train rows only" if alone else "")
            )
        else:
            lines.append(f"- {title}: not run yet")
    return "\n".join(lines)
