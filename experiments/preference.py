"""Preferences: predict a person's order of four items from the person's order of six others."""

from __future__ import annotations

from pathlib import Path

from experiments.data import find_file, generate_rankings, load_sushi
from experiments.data.sushi import SUSHI
from experiments.task import Task, divide, make_task
from semprola.compiler import compile
from semprola.constraints import permutation
from semprola.errors import SemprolaError

NAME = "preference"
SETTINGS = ("paper", "given")
_KNOWN = tuple(f"known[{i},{j}]" for i in range(6) for j in range(6))


def preference_task(
    setting: str = "paper",
    split: str = "published",
    source: str = "generated",
    data: str | Path | None = None,
    seed: int = 0,
    multiplicity: bool = False,
) -> Task:
    """The task of predicting how a person orders four items from how the person orders six others.

    The labels are "item i has rank j" among the four. The constraint: they form a permutation matrix (24 models).

    Args:
        setting: "paper" if the known order is an input of the network only; "given" if it is also an input of the
            constraint. It does not affect the constraint, so the figures are the same.
        split: "published", or "graph" to keep equal rankings in one part.
        source: "generated" or "file" (the sushi data).
        data: the folder with the published file.
        seed: seed of the generated data.
        multiplicity: for the file, one row per person, not one row per ranking as in the published experiments.

    Raises:
        SemprolaError: if the setting or split is unknown, or the file is not available.

    Example:
        >>> task = preference_task()
        >>> task.x.shape[1], task.y.shape[1], task.circuit.model_count()
        (36, 16, 24)
    """
    if setting not in SETTINGS:
        raise SemprolaError(f"no setting {setting!r}: choose from {', '.join(SETTINGS)}")
    if source == "file":
        dataset = load_sushi(find_file(SUSHI, data), multiplicity=multiplicity)
    else:
        dataset = generate_rankings(seed=seed)
    parts, constraint = divide(dataset, split), permutation(4)
    if setting == "given":
        circuit = compile(constraint, labels=constraint.labels, given=_KNOWN)
        return make_task(NAME, setting, split, dataset, parts, constraint, circuit, dataset.y, dataset.x)
    return make_task(NAME, setting, split, dataset, parts, constraint, constraint.to_circuit(), dataset.y, None)
