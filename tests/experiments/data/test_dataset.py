"""Splits: sizes, coverage, and what keeps parts apart."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.data import group_split, published_split


def test_published_split_is_the_released_one() -> None:
    """The released code seeds numpy's global generator with 0 and draws one permutation."""
    np.random.seed(0)
    order = np.random.permutation(1610)
    split = published_split(1610)
    assert np.array_equal(np.concatenate([split.train, split.valid, split.test]), order)
    assert (len(split.train), len(split.valid), len(split.test)) == (966, 322, 322)


def test_group_split_keeps_groups_whole() -> None:
    groups = np.random.default_rng(1).integers(50, size=700)
    split = group_split(groups)
    parts = [set(groups[part].tolist()) for part in (split.train, split.valid, split.test)]
    assert sum(len(part) for part in parts) == len(set(groups.tolist()))
    rows = np.concatenate([split.train, split.valid, split.test])
    assert sorted(rows.tolist()) == list(range(700))
    assert not np.array_equal(group_split(groups, seed=1).test, split.test)


def test_too_little_to_split() -> None:
    with pytest.raises(ValueError, match="at least 5 rows, not 4"):
        published_split(4)
    with pytest.raises(ValueError, match="at least 5 groups, not 2"):
        group_split(np.array([0, 1, 1, 0]))
