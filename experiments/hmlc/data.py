"""A data set as a network sees it: inputs and labels for training, choosing and testing, and the hierarchy."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from experiments.data.files import find_file
from experiments.hmlc.arff import HierarchicalArff, read_arff
from experiments.hmlc.features import feature_pipeline, impute_by_file
from experiments.hmlc.sets import HmlcSet, find_set
from semprola.errors import FormatError

_VALID_SHARE = 0.3
"""Of the training rows, what is drawn for validation where no file says which."""

_NOT_SCORED = frozenset({"GO0003674", "GO0005575", "GO0008150"})
"""The tops of the three parts of the Gene Ontology, which every published AU(PRC) leaves out."""


@dataclass(frozen=True, eq=False)
class RawSet:
    """The rows of a set before any choice: files joined, rows divided.

    Args:
        name: of the set.
        graph: the hierarchy, child to parent.
        categories: see `HierarchicalArff`.
        values: attributes of all rows [rows, attributes].
        y: labels of all rows [rows, labels].
        file: which file each row is from [rows].
    """

    name: str
    graph: Any
    categories: tuple[tuple[str, ...] | None, ...]
    values: NDArray[np.float64]
    y: NDArray[np.bool_]
    file: NDArray[np.int64]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return tuple(self.graph)

    @property
    def scored(self) -> NDArray[np.bool_]:
        """Which labels count for AU(PRC) [labels]."""
        return np.array([name not in _NOT_SCORED for name in self.graph])

    def parts(self, seed: int) -> dict[str, NDArray[np.int64]]:
        """Row numbers of train, valid and test; the seed matters only where validation rows have to be drawn."""
        last = int(self.file.max())
        train, test = np.flatnonzero(self.file == 0), np.flatnonzero(self.file == last)
        if last == 2:
            return {"train": train, "valid": np.flatnonzero(self.file == 1), "test": test}
        order = np.random.RandomState(seed).permutation(train)
        count = round(_VALID_SHARE * len(train))
        return {"train": np.sort(order[count:]), "valid": np.sort(order[:count]), "test": test}


@dataclass(frozen=True, eq=False)
class Rows:
    """Inputs [rows, inputs] and labels [rows, labels] for a network."""

    x: Tensor
    y: Tensor

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Phase:
    """One training: the rows to learn from, and those to look at; inputs are scaled by the former alone."""

    train: Rows
    valid: Rows
    test: Rows


@lru_cache(maxsize=16)
def load_raw(name: str, data: str | None = None, download: bool = True) -> RawSet:
    """Read the files of a set, from a folder or downloaded; see `experiments.data.files.find_file`.

    Raises:
        SemprolaError: there is no such set, or a file is neither there nor to be had.
        FormatError: the files do not belong together.
    """
    entry: HmlcSet = find_set(name)
    paths = [find_file(file, data, download=download) for file in entry.files]
    return join_files(name, [read_arff(path) for path in paths], paths)


def join_files(name: str, files: list[HierarchicalArff], paths: list[Path]) -> RawSet:
    """The rows of train, (valid) and test files as one set.

    Raises:
        FormatError: their attributes or hierarchies differ.
    """
    first = files[0]
    for other, path in zip(files[1:], paths[1:], strict=True):
        if other.categories != first.categories:
            raise FormatError(f"{path}: other attributes than in {paths[0].name}")
        if list(other.graph) != list(first.graph) or set(other.graph.edges) != set(first.graph.edges):
            raise FormatError(f"{path}: another hierarchy than in {paths[0].name}")
    sizes = [len(file) for file in files]
    return RawSet(
        name,
        first.graph,
        first.categories,
        np.concatenate([file.values for file in files]),
        np.concatenate([file.y for file in files]),
        np.repeat(np.arange(len(files)), sizes),
    )


def phase(raw: RawSet, seed: int, *, joined: bool = False, impute: str = "train") -> Phase:
    """The rows of a training, as tensors.

    Args:
        raw: the set.
        seed: of the draw of validation rows, where there is one.
        joined: whether to train on train and valid together, as for the final model.
        impute: "train", or "file" for what the released code does (see `impute_by_file`).

    Raises:
        ValueError: there is no such way to impute.
    """
    if impute not in ("train", "file"):
        raise ValueError(f"impute must be 'train' or 'file', not {impute!r}")
    parts = raw.parts(seed)
    if joined:
        parts["train"] = np.concatenate([parts["train"], parts["valid"]])
    values = raw.values
    if impute == "file":
        values = values.copy()
        for number in range(int(raw.file.max()) + 1):
            values[raw.file == number] = impute_by_file(values[raw.file == number], raw.categories)
    pipeline = feature_pipeline(raw.categories).fit(values[parts["train"]])

    def rows(part: str) -> Rows:
        x = pipeline.transform(values[parts[part]])
        return Rows(torch.tensor(x, dtype=torch.float32), torch.tensor(raw.y[parts[part]], dtype=torch.float32))

    return Phase(rows("train"), rows("valid"), rows("test"))


def statistics(raw: RawSet) -> dict[str, Any]:
    """Facts about a set, to be compared with published ones."""
    _, counts = np.unique(raw.y, axis=0, return_counts=True)
    below = {parent for _, parent in raw.graph.edges}
    return {
        "rows": np.bincount(raw.file).tolist(),
        "raw_features": len(raw.categories),
        "nominal": sum(names is not None for names in raw.categories),
        "onehot_features": sum(1 if names is None else len(names) for names in raw.categories),
        "labels": len(raw.graph),
        "edges": raw.graph.number_of_edges(),
        "roots": sum(raw.graph.out_degree(name) == 0 for name in raw.graph),
        "leaves": sum(name not in below for name in raw.graph),
        "depth": nx.dag_longest_path_length(raw.graph) + 1,
        "label_card": round(float(raw.y.sum(1).mean()), 3),
        "missing": round(float(np.isnan(raw.values).mean()), 4),
        "distinct_labelsets": len(counts),
    }
