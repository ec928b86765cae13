"""Data sets: inputs, labels and groups of rows that belong together; and how rows are split."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows of inputs and labels.

    Args:
        name: a name for reports.
        x: inputs [rows, inputs].
        y: labels, 0 or 1 [rows, labels].
        groups: one number per row; rows with the same number belong together, such as those of one graph [rows].
    """

    name: str
    x: NDArray[np.float32]
    y: NDArray[np.float32]
    groups: NDArray[np.int64]

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Split:
    """Row indices for training, for validation, and for the final test."""

    train: NDArray[np.int64]
    valid: NDArray[np.int64]
    test: NDArray[np.int64]


def published_split(rows: int) -> Split:
    """The split of the published experiments: 60 / 20 / 20 of one permutation drawn with seed 0.

    Args:
        rows: the number of rows, at least 5.

    Raises:
        ValueError: if there are too few rows to divide.

    Example:
        >>> split = published_split(1610)
        >>> len(split.train), len(split.valid), len(split.test)
        (966, 322, 322)
    """
    if rows < 5:
        raise ValueError(f"a 60 / 20 / 20 split needs at least 5 rows, not {rows}")
    order = np.random.RandomState(0).permutation(rows).astype(np.int64)
    first, second = int(rows * 0.6), int(rows * 0.8)
    return Split(order[:first], order[first:second], order[second:])


def group_split(groups: NDArray[np.int64], seed: int = 0) -> Split:
    """A 60 / 20 / 20 split of the groups, so that no group has rows in two parts.

    Args:
        groups: the group of each row [rows]; at least 5 distinct ones.
        seed: seed of the split.

    Raises:
        ValueError: if there are too few groups to divide.

    Example:
        >>> split = group_split(np.arange(20) // 2)
        >>> len(split.train), len(split.valid), len(split.test)
        (12, 4, 4)
    """
    names = np.unique(groups)
    if len(names) < 5:
        raise ValueError(f"a 60 / 20 / 20 split by group needs at least 5 groups, not {len(names)}")
    order = np.random.RandomState(seed).permutation(names)
    first, second = int(len(names) * 0.6), int(len(names) * 0.8)
    parts = order[:first], order[first:second], order[second:]
    train, valid, test = (np.flatnonzero(np.isin(groups, part)).astype(np.int64) for part in parts)
    return Split(train, valid, test)
