"""Simple paths in the 4 × 4 grid: the task in its three settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from experiments.data import Dataset, Split, find_file, generate_grids, grid_graph, load_grids, turned_grids
from experiments.data.grids import GRIDS
from experiments.path_circuit import path_circuit
from experiments.task import Task, divide, make_task
from semprola.constraints import simple_paths
from semprola.errors import SemprolaError

NAME = "simple-path"
SETTINGS = ("paper", "ends", "given")
METHODS = ("fil", "semantic-loss", "nesy-entropy", "spl", "product-spl")


def simple_path_task(
    setting: str = "paper",
    split: str = "published",
    source: str = "generated",
    data: str | Path | None = None,
    seed: int = 0,
    ends: str = "early",
    turned: bool = False,
) -> Task:
    """The task of predicting a shortest path from two end points and a subgraph of the grid.

    Args:
        setting: with "paper", the labels are the 24 edges of the path and 16 indicators of its end points, and any
            simple path of the full grid is allowed (14,248 models): what the released SPL code predicts. With "ends",
            the labels are the 24 edges and the end points are inputs of the constraint: what the released code of
            semantic loss and of the neuro-symbolic entropy predicts. With "given", present edges are inputs of the
            constraint too, so only paths between the end points in the subgraph are allowed.
        split: "published" (rows of one graph may be in several parts) or "graph" (they may not).
        source: "generated" or "file" (the published one).
        data: the folder with the published file.
        seed: seed of the generated data.
        ends: where the circuit reads end points, see `path_circuit`; "first" is not for the setting "given".
        turned: whether to train also with rotated and reflected training rows, see `turned_grids`.

    Raises:
        SemprolaError: if the setting, split or circuit is unknown, or the file is not available.

    Example:
        >>> task = simple_path_task("given")
        >>> task.x.shape[1], task.y.shape[1], len(task.circuit.given)
        (40, 24, 40)
    """
    if setting not in SETTINGS:
        raise SemprolaError(f"no setting {setting!r}: choose from {', '.join(SETTINGS)}")
    if setting == "given" and ends == "first":
        raise SemprolaError("with missing edges as inputs the circuit reads end points early: leave ends='early'")
    dataset = load_grids(find_file(GRIDS, data)) if source == "file" else generate_grids(seed=seed)
    parts = divide(dataset, split)
    if turned:
        dataset, parts = _with_turned(dataset, parts)
    graph = grid_graph()
    end_points = dataset.x[:, : len(graph)]
    if setting == "paper":
        constraint = simple_paths(graph, endpoints="labels")
        y, given = np.concatenate([dataset.y, end_points], axis=1), None
    else:
        constraint = simple_paths(graph, endpoints="given", given_edges=setting == "given")
        y, given = dataset.y, dataset.x if setting == "given" else end_points
    task = make_task(NAME, setting, split, dataset, parts, constraint, path_circuit(constraint, ends), y, given)
    return task if ends == "early" else replace(task, smaller=path_circuit(constraint, "early"))


def _with_turned(dataset: Dataset, parts: Split) -> tuple[Dataset, Split]:
    """The data and the split with turned training rows at the end."""
    rows = parts.train
    more = turned_grids(Dataset(dataset.name, dataset.x[rows], dataset.y[rows], dataset.groups[rows]))
    joined = Dataset(
        f"{dataset.name}, training rows also turned",
        np.concatenate([dataset.x, more.x]),
        np.concatenate([dataset.y, more.y]),
        np.concatenate([dataset.groups, more.groups]),
    )
    added = np.arange(len(dataset), len(joined), dtype=np.int64)
    return joined, replace(parts, train=np.concatenate([rows, added]))
