"""Results of a campaign, read back: figures by set and method, tests, ensembles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.hmlc.campaign import BY_COST, Job
from experiments.hmlc.data import load_raw
from experiments.hmlc.scores import average_precision
from experiments.hmlc.settings import METHODS
from experiments.hmlc.tuning import best_on_validation, chosen_settings
from experiments.provenance import provenance, read_json, write_json
from semprola.errors import SemprolaError

ENSEMBLES = "ensembles.json"
ENSEMBLE_SIZE = 5
CIRCUITS = ("spl", "product-spl")
"""SPL with one circuit and with two."""
EITHER = "spl-either"
"""Stands for one of the two, the better one on validation rows, set by set and figure by figure."""


@dataclass(frozen=True)
class Figures:
    """Where a figure lies in a run: which choice of the epoch, then a path of names.

    Example:
        >>> run = {"retrained": {"exact": {"exact": 4.0}}}
        >>> Figures("exact", ("exact",)).of([run], "retrained")
        [4.0]
    """

    chosen_by: str
    path: tuple[str, ...]

    def of(self, runs: Sequence[dict[str, Any]], column: str) -> list[float]:
        """The figure in each run that has it."""
        found = []
        for run in runs:
            value: Any = run[column].get(self.chosen_by, {})
            for name in self.path:
                value = value.get(name, {}) if isinstance(value, dict) else {}
            if isinstance(value, int | float):
                found.append(float(value))
        return found


EXACT = Figures("exact", ("exact",))
KNOWN = Figures("exact", ("known",))
EMPTY = Figures("exact", ("empty",))
EXACT_HAMMING = Figures("exact", ("decoder", "hamming"))
EXACT_MODE_HAMMING = Figures("exact", ("hamming",))
EXACT_MODE_PROVEN = Figures("exact", ("mode_proven",))
EXACT_AUPRC = Figures("exact", ("auprc",))
"""Of the model whose settings and epoch were chosen by exact match."""
HAMMING_MODE = Figures("hamming", ("hamming",))
HAMMING = Figures("hamming", ("decoder", "hamming"))
"""By the decoder inside the method's own rules."""
HAMMING_OUTSIDE = Figures("hamming", ("threshold", "hamming"))
"""By every label whose marginal exceeds 1/2: inside the hierarchy, but not inside further rules."""
AUPRC = Figures("auprc", ("auprc",))
CALIBRATION = Figures("auprc", ("calibration",))
MODE_CALIBRATION = Figures("exact", ("mode_calibration",))
CONSISTENT = Figures("exact", ("consistent",))


