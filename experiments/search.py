"""Choosing settings on validation rows, here or on a cluster."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from experiments.jobs import Job, TaskSettings, execute, execute_all, read_model
from experiments.settings import Candidate
from experiments.trainer import TrainSettings
from semprola.errors import SemprolaError


def search(
    task: TaskSettings,
    method: str,
    tried: Sequence[Candidate],
    folder: str | Path,
    *,
    seeds: int = 1,
    processes: int = 1,
    ray: bool = False,
    quiet: bool = False,
    command: str | None = None,
) -> tuple[Candidate, list[dict[str, Any]]]:
    """Train with each candidate and keep the one that is best on validation rows, on average over seeds.

    Results are kept in the folder, so an interrupted search resumes where it stopped. Test rows affect neither the
    choice nor the result.

    Args:
        task: the task.
        method: the method.
        tried: the candidates.
        folder: the folder of results and checkpoints.
        seeds: number of runs per candidate, with seeds 0, 1, ...
        processes: the number of processes.
        ray: let Ray Tune run the jobs, on the cluster that ``RAY_ADDRESS`` names or on this machine.
        quiet: show no progress.
        command: the command line to record.

    Returns:
        The best candidate by the criterion of its training ("exact", with ties broken by likelihood, or "likelihood"),
        the first of equals; and for each candidate, in order: "settings" (those in which candidates differ), "seeds",
        "valid" (means of "exact", "hamming", "consistent" and "nll") and "chosen".

    Raises:
        SemprolaError: if there are no candidates or seeds, the candidates have different criteria, or Ray Tune is
            requested but not installed.
    """
    if not tried:
        raise SemprolaError("a search needs at least one candidate")
    rules = {training.choose for _, training in tried}
    if len(rules) > 1:
        raise SemprolaError(
            f"candidates with different criteria (choose) cannot be compared: {', '.join(sorted(rules))}"
        )
    if seeds < 1:
        raise SemprolaError(f"a search needs at least one seed, not {seeds}")
    jobs = [Job(task, method, model, training, seed) for model, training in tried for seed in range(seeds)]
    if ray:
        results = _with_ray(jobs, Path(folder), command)
    else:
        results = execute_all(jobs, folder, processes=processes, quiet=quiet, command=command)
    valid = [_means(results[i : i + seeds]) for i in range(0, len(jobs), seeds)]
    exact = 1.0 if rules == {"exact"} else 0.0
    best = max(range(len(tried)), key=lambda i: (exact * valid[i]["exact"], -valid[i]["nll"], -i))
    found = zip(_differences(tried), valid, strict=True)
    summary = [
        {"settings": settings, "seeds": seeds, "valid": seen, "chosen": i == best}
        for i, (settings, seen) in enumerate(found)
    ]
    return tried[best], summary


def recall(
    method: str, tried: Sequence[Candidate], seeds: int, entries: Sequence[Mapping[str, Any]]
) -> tuple[Candidate, list[dict[str, Any]]] | None:
    """What an earlier search found, if it tried the same candidates with as many seeds; None otherwise.

    Args:
        method: the method.
        tried: the candidates.
        seeds: number of runs per candidate.
        entries: the summaries of searches in a results file, each with its "method".
    """
    found = [
        {name: value for name, value in entry.items() if name != "method"}
        for entry in entries
        if entry["method"] == method
    ]
    settings = json.loads(json.dumps(_differences(tried)))
    if [entry["settings"] for entry in found] != settings or any(entry["seeds"] != seeds for entry in found):
        return None
    return tried[[entry["chosen"] for entry in found].index(True)], found


def _means(results: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    names = ("exact", "hamming", "consistent", "nll")
    return {name: sum(result["valid"][name] for result in results) / len(results) for name in names}


def _differences(tried: Sequence[Candidate]) -> list[dict[str, Any]]:
    """For each candidate, the settings in which candidates differ."""
    described = [{**asdict(model), **asdict(training)} for model, training in tried]
    names = [name for name in described[0] if len({content[name] for content in described}) > 1]
    return [{name: content[name] for name in names} for content in described]


def _with_ray(jobs: Sequence[Job], folder: Path, command: str | None) -> list[dict[str, Any]]:
    """One Ray Tune trial per job; results are sent as JSON, so that no shared disk is needed."""
    try:
        from ray import tune
    except ImportError:
        raise SemprolaError("the search on a cluster needs Ray Tune: pip install 'semprola[tune]'") from None

    def trial(config: dict[str, Any]) -> dict[str, Any]:
        result = execute(_job(json.loads(config["job"])), Path.cwd(), command=command)
        return {"valid_exact": result["valid"]["exact"], "result": json.dumps(result)}

    described = [json.dumps(asdict(job)) for job in jobs]
    tuner = tune.Tuner(
        tune.with_resources(trial, {"cpu": 1}),
        param_space={"job": tune.grid_search(described)},
        run_config=tune.RunConfig(name="trials", storage_path=str((folder / "ray").resolve()), verbose=0),
    )
    found = {}
    for outcome in tuner.fit():
        if outcome.error is not None:
            raise SemprolaError(f"a Ray trial failed: {str(outcome.error).strip().splitlines()[-1]}")
        found[outcome.config["job"]] = json.loads(outcome.metrics["result"])
    return [found[text] for text in described]


def _job(content: dict[str, Any]) -> Job:
    """The job with this `asdict`, restored from JSON."""
    return Job(
        TaskSettings(**content["task"]),
        content["method"],
        read_model(content["model"]),
        TrainSettings(**content["training"]),
        content["seed"],
    )
