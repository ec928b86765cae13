"""Runs as jobs: described by plain data, done once, possibly in parallel processes, and resumed after interruptions."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from experiments.methods import TITLES, ModelSettings
from experiments.parallel import finished
from experiments.preference import preference_task
from experiments.provenance import read_json, write_json
from experiments.runs import run
from experiments.simple_path import simple_path_task
from experiments.task import Task
from experiments.trainer import TrainSettings
from semprola.errors import SemprolaError


@dataclass(frozen=True)
class TaskSettings:
    """Which task to run; results do not depend on `data`, which is only a folder."""

    experiment: str = "simple-path"
    setting: str = "paper"
    split: str = "published"
    source: str = "generated"
    data_seed: int = 0
    multiplicity: bool = False
    ends: str = "early"
    turned: bool = False
    data: str | None = field(default=None, compare=False)

    def task(self) -> Task:
        """The task itself; made once per process."""
        return _task(self)


@dataclass(frozen=True)
class Job:
    """One run: a method on a task with settings and a seed."""

    task: TaskSettings
    method: str
    model: ModelSettings
    training: TrainSettings
    seed: int

    @property
    def key(self) -> str:
        """A name that is the same for the same run, and different for any other."""
        content = asdict(self)
        del content["task"]["data"]
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]


def result_path(job: Job, folder: str | Path) -> Path:
    """Where the result of a job lies."""
    return Path(folder) / f"{job.method}-seed{job.seed}-{job.key}.json"


def read_model(content: Mapping[str, Any]) -> ModelSettings:
    """Settings of a model that JSON has held, where tuples are lists."""
    values: dict[str, Any] = {n: tuple(value) if isinstance(value, list) else value for n, value in content.items()}
    return ModelSettings(**values)


def execute(job: Job, folder: str | Path, *, quiet: bool = True, command: str | None = None) -> dict[str, Any]:
    """Run a job, or read its result if it was done before; an interrupted job is resumed.

    Args:
        job: the job.
        folder: the folder of results and checkpoints.
        quiet: show no progress.
        command: the command line to record.

    Returns:
        The result, as returned by `experiments.runs.run`.
    """
    path = result_path(job, folder)
    if path.is_file():
        return read_json(path)
    checkpoint = path.with_suffix(".pt")
    result, _ = run(
        job.task.task(), job.method, job.model, job.training, job.seed,
        checkpoint=checkpoint, quiet=quiet, command=command,
    )  # fmt: skip
    write_json(path, result)
    checkpoint.unlink(missing_ok=True)
    return read_json(path)  # the same, whether it was done now or before


def execute_all(
    jobs: Sequence[Job],
    folder: str | Path,
    *,
    processes: int = 1,
    quiet: bool = False,
    command: str | None = None,
    done: Callable[[Job, dict[str, Any]], None] | None = None,
) -> list[dict[str, Any]]:
    """Run many jobs, in the given order or in parallel processes.

    Args:
        jobs: the jobs.
        folder: the folder of results and checkpoints.
        processes: the number of processes.
        quiet: show no progress.
        command: the command line to record.
        done: called with each job and its result as soon as it is finished.

    Returns:
        The results, in the order of the jobs.

    Raises:
        SemprolaError: if a job fails; finished jobs are kept.
    """
    if processes < 1:
        raise SemprolaError(f"processes must be at least 1, not {processes}")
    report = done or (lambda job, result: None)
    if processes == 1:
        results = []
        for job in jobs:
            results.append(execute(job, folder, quiet=quiet, command=command))
            report(job, results[-1])
        return results
    found: dict[Job, dict[str, Any]] = {}
    different = list(dict.fromkeys(jobs))
    calls = [(job, folder) for job in different]
    for number, result in finished(partial(execute, command=command), calls, processes):
        found[different[number]] = result
        report(different[number], result)
        if not quiet and not sys.stderr.isatty():
            left = len(different) - len(found)
            print(f"  {TITLES[different[number].method]}: {left} runs to go", file=sys.stderr, flush=True)
    return [found[job] for job in jobs]


@lru_cache(maxsize=4)
def _task(settings: TaskSettings) -> Task:
    makers: dict[str, Callable[[], Task]] = {
        "simple-path": lambda: simple_path_task(
            settings.setting,
            settings.split,
            settings.source,
            settings.data,
            settings.data_seed,
            settings.ends,
            settings.turned,
        ),
        "preference": lambda: preference_task(
            settings.setting, settings.split, settings.source, settings.data, settings.data_seed, settings.multiplicity
        ),
    }
    if settings.experiment not in makers:
        raise SemprolaError(f"no experiment {settings.experiment!r}: choose from {', '.join(makers)}")
    return makers[settings.experiment]()
