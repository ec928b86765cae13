"""Rows, splits and inputs: what is fitted on training rows, and on nothing else."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.hmlc.arff import HierarchicalArff, hierarchy_graph
from experiments.hmlc.data import RawSet, join_files, phase
from semprola.errors import FormatError


def raw_set(files: int = 3, rows: int = 20) -> RawSet:
    graph = hierarchy_graph(["a", "a/b", "c"])
    random = np.random.RandomState(0)
    values = random.randn(files * rows, 3)
    values[:, 2] = random.randint(0, 2, files * rows)
    values[::7, 0] = np.nan
    values[::5, 2] = np.nan
    y = random.rand(files * rows, 3) < 0.5
    y[:, 0] |= y[:, 2]
    file = np.repeat(np.arange(files), rows)
    return RawSet("made", graph, (None, None, ("no", "yes")), values, y, file)


def test_files_give_the_parts() -> None:
    parts = raw_set().parts(5)
    assert [parts[name].tolist() for name in ("train", "valid", "test")] == [
        list(range(20)), list(range(20, 40)), list(range(40, 60)),
    ]  # fmt: skip


def test_validation_rows_are_drawn_by_seed() -> None:
    raw = raw_set(files=2)
    first, again, other = raw.parts(0), raw.parts(0), raw.parts(1)
    assert len(first["valid"]) == 6
    assert sorted([*first["train"], *first["valid"]]) == list(range(20))
    assert first["test"].tolist() == list(range(20, 40))
    assert np.array_equal(first["valid"], again["valid"])
    assert not np.array_equal(first["valid"], other["valid"])


def test_inputs_are_scaled_by_training_rows_alone() -> None:
    raw = raw_set()
    before = phase(raw, 0)
    raw.values[40:, :2] += 100  # test rows
    after = phase(raw, 0)
    assert torch.equal(before.train.x, after.train.x)
    assert torch.equal(before.valid.x, after.valid.x)
    assert bool((after.test.x[:, 1] > before.test.x[:, 1]).all())
    assert torch.allclose(after.train.x.mean(0), torch.zeros(4), atol=1e-6)
    assert torch.allclose(after.train.x.std(0, correction=0), torch.ones(4), atol=1e-5)


def test_missing_values() -> None:
    raw = raw_set()
    mean = np.nanmean(raw.values[:20, 0])
    x = phase(raw, 0).test.x
    missing = np.flatnonzero(np.isnan(raw.values[40:, 0]))
    filled = np.where(np.isnan(raw.values[:20, 0]), mean, raw.values[:20, 0])
    assert np.allclose(x[missing, 0], (mean - filled.mean()) / filled.std(), atol=1e-5)
    # a category that is missing is zero in both columns before scaling: the same in all such rows
    gone = np.flatnonzero(np.isnan(raw.values[40:, 2]))
    assert np.allclose(x[gone][:, 2:], x[gone][:1, 2:])


def test_the_final_training_uses_train_and_valid() -> None:
    joined = phase(raw_set(), 0, joined=True)
    assert len(joined.train) == 40
    assert torch.allclose(joined.train.x.mean(0), torch.zeros(4), atol=1e-6)


def test_imputation_of_the_released_code_needs_a_flag() -> None:
    raw = raw_set()
    own = phase(raw, 0, impute="file")
    missing = np.flatnonzero(np.isnan(raw.values[40:, 0]))
    mean = np.nanmean(raw.values[40:, 0])
    present = np.flatnonzero(~np.isnan(raw.values[40:, 0]))[0]
    scale = (own.test.x[present, 0] - own.test.x[missing[0], 0]) / (raw.values[40 + present, 0] - mean)
    assert np.isfinite(float(scale))
    assert not torch.equal(own.test.x, phase(raw, 0).test.x)
    with pytest.raises(ValueError, match="impute"):
        phase(raw, 0, impute="zero")


def test_files_that_do_not_belong_together() -> None:
    def file(labels: list[str], categories: tuple[tuple[str, ...] | None, ...] = (None,)) -> HierarchicalArff:
        return HierarchicalArff(("x",), categories, np.zeros((1, 1)), hierarchy_graph(labels), np.ones((1, 1), bool))

    paths = [Path("one.arff"), Path("two.arff")]
    with pytest.raises(FormatError, match=r"two.arff: another hierarchy than in one.arff"):
        join_files("x", [file(["a"]), file(["b"])], paths)
    with pytest.raises(FormatError, match=r"two.arff: other attributes"):
        join_files("x", [file(["a"]), file(["a"], (("no", "yes"),))], paths)
