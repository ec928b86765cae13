"""Many runs: in an order that gives useful tables early, done once, in parallel, picked up again after a stop.

Results lie in one JSON file per set, method and variant, one line per run.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from experiments.hmlc.data import load_raw
from experiments.hmlc.run import COLUMNS, VERSION, run
from experiments.hmlc.settings import FIGURES, Settings, default_settings
from experiments.hmlc.tuning import chosen_settings
from experiments.parallel import finished
from experiments.provenance import provenance, read_json, write_json
from semprola.training.progress import duration

BY_COST = (
    "enron", "eisen", "cellcycle", "derisi", "gasch2", "spo", "gasch1", "expr", "seq", "diatoms", "imclef07d",
    "imclef07a", "cellcycle-go",
)  # fmt: skip
"""All sets, those that take least time first."""


@dataclass(frozen=True)
class Job:
    """One run.

    Args:
        name: of the set.
        settings: of the method.
        seed: of the run.
        variant: names what differs from the settings of the campaign; empty for those.
        columns: which trainings are wanted, of `COLUMNS`; others can be added to the same run later.
    """

    name: str
    settings: Settings
    seed: int
    variant: str = ""
    columns: tuple[str, ...] = COLUMNS

    @property
    def key(self) -> str:
        """A name that is the same for the same run, and different for any other."""
        usual = asdict(Settings())
        # what has its usual value is left out, so that a setting that is new does not change the names of old runs
        special = {name: value for name, value in asdict(self.settings).items() if value != usual[name]}
        content = {"version": VERSION, "set": self.name, "seed": self.seed, **special}
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:12]

    @property
    def file(self) -> str:
        """The file of results that the run belongs to."""
        return "_".join(part for part in (self.name, self.settings.method, self.variant) if part) + ".json"


def plan_jobs(
    sets: Iterable[str],
    methods: Sequence[str],
    seeds: Iterable[int],
    changes: dict[str, Any] | None = None,
    tuned: Path | None = None,
    train_only: int | None = None,
    figures: Sequence[str] = FIGURES,
) -> list[Job]:
    """The runs of a campaign: seed by seed, small sets first, so that tables fill evenly.

    Args:
        sets: names.
        methods: names.
        seeds: numbers.
        changes: settings that differ from those of the campaign; they make a variant.
        tuned: the folder where chosen settings lie.
        train_only: seeds below this are also trained on train rows only; None for all. Runs that choose their own
            epochs always are.
        figures: only settings that were chosen for one of these; those that choose their own epochs serve all.
    """
    order = sorted(sets, key=BY_COST.index)
    jobs = []
    for seed in seeds:
        for name in order:
            for method in methods:
                chosen = chosen_settings(tuned, method, name) if tuned else [default_settings(method, name)]
                if changes:  # a variant of the settings for exact match, which chooses its own epochs
                    chosen = [replace(chosen[0], chosen=None, **changes)]
                for settings in chosen:
                    if not _serves(settings, figures):
                        continue
                    both = train_only is None or seed < train_only or settings.chosen is None
                    columns = COLUMNS if both else ("retrained",)
                    jobs.append(Job(name, settings, seed, variant_name(changes or {}), columns))
    return jobs


def _serves(settings: Settings, figures: Sequence[str]) -> bool:
    """Whether settings have an epoch for one of these figures."""
    if settings.chosen is None:
        return True
    return any(epoch and name in figures for name, epoch in zip(FIGURES, settings.chosen, strict=True))


def variant_name(changes: dict[str, Any]) -> str:
    """A short name for settings that differ.

    Example:
        >>> variant_name({"components": 8, "gate": (256, 256)})
        'components8-gate256x256'
    """
    return "-".join(
        f"{name}{'x'.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in sorted(changes.items())
    )


def work(
    jobs: Sequence[Job],
    folder: Path,
    *,
    data: str | None = None,
    processes: int = 1,
    ray: bool = False,
    command: str | None = None,
    marginals: Path | None = None,
    say: Callable[[str], None] = lambda text: print(text, file=sys.stderr, flush=True),
) -> list[dict[str, Any]]:
    """Do the jobs that have no result yet.

    Args:
        jobs: what to do, in this order.
        folder: where results lie.
        data: the data folder.
        processes: how many at a time.
        ray: let Ray do them instead, see `experiments.parallel.finished`.
        command: the command line to record.
        marginals: a folder for marginals of test rows, from which ensembles are made.
        say: told about every run that is done.

    Returns:
        The results of all jobs, in their order.
    """
    done = {job: found for job in jobs if (found := find_result(job, folder)) is not None}
    waiting = [job for job in dict.fromkeys(jobs) if job not in done]
    if done:
        say(f"{len(done)} runs are there, {len(waiting)} to do")
    command = provenance(command)["command"]  # of this process: a worker does not know it
    # what chooses its own epochs has them on file before its second training, which may take an hour, begins
    choices = [replace(job, columns=COLUMNS[:1]) for job in waiting if _has_to_choose(job, folder)]
    for batch in (choices, waiting):
        began = time.perf_counter()
        calls = [(_rest(job, folder), job.key, data, command, marginals) for job in batch]
        for count, (number, result) in enumerate(finished(_do, calls, processes, ray=ray), start=1):
            done[batch[number]] = keep_result(batch[number], result, folder)
            left = len(batch) - count
            expected = (time.perf_counter() - began) / count * left
            say(_brief(batch[number], result) + (f"; {left} to go, about {duration(expected)}" if left else ""))
    return [done[job] for job in jobs]


def find_result(job: Job, folder: Path) -> dict[str, Any] | None:
    """The result of a job that was done before, with all the columns that it wants."""
    entry = _on_file(job, folder)
    wanted = job.columns if job.settings.choose else ("retrained",)
    return entry if entry is not None and all(entry[column] for column in wanted) else None


def keep_result(job: Job, result: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Add a result to its file, which is whole at any time; returns it with the columns that were there before.

    Columns that came later, by another command or code, have their provenance under "later".
    """
    if before := _on_file(job, folder):
        merged = before | {key: value for key, value in result.items() if value or not before.get(key)}
        merged["seconds"] = result["seconds"] | before["seconds"]
        merged["seconds"]["all"] = round(before["seconds"]["all"] + result["seconds"]["all"], 2)
        merged |= {key: before[key] for key in ("settings", "epochs", "provenance")}
        if result["provenance"] != before["provenance"]:
            added = [column for column in COLUMNS if result[column]]
            merged["later"] = before.get("later", {}) | dict.fromkeys(added, result["provenance"])
        result = merged
    path = folder / job.file
    old = read_json(path)["runs"] if path.is_file() else []
    kept = [entry for entry in old if entry["key"] != job.key]
    runs = sorted([*kept, result], key=lambda entry: (entry["seed"], entry["key"]))
    write_json(path, {"set": job.name, "method": job.settings.method, "variant": job.variant, "runs": runs})
    return result


