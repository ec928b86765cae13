"""Methods with other rules: each has the settings that were chosen for its usual rules, and an epoch of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.hmlc.campaign import BY_COST, Job, work
from experiments.hmlc.data import load_raw
from experiments.hmlc.run import choose_only
from experiments.hmlc.settings import Settings
from experiments.hmlc.tuning import SEED, chosen_settings, one_thread
from experiments.provenance import provenance, read_json, write_json
from semprola.errors import SemprolaError

FILE = "chosen_variants.json"

VARIANTS: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    "hierarchy": (("spl", "product-spl"), {"options": False}),
    "rules": (("semantic-loss",), {"further_rules": True}),
}
"""For each variant, its methods and the setting that differs.

"hierarchy": the layers know the hierarchy alone, as HMCNN and the paper's SPL do. "rules": the semantic loss knows the
further rules that the layers know otherwise.
"""


def work_through(
    sets: Iterable[str],
    variant: str,
    seeds: Sequence[int],
    folder: Path,
    data: str | None = None,
    processes: int = 1,
    command: str | None = None,
) -> list[dict[str, Any]]:
    """All runs of a variant, set by set: its epoch is chosen on validation rows, then every seed is run.

    Every run is trained on train rows alone, and again on train and validation rows. Finished runs are not repeated.

    Args:
        sets: names; the sets that take least time come first.
        variant: one of `VARIANTS`.
        seeds: of the runs.
        folder: where results and choices lie.
        data: the data folder.
        processes: how many runs at a time.
        command: the command line to record.

    Raises:
        SemprolaError: there is no such variant.
    """
    if variant not in VARIANTS:
        raise SemprolaError(f"no variant {variant!r}: choose from {', '.join(VARIANTS)}")
    results = []
    for name in sorted(sets, key=BY_COST.index):
        for method in VARIANTS[variant][0]:
            _choose(name, method, variant, folder, data, command)
        results += work(
            known_jobs(name, variant, seeds, folder), folder, data=data, processes=processes, command=command
        )
    return results


def known_jobs(name: str, variant: str, seeds: Sequence[int], folder: Path) -> list[Job]:
    """The runs of a variant on a set, for the methods whose epoch is on file."""
    chosen = _read(folder)
    jobs = []
    for method in VARIANTS[variant][0]:
        if entry := chosen.get(f"{name}/{method}/{variant}"):
            settings = replace(_changed(name, method, variant, folder), chosen=(entry["epoch"], 0, 0))
            jobs += [Job(name, settings, seed, variant) for seed in seeds]
    return jobs


def _choose(name: str, method: str, variant: str, folder: Path, data: str | None, command: str | None) -> None:
    """Choose the epoch on validation rows, once per set, with a seed that no run uses, as for all methods."""
    chosen, key = _read(folder), f"{name}/{method}/{variant}"
    if key not in chosen:
        with one_thread():
            best = choose_only(load_raw(name, data), _changed(name, method, variant, folder), SEED)
        write_json(folder / FILE, chosen | {key: {**best["exact"], "provenance": provenance(command)}})


def _changed(name: str, method: str, variant: str, folder: Path) -> Settings:
    """The settings for exact match with the usual rules, with the rules of the variant."""
    usual = chosen_settings(folder, method, name)[0]
    return replace(usual, **VARIANTS[variant][1], chosen=None, known_weight=None)


def _read(folder: Path) -> dict[str, Any]:
    path = folder / FILE
    return read_json(path) if path.is_file() else {}
