"""Runs of a plan that is not finished: into a results file, and from there into another checkout."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.jobs import Job, read_model, result_path
from experiments.provenance import read_json, write_json
from experiments.reproduce import Plan, plan_candidates, summary_of
from experiments.search import recall, search
from experiments.settings import Candidate
from experiments.trainer import TrainSettings


def collect(plan: Plan, out: str | Path, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The content of a results file with the runs that are done; nothing is trained.

    A method whose search is not finished is left out.

    Args:
        plan: the plan.
        out: the folder in which the plan works.
        before: content of an earlier results file, whose searches count too.
    """
    folder = Path(out) / "runs" / plan.name
    results: list[dict[str, Any]] = []
    searched: list[dict[str, Any]] = []
    for method in plan.methods:
        if found := _found(plan, method, folder, before or {}):
            (model, training), entries = found
            jobs = [Job(plan.task, method, model, training, seed) for seed in range(plan.seeds)]
            runs = [read_json(path) for path in (result_path(job, folder) for job in jobs) if path.is_file()]
            results += runs
            searched += [{"method": method, **entry} for entry in entries] if runs else []
    return summary_of(plan, searched, results)


def _found(
    plan: Plan, method: str, folder: Path, before: Mapping[str, Any]
) -> tuple[Candidate, list[dict[str, Any]]] | None:
    """What the search for a method has chosen, if it is finished."""
    tried = plan_candidates(plan, method)
    if found := recall(method, tried, plan.search_seeds, before.get("search", ())):
        return found
    jobs = [Job(plan.task, method, m, t, seed) for m, t in tried for seed in range(plan.search_seeds)]
    if all(result_path(job, folder).is_file() for job in jobs):
        return search(plan.task, method, tried, folder, seeds=plan.search_seeds, quiet=True)
    return None


def restore(plan: Plan, content: Mapping[str, Any], out: str | Path) -> int:
    """Put the runs of a results file where the plan looks for finished ones.

    Args:
        plan: the plan.
        content: of its results file.
        out: the folder in which the plan works.

    Returns:
        How many runs were taken over; those that lie there already do not count.
    """
    count = 0
    for result in content["results"]:
        job = Job(
            plan.task,
            result["method"],
            read_model(result["model"]),
            TrainSettings(**result["training"]),
            result["seed"],
        )
        path = result_path(job, Path(out) / "runs" / plan.name)
        if not path.is_file():
            write_json(path, result)
            count += 1
    return count
