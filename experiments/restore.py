"""Taking runs over from a results file, so that a plan resumes where an earlier checkout has stopped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.jobs import Job, read_model, result_path
from experiments.provenance import write_json
from experiments.reproduce import Plan
from experiments.trainer import TrainSettings


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
