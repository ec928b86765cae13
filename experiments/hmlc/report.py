"""The generated part of docs/hmlc.md: how far the campaign is, its aims, tables and a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from experiments.hmlc import published
from experiments.hmlc.collecting import (
    AUPRC,
    CONSISTENT,
    ENSEMBLE_SIZE,
    EXACT,
    HAMMING,
    KNOWN,
    Campaign,
    Figures,
    rank_sum,
    update_ensembles,
)
from experiments.hmlc.pictures import difference_picture
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.settings import TITLES
from experiments.hmlc.tables import (
    ablation_table,
    auprc_table,
    brief_table,
    exact_table,
    gene_ontology,
    hamming_table,
    markdown,
    other_table,
    timing_table,
    tried_table,
    variants,
)
from experiments.hmlc.tuning import ABLATION_FILE, FILE
from semprola._files import write_atomically
from semprola.errors import FormatError

PAGE = Path("docs/hmlc.md")
PICTURE = Path("docs/images/hmlc.svg")
BEGIN, END = "<!-- results: begin -->", "<!-- results: end -->"
SUMMARY_BEGIN, SUMMARY_END = "<!-- summary: begin -->", "<!-- summary: end -->"


def write_report(
    folder: Path, marginals: Path, data: str | None = None, page: Path = PAGE, picture: Path = PICTURE
) -> list[Path]:
    """Rewrite the generated parts of the page, and the picture.

    Args:
        folder: of the results.
        marginals: of test rows, from which ensembles are made where they are new.
        data: the data folder, which ensembles need.
        page: a Markdown page with both pairs of markers.
        picture: an SVG file.

    Returns:
        The files that were written.

    Raises:
        FormatError: the page lacks the markers.
    """
    campaign = Campaign(folder)
    ensembles = update_ensembles(campaign, marginals, data)
    place = picture.relative_to(page.parent).as_posix()
    text = page.read_text(encoding="utf-8")
    text = _replaced(text, page, SUMMARY_BEGIN, SUMMARY_END, summary(campaign, place))
    text = _replaced(text, page, BEGIN, END, sections(campaign, ensembles))
    difference_picture(campaign, picture)
    write_atomically(page, text.encode())
    return [page, picture]


def _replaced(text: str, page: Path, first: str, last: str, parts: Sequence[str]) -> str:
    before, begin, rest = text.partition(first)
    _, end, after = rest.partition(last)
    if not begin or not end:
        raise FormatError(f"{page}: expected a part between {first} and {last}")
    return f"{before}{first}\n\n" + "\n\n".join(parts) + f"\n\n{last}{after}"


def summary(campaign: Campaign, picture: str) -> list[str]:
    """What the page begins with: one table beside the published figures, and the picture."""
    return [
        "Exact match in percent, retrained on train and validation rows:",
        markdown(brief_table(campaign)),
        f"![Difference to our HMCNN on twelve sets]({picture})",
    ]


def sections(campaign: Campaign, ensembles: dict[str, Any]) -> list[str]:
    """The record: how far the campaign is, its aims, and all other tables, each behind a fold."""
    return [
        progress(campaign),
        verdicts(campaign, ensembles),
        _fold("Exact match (%), retrained on train + valid", markdown(exact_table(campaign, "retrained"))),
        _fold("Exact match (%), trained on train only", markdown(exact_table(campaign, "train_only"))),
        _fold("Hamming score (%), retrained on train + valid", markdown(hamming_table(campaign, "retrained"))),
        _fold("AU(PRC), retrained on train + valid", markdown(auprc_table(campaign, ensembles))),
        _fold("Calibration and consistency", markdown(other_table(campaign))),
        _fold("Time", timing_table(campaign.folder / "timing.json")),
        _fold("Gene Ontology: cellcycle, 4,125 labels in a DAG", gene_ontology(campaign)),
        _fold("Variants", variants(campaign)),
        _fold(
            "Components, units and gates: exact match (%) on validation rows",
            ablation_table(campaign.folder / ABLATION_FILE),
        ),
        _fold("What was tried on validation rows", tried_table(campaign.folder / FILE)),
    ]


def _fold(title: str, content: str) -> str:
    return f"<details><summary>{title}</summary>\n\n{content}\n\n</details>"


def progress(campaign: Campaign) -> str:
    """How much of the campaign is done, in words."""
    lines = ["**Runs so far** (of 10 seeds per set and method; a cell without ± is one run):", ""]
    for method, title in TITLES.items():
        counts = [campaign.seeds(name, method) for name in TWELVE]
        if any(counts):
            full = sum(count >= 10 for count in counts)
            lines.append(
                f"- {title}: {sum(counts)} runs, {sum(count > 0 for count in counts)} of 12 sets begun, {full} complete"
            )
        else:
            lines.append(f"- {title}: not run yet")
    return "\n".join(lines)


def verdicts(campaign: Campaign, ensembles: dict[str, Any]) -> str:
    """The aims of this experiment, counted on the sets that have runs."""

    def count(test: Callable[[str], bool | None]) -> str:
        answers = [answer for name in TWELVE if (answer := test(name)) is not None]
        return f"{sum(answers)} of {len(answers)}"

    def beats_paper(figure: Figures, method: str) -> Callable[[str], bool | None]:
        def test(name: str) -> bool | None:
            ours = _mean(figure.of(campaign.of(name, method), "retrained"))
            return None if ours is None else round(ours, 2) >= published.EXACT["SPL"][name][0]

        return test

    def significant(method: str) -> Callable[[str], bool | None]:
        def test(name: str) -> bool | None:
            ours, theirs = (EXACT.of(campaign.of(name, which), "retrained") for which in (method, "hmcnn"))
            p = rank_sum(ours, theirs)
            return None if p is None else p < 0.05 and sum(ours) / len(ours) > sum(theirs) / len(theirs)

        return test

    def hamming(method: str, slack: float) -> Callable[[str], bool | None]:
        def test(name: str) -> bool | None:
            ours, theirs = (_mean(HAMMING.of(campaign.of(name, which), "retrained")) for which in (method, "hmcnn"))
            return None if ours is None or theirs is None else round(ours, 3) >= round(theirs, 3) - slack

        return test

    def area(method: str) -> Callable[[str], bool | None]:
        def test(name: str) -> bool | None:
            ours = _area(campaign, ensembles, name, method)
            return None if ours is None else round(ours, 3) >= published.AUPRC["C-HMCNN"][name]

        return test

    def consistent(method: str) -> Callable[[str], bool | None]:
        def test(name: str) -> bool | None:
            values = CONSISTENT.of(campaign.of(name, method), "retrained")
            return all(value == 100 for value in values) if values else None

        return test

    ours = ("spl", "spl-known")
    rows = [
        ("exact match of the mode ≥ the paper's SPL", "11", *(count(beats_paper(EXACT, m)) for m in ours)),
        ("… significantly above our HMCNN (p < 0.05)", "10", *(count(significant(m)) for m in ours)),
        ("exact match of the best known set ≥ the paper's SPL", "12", count(beats_paper(KNOWN, "spl")), "–"),
        ("Hamming score of the decoder ≥ our HMCNN", "11", *(count(hamming(m, 0.0)) for m in ours)),
        ("… at most 0.02 below our HMCNN", "12", *(count(hamming(m, 0.02)) for m in ours)),
        (
            "AU(PRC), of the ensemble of five if there is one, ≥ C-HMCNN as published",
            "8",
            *(count(area(m)) for m in ours),
        ),
        ("all test predictions consistent", "12", *(count(consistent(m)) for m in ours)),
    ]
    head = ("retrained; counted over the sets with runs", "aim, of 12", "SPL", "SPL + known sets")
    return markdown((head, rows))


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _area(campaign: Campaign, ensembles: dict[str, Any], name: str, method: str) -> float | None:
    """AU(PRC) of the ensemble if it is complete, else the mean of single models: never the better of the two."""
    entry = ensembles.get(f"{name}/{method}", {})
    if len(entry.get("seeds", ())) >= ENSEMBLE_SIZE:
        return float(entry["auprc"])
    return _mean(AUPRC.of(campaign.of(name, method), "retrained"))