class Campaign:
    """The runs of a folder, those of the campaign's own settings apart from variants."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs: dict[tuple[str, str], list[dict[str, Any]]] = {}
        self.variants: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
        for name in BY_COST:
            for method in METHODS:
                for path in sorted(folder.glob(f"{name}_{method}*.json")):
                    self._add(name, method, path)

    def of(self, name: str, method: str, figure: str = "exact") -> list[dict[str, Any]]:
        """The runs of a method on a set, by seed; `figure` is what `EITHER` is chosen by."""
        if method == EITHER:
            method = self.preferred(name, figure)
        return self.runs.get((name, method), [])

    def variant(self, name: str, method: str, variant: str) -> list[dict[str, Any]]:
        """The runs of a method with other settings on a set, by seed."""
        return self.variants.get((name, method, variant), [])

    def preferred(self, name: str, figure: str) -> str:
        """SPL with one circuit or with two, whichever has the better figure on validation rows."""
        return best_on_validation(self.folder, CIRCUITS, name, figure) or CIRCUITS[0]

    def seeds(self, name: str, method: str, column: str = "retrained") -> int:
        """How many there are with an exact match."""
        return len(EXACT.of(self.of(name, method), column))

    def _add(self, name: str, method: str, path: Path) -> None:
        content = read_json(path)
        if (content["set"], content["method"]) != (name, method):
            return
        if content["variant"]:
            self.variants.setdefault((name, method, content["variant"]), []).extend(content["runs"])
            return
        chosen = chosen_settings(self.folder, method, name)
        for run in content["runs"]:
            if run["key"] in {Job(name, settings, run["seed"]).key for settings in chosen}:
                self.runs.setdefault((name, method), []).append(run)


def campaign_in(folder: Path) -> Campaign:
    """The runs of a folder, read once as long as no file changes."""
    files = ((path.name, path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(folder.glob("*.json")))
    return _campaign(folder, tuple(files))


@lru_cache(maxsize=2)
def _campaign(folder: Path, files: tuple[tuple[str, int, int], ...]) -> Campaign:
    return Campaign(folder)


def rank_sum(first: Sequence[float], second: Sequence[float]) -> float | None:
    """p-value of the unpaired Wilcoxon (rank-sum) test, two-sided; None with fewer than five values on a side.

    Raises:
        SemprolaError: scipy is not installed.

    Example:
        >>> rank_sum([1.0, 2.0, 3.0, 4.0, 5.0], [6.0, 7.0, 8.0, 9.0, 10.0])
        0.0079...
    """
    if min(len(first), len(second)) < 5:
        return None
    try:
        from scipy.stats import mannwhitneyu
    except ImportError:
        raise SemprolaError("the test is scipy's: install semprola[experiments]") from None
    return float(mannwhitneyu(first, second, alternative="two-sided").pvalue)


def spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation (of a sample), the value if there is one, a dash if there is none.

    Example:
        >>> spread([1.0, 3.0], 2), spread([2.0], 1), spread([], 1)
        ('2.00 ± 1.41', '2.0', '–')
    """
    if not values:
        return "–"
    mean = sum(values) / len(values)
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {deviation(values):.{digits}f}"


def deviation(values: Sequence[float]) -> float:
    """Standard deviation of a sample; 0 for one value."""
    if len(values) < 2:
        return 0.0
    mean = sum(values) / len(values)
    return math.sqrt(sum((value - mean) ** 2 for value in values) / (len(values) - 1))


def update_ensembles(campaign: Campaign, marginals: Path, data: str | None) -> dict[str, Any]:
    """AU(PRC) of ensembles of each method, from marginals that were kept; and what is on file.

    An ensemble is of the first runs whose marginals are at hand, whatever they score. The marginals of a mixture of
    models are the mean of theirs.
    """
    path = campaign.folder / ENSEMBLES
    before = read_json(path) if path.is_file() else {}
    known: dict[str, Any] = {}
    for (name, method), runs in campaign.runs.items():
        entry = f"{name}/{method}"
        on_file = before.get(entry, {"keys": []})
        still = set(on_file["keys"]) <= {run["key"] for run in runs}  # the settings may have changed since
        found = []
        for run in sorted((r for r in runs if "auprc" in r["retrained"]), key=lambda run: run["seed"]):
            file = marginals / f"{name}_{method}_{run['seed']}_{run['key']}.npz"
            found += [(run, file)] if file.is_file() else []
        found = found[:ENSEMBLE_SIZE]
        if still and len(on_file["keys"]) >= max(len(found), 2):
            known[entry] = on_file
        elif len(found) >= 2:
            scores = _mean([np.load(file)["auprc"].astype(np.float64) for _, file in found])
            raw = load_raw(name, data)
            y = raw.y[raw.parts(0)["test"]]
            area = average_precision(scores[:, raw.scored], y[:, raw.scored])
            chosen = [run for run, _ in found]
            known[entry] = {
                "auprc": round(area, 5),
                "seeds": [run["seed"] for run in chosen],
                "keys": [run["key"] for run in chosen],
                "provenance": provenance(),
            }
    if known != before:
        write_json(path, known)
    return known


def _mean(parts: Sequence[NDArray[np.float64]]) -> NDArray[np.float64]:
    total: NDArray[np.float64] = np.mean(np.stack(parts), axis=0)
    return total
