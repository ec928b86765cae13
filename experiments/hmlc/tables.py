"""Tables of results beside the published figures."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.hmlc import published
from experiments.hmlc.collecting import (
    AUPRC,
    CALIBRATION,
    CONSISTENT,
    EMPTY,
    EXACT,
    EXACT_AUPRC,
    EXACT_HAMMING,
    HAMMING,
    HAMMING_MODE,
    HAMMING_OUTSIDE,
    KNOWN,
    MODE_CALIBRATION,
    Campaign,
    Figures,
    rank_sum,
    spread,
)
from experiments.hmlc.sets import TWELVE
from experiments.hmlc.settings import TITLES
from experiments.provenance import read_json

_ON_ONTOLOGY = ("product-spl", "fil", "hmcnn")
_ONTOLOGY = ((EXACT, 2), (HAMMING, 3), (AUPRC, 3), (CONSISTENT, 1))

Column = tuple[str, str, Figures]
"""Of a table: its title, the method, the figure."""

_OTHERS = {"HMCNN": "hmcnn", "HMCNN, as published": "hmcnn-published", "FIL": "fil", "semantic loss": "semantic-loss"}
_OURS = {"SPL": "spl", "SPL + known sets": "spl-known", "SPL, two circuits": "product-spl"}
_SHORT = {"hmcnn": "HMCNN", "spl": "SPL"}
_EXACT_COLUMNS: tuple[Column, ...] = (
    *((title, method, EXACT) for title, method in _OTHERS.items()),
    ("SPL, mode", "spl", EXACT),
    ("SPL, best seen set", "spl", KNOWN),
    ("SPL + known sets, mode", "spl-known", EXACT),
    ("SPL, two circuits", "product-spl", EXACT),
    ("HMCNN predicts nothing", "hmcnn", EMPTY),
)
_HAMMING_COLUMNS: tuple[Column, ...] = (
    *((title, method, HAMMING) for title, method in _OTHERS.items()),
    ("SPL, mode", "spl", HAMMING_MODE),
    ("SPL, decoder", "spl", HAMMING),
    ("SPL, outside its rules", "spl", HAMMING_OUTSIDE),
    ("SPL + known sets", "spl-known", HAMMING),
    ("SPL, two circuits", "product-spl", HAMMING),
)
_AUPRC_COLUMNS: tuple[Column, ...] = (
    *((title, method, AUPRC) for title, method in _OTHERS.items()),
    ("SPL", "spl", AUPRC),
    ("SPL + known sets", "spl-known", AUPRC),
    ("SPL, two circuits", "product-spl", AUPRC),
)

Table = tuple[Sequence[str], Sequence[Sequence[str]]]


_BRIEF = (
    ("train rows: HMCNN", "hmcnn", "train_only"),
    ("train rows: SPL", "spl", "train_only"),
    ("retrained: HMCNN", "hmcnn", "retrained"),
    ("retrained: SPL", "spl", "retrained"),
    ("retrained: SPL + known sets", "spl-known", "retrained"),
)


def brief_table(campaign: Campaign) -> Table:
    """Exact match of HMCNN and SPL, published and ours."""
    rows = []
    for name in TWELVE:
        ours = [spread(EXACT.of(campaign.of(name, method), column), 2) for _, method, column in _BRIEF]
        paper = [_published(published.EXACT[system][name]) for system in ("HMCNN", "SPL")]
        rows.append((name, *paper, *ours))
    return ("", "paper: HMCNN", "paper: SPL", *(title for title, _, _ in _BRIEF)), rows


def brief_seeds(campaign: Campaign) -> str:
    """How many seeds the brief table has."""
    return _range([campaign.seeds(name, method, column) for name in TWELVE for _, method, column in _BRIEF])


def exact_table(campaign: Campaign, column: str) -> Table:
    """Exact match beside the paper's, and how often HMCNN predicts no label at all."""
    first = {f"paper: {system}": system for system in ("HMCNN", "SPL")}
    parts = _present(campaign, _EXACT_COLUMNS, column)
    head = ("", *first, *(title for title, _, _ in parts), "p: SPL's mode, HMCNN")
    rows = []
    for name in TWELVE:
        p = rank_sum(*(EXACT.of(campaign.of(name, method), column) for method in ("spl", "hmcnn")))
        rows.append(
            (
                name,
                *(_published(published.EXACT[system][name]) for system in first.values()),
                *_cells(campaign, name, parts, column, 2),
                "–" if p is None else f"{p:.4f}",
            )
        )
    return head, rows


