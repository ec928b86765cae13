"""Choosing settings on validation rows, here or on a cluster."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from semprola.errors import SemprolaError
from semprola.experiments.jobs import Job, TaskSettings, execute, execute_all
from semprola.experiments.methods import ModelSettings
from semprola.experiments.settings import Candidate
from semprola.experiments.trainer import TrainSettings


def search(
    task: TaskSettings,
    method: str,
    tried: Sequence[Candidate],
    folder: str | Path,
    *,
    seed: int = 0,
    processes: int = 1,
    ray: bool = False,
    quiet: bool = False,
    command: str | None = None,
) -> tuple[Candidate, list[dict[str, Any]]]:
    """Train with each candidate and keep the one with the best exact match on validation rows.

    Results lie in the folder, so that a search that was stopped goes on where it was.

    Args:
        task: on what.
        method: which method.
        tried: the candidates.
        folder: where results and checkpoints lie.
        seed: of all runs.
        processes: how many at a time.
        ray: let Ray Tune run them, on the cluster that ``RAY_ADDRESS`` names or on this machine.
        quiet: show no progress.
        command: the command line to record.

    Returns:
        The best candidate (among equals the one with the higher validation log-likelihood, then the first), and all
        results in the order of the candidates.

    Raises:
        SemprolaError: there is nothing to try, or Ray Tune is asked for and not installed.
    """
    if not tried:
        raise SemprolaError("a search needs at least one candidate")
    jobs = [Job(task, method, model, training, seed) for model, training in tried]
    if ray:
        results = _with_ray(jobs, Path(folder), command)
    else:
        results = execute_all(jobs, folder, processes=processes, quiet=quiet, command=command)
    best = max(range(len(jobs)), key=lambda i: (results[i]["valid"]["exact"], -results[i]["valid"]["nll"], -i))
    return tried[best], results


def _with_ray(jobs: Sequence[Job], folder: Path, command: str | None) -> list[dict[str, Any]]:
    """One Ray Tune trial for each job; results travel as JSON, so that no disk need be shared."""
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
    """The job whose `asdict` this is, come back from JSON."""
    model = dict(content["model"])
    for name in ("hidden", "gate"):
        model[name] = tuple(model[name])
    return Job(
        TaskSettings(**content["task"]),
        content["method"],
        ModelSettings(**model),
        TrainSettings(**content["training"]),
        content["seed"],
    )