def _has_to_choose(job: Job, folder: Path) -> bool:
    """Whether both columns are wanted, and their epochs are not known yet."""
    own = job.settings.choose and job.settings.chosen is None
    return own and set(job.columns) == set(COLUMNS) and _on_file(job, folder) is None


def _rest(job: Job, folder: Path) -> Job:
    """A job without the columns that are on file, with the epochs that were chosen for them."""
    entry = _on_file(job, folder)
    if entry is None:
        return job
    settings = job.settings
    if settings.choose and settings.chosen is None:
        epochs = tuple(entry["epochs"][figure] for figure in FIGURES)
        settings = replace(settings, chosen=epochs, known_weight=entry["known_weight"])
    return replace(job, settings=settings, columns=tuple(column for column in job.columns if not entry[column]))


def _on_file(job: Job, folder: Path) -> dict[str, Any] | None:
    path = folder / job.file
    if not path.is_file():
        return None
    return next((entry for entry in read_json(path)["runs"] if entry["key"] == job.key), None)


def _do(job: Job, key: str, data: str | None, command: str | None, marginals: Path | None) -> dict[str, Any]:
    """Run a job, or the rest of the one that has this key."""
    began = time.perf_counter()
    path = None if marginals is None else marginals / f"{Path(job.file).stem}_{job.seed}_{key}.npz"
    raw = load_raw(job.name, data)
    result = run(raw, job.settings, job.seed, columns=job.columns, command=command, marginals=path)
    result["seconds"]["all"] = round(time.perf_counter() - began, 2)
    return {"key": key, **result}


def _brief(job: Job, result: dict[str, Any]) -> str:
    final = result["retrained"] or result["train_only"]
    parts = []
    if "exact" in final:
        known = final["exact"].get("known")
        parts.append(f"exact {final['exact']['exact']:.2f}" + ("" if known is None else f" (known sets {known:.2f})"))
    if "hamming" in final:
        parts.append(f"Hamming {final['hamming']['threshold']['hamming']:.3f}")
    if "auprc" in final:
        parts.append(f"AU(PRC) {final['auprc']['auprc']:.4f}")
    what = " ".join(word for word in (job.name, job.settings.method, job.variant) if word)
    rows = "" if result["retrained"] else ", train rows only"
    return f"{what} seed {job.seed}{rows}: {', '.join(parts)}, {result['seconds']['all']:.0f} s"
