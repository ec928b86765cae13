"""Small made-up sets with a hierarchy that inputs tell about."""

from __future__ import annotations

import numpy as np

from experiments.hmlc.arff import hierarchy_graph
from experiments.hmlc.data import RawSet

LABELS = ["a", "a/b", "a/c", "d", "d/e", "d/e/f"]


def made_set(name: str = "enron", files: int = 3, rows: int = 60, seed: int = 0) -> RawSet:
    """A set whose labels follow from the signs of three of its four attributes; no row is empty."""
    random = np.random.RandomState(seed)
    graph = hierarchy_graph(LABELS)
    values = random.randn(files * rows, 5)
    values[:, 4] = random.randint(0, 2, len(values))
    signs = values[:, :3] > 0
    on = {"a": ~signs[:, 0] | ~signs[:, 1]}
    on["a/b"] = on["a"] & signs[:, 2]
    on["a/c"] = on["a"] & ~signs[:, 1]
    on["d"] = ~on["a"] | signs[:, 1]
    on["d/e"] = on["d"] & signs[:, 2]
    on["d/e/f"] = on["d/e"] & signs[:, 0]
    values[::11, 3] = np.nan
    y = np.stack([on[label] for label in graph], axis=1)
    file = np.repeat(np.arange(files), rows)
    return RawSet(name, graph, (None, None, None, None, ("no", "yes")), values, y, file)