def seeds_note(campaign: Campaign, column: str) -> str:
    """How many seeds each method has, in a sentence; methods without runs are left out."""
    by_method = {
        title: [campaign.seeds(name, method, column) for name in TWELVE]
        for title, method in (*_OTHERS.items(), *_OURS.items())
    }
    same: dict[str, list[str]] = {}
    for title, counts in by_method.items():
        if any(counts):
            same.setdefault(_range([count for count in counts if count]), []).append(title)
    parts = [f"{count} ({', '.join(titles)})" for count, titles in same.items()]
    return f"Seeds per set: {'; '.join(parts)}."


def one_model_table(campaign: Campaign) -> Table:
    """All three figures of the model that was chosen by exact match, retrained."""
    figures = (("exact match", EXACT, 2), ("Hamming score", EXACT_HAMMING, 3), ("AU(PRC)", EXACT_AUPRC, 3))
    head = ("", *(f"{title}: {_SHORT[method]}" for title, _, _ in figures for method in _SHORT))
    rows = []
    for name in TWELVE:
        cells = [
            spread(figure.of(campaign.of(name, method), "retrained"), digits)
            for _, figure, digits in figures
            for method in _SHORT
        ]
        rows.append((name, *cells))
    return head, rows


def hamming_table(campaign: Campaign, column: str) -> Table:
    """Hamming scores of modes and decoders beside the paper's."""
    first = {f"paper: {system}": system for system in ("HMCNN", "SPL")}
    parts = _present(campaign, _HAMMING_COLUMNS, column)
    head = ("", *first, *(title for title, _, _ in parts))
    rows = []
    for name in TWELVE:
        paper = (_published(published.HAMMING[system][name]) for system in first.values())
        rows.append((name, *paper, *_cells(campaign, name, parts, column, 3)))
    return head, rows


def auprc_table(campaign: Campaign, column: str) -> Table:
    """AU(PRC) of single models beside what others published, which were trained on train and validation rows."""
    parts = _present(campaign, _AUPRC_COLUMNS, column)
    head = ("", *published.AUPRC, *(title for title, _, _ in parts))
    rows = []
    for name in TWELVE:
        others = (f"{values[name]:.3f}" for values in published.AUPRC.values())
        rows.append((name, *others, *_cells(campaign, name, parts, column, 3)))
    return head, rows


def ensemble_table(ensembles: dict[str, Any]) -> Table:
    """AU(PRC) of ensembles beside the published figure of C-HMCNN, and of how many runs each is."""
    methods = {key.split("/")[1] for key in ensembles}
    parts = [(title, method) for title, method, _ in _AUPRC_COLUMNS if method in methods]
    rows = []
    for name in TWELVE:
        ours = (_ensemble(ensembles, name, method) for _, method in parts)
        rows.append((name, f"{published.AUPRC['C-HMCNN'][name]:.3f}", *ours))
    return ("", "C-HMCNN, single", *(title for title, _ in parts)), rows


def _present(campaign: Campaign, columns: Sequence[Column], column: str) -> list[Column]:
    """Those columns of a table that have a figure for some set."""
    return [
        (title, method, figure)
        for title, method, figure in columns
        if any(figure.of(campaign.of(name, method), column) for name in TWELVE)
    ]


def _cells(campaign: Campaign, name: str, parts: Sequence[Column], column: str, digits: int) -> list[str]:
    return [spread(figure.of(campaign.of(name, method), column), digits) for _, method, figure in parts]


def other_table(campaign: Campaign) -> Table:
    """Calibration of marginals and of the mode's probability, consistency of predictions."""
    methods = ("SPL", "HMCNN", "FIL")
    head = (
        "",
        *(f"calibration error: {name}" for name in methods),
        *(f"of p(mode): {name}" for name in ("SPL", "FIL")),
        *(f"consistent: {name}" for name in methods),
    )
    rows = []
    for name in TWELVE:
        runs = {method: campaign.of(name, method) for method in ("spl", "hmcnn", "fil")}
        rows.append(
            (
                name,
                *(spread(CALIBRATION.of(found, "retrained"), 4) for found in runs.values()),
                *(spread(MODE_CALIBRATION.of(runs[method], "retrained"), 3) for method in ("spl", "fil")),
                *(spread(CONSISTENT.of(found, "retrained"), 1) for found in runs.values()),
            )
        )
    return head, rows


