"""A task: data as tensors, the constraint that its labels satisfy, and the split of its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.data import Dataset, Split, group_split, published_split
from experiments.trainer import Rows
from semprola.circuit import Circuit
from semprola.errors import SemprolaError
from semprola.logic import Formula
from semprola.training.metrics import obeys

SPLITS = ("published", "graph")


@dataclass(frozen=True, eq=False)
class Task:
    """What a method has to learn.

    Args:
        name: name of the experiment, such as "simple-path".
        setting: which variant of the experiment.
        split: how rows are divided.
        data: where the rows come from.
        constraint: the formula that labels (and given inputs) satisfy; it decides whether predictions are consistent.
        circuit: the compiled constraint; a single-circuit layer depends on its variable order.
        smaller: another circuit of the same constraint, for the other methods; None to use the same one.
        x: inputs of the network [rows, inputs].
        y: labels [rows, labels].
        given: inputs of the constraint [rows, given], if it has any.
        parts: row indices for training, validation and test.
    """

    name: str
    setting: str
    split: str
    data: str
    constraint: Formula
    circuit: Circuit
    x: Tensor
    y: Tensor
    given: Tensor | None
    parts: Split
    smaller: Circuit | None = None

    def circuit_for(self, method: str) -> Circuit:
        """The circuit that a method uses."""
        return self.circuit if method == "spl" or self.smaller is None else self.smaller

    def rows(self, part: str) -> Rows:
        """The rows of "train", "valid" or "test"."""
        index = torch.from_numpy(getattr(self.parts, part))
        return self.x[index], self.y[index], None if self.given is None else self.given[index]

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the labels, then of the given inputs."""
        return self.circuit.labels + self.circuit.given

    def obeys(self, predicted: Tensor, given: Tensor | None) -> Tensor:
        """Which predicted rows satisfy the constraint, by evaluating the formula [rows]."""
        return obeys(self.constraint, self.columns, predicted, given)


def divide(dataset: Dataset, split: str) -> Split:
    """Divide the rows into parts for training, validation and test.

    Raises:
        SemprolaError: if the split is unknown.
    """
    if split == "published":
        return published_split(len(dataset))
    if split == "graph":
        return group_split(dataset.groups)
    raise SemprolaError(f"no split {split!r}: choose from {', '.join(SPLITS)}")


def make_task(
    name: str,
    setting: str,
    split: str,
    dataset: Dataset,
    parts: Split,
    constraint: Formula,
    circuit: Circuit,
    y: NDArray[np.float32],
    given: NDArray[np.float32] | None,
) -> Task:
    """Make a task, and check that every label vector in the data satisfies the constraint.

    Raises:
        SemprolaError: if a row of the data violates the constraint.
    """
    inputs = None if given is None else torch.from_numpy(given)
    task = Task(
        name, setting, split, dataset.name, constraint, circuit,
        torch.from_numpy(dataset.x), torch.from_numpy(y), inputs, parts,
    )  # fmt: skip
    wrong = torch.nonzero(~task.obeys(task.y, task.given)).flatten().tolist()
    if wrong:
        raise SemprolaError(f"{dataset.name}: {len(wrong)} rows violate the constraint, the first is row {wrong[0]}")
    return task