def timing_table(path: Path) -> str:
    """Processor seconds of an epoch, measured by turns in one process."""
    if not path.is_file():
        return "Not measured yet: `python -m experiments.hmlc.timing`."
    content = read_json(path)
    rows = [(case["case"], f"{case['seconds']:.3f}", f"{case['times_fil']:.2f}") for case in content["cases"]]
    return markdown(((content["set"], "processor seconds per epoch", "× FIL"), rows))


def seconds_table(campaign: Campaign) -> Table:
    """Median seconds of a training on train and validation rows with its measurements, over all settings and seeds."""
    methods = [method for method in TITLES if any(campaign.of(name, method) for name in TWELVE)]
    rows = []
    for name in TWELVE:
        cells = []
        for method in methods:
            found = [run["seconds"]["retrain"] for run in campaign.of(name, method) if "retrain" in run["seconds"]]
            cells.append(f"{statistics.median(found):.0f}" if found else "–")
        rows.append((name, *cells))
    return ("", *(TITLES[method] for method in methods)), rows


def gene_ontology(campaign: Campaign, name: str = "cellcycle-go") -> str:
    """The methods that were run on a set of the Gene Ontology, retrained."""
    rows = []
    for method, title in TITLES.items():
        if runs := campaign.of(name, method):
            figures = [spread(figure.of(runs, "retrained"), digits) for figure, digits in _ONTOLOGY]
            rows.append((title, *figures, str(campaign.seeds(name, method))))
    missing = ",".join(method for method in _ON_ONTOLOGY if not campaign.of(name, method))
    hint = f"Not run yet: `python -m experiments hmlc --sets {name} --methods {missing} --seeds 1`." if missing else ""
    if not rows:
        return hint
    table = markdown((("", "exact match", "Hamming score", "AU(PRC)", "consistent", "seeds"), rows))
    unfinished = [
        TITLES[method]
        for method in TITLES
        if any(run["epochs"].get("auprc") == run["settings"]["epochs"] for run in campaign.of(name, method))
    ]
    more = f" Best AU(PRC) on validation rows at the last epoch allowed: {', '.join(unfinished)}." if unfinished else ""
    trainings = []
    for method, title in TITLES.items():
        sizes = {(run["settings"]["batch"], run["settings"]["epochs"]) for run in campaign.of(name, method)}
        trainings += [f"{title} in batches of {batch} for at most {epochs} epochs" for batch, epochs in sorted(sizes)]
    return f"{table}\n\nNothing was tuned. Trainings: {', '.join(trainings)}.{more} {hint}".rstrip()


def print_summary(results: Sequence[dict[str, Any]]) -> None:
    """A table of runs in the terminal: means over seeds, retrained."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in results:
        groups.setdefault((run["set"], run["method"]), []).append(run)
    print(f"{'':13}{'':23}{'exact':>13}{'known sets':>12}{'Hamming':>9}{'AU(PRC)':>9}")
    for (name, method), runs in groups.items():
        exact = spread(EXACT.of(runs, "retrained"), 2)
        means = [_mean(KNOWN.of(runs, "retrained"), 2), _mean(HAMMING.of(runs, "retrained"), 3)]
        area = _mean(AUPRC.of(runs, "retrained"), 4)
        print(f"{name:13}{TITLES[method]:23}{exact:>13}{means[0]:>12}{means[1]:>9}{area:>9}")
    print("Percent of test rows, retrained on train + valid rows; epochs chosen on")
    print("validation rows. Means over seeds; exact match ± standard deviation.")


def _mean(values: Sequence[float], digits: int) -> str:
    return f"{sum(values) / len(values):.{digits}f}" if values else "–"


def markdown(table: Table) -> str:
    """A table in Markdown."""
    head, rows = table
    if any(len(row) != len(head) for row in rows):
        raise ValueError("a row of the table has not as many cells as its heading")
    lines = [list(head), ["---"] * len(head), *map(list, rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    return text.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}")  # one line in a narrow column


def _published(value: published.Spread) -> str:
    return f"{value[0]:.2f} ± {value[1]:.2f}"


def _ensemble(ensembles: dict[str, Any], name: str, method: str) -> str:
    entry = ensembles.get(f"{name}/{method}")
    return "–" if entry is None else f"{entry['auprc']:.3f} (of {len(entry['seeds'])})"


def _range(counts: Sequence[int]) -> str:
    """Counts in words: the only one, or the least and the most."""
    least, most = min(counts), max(counts)
    return str(least) if least == most else f"{least} to {most}"
