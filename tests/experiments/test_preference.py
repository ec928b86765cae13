"""The preference task in its variants."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiments.methods import ModelSettings
from experiments.preference import preference_task
from experiments.runs import run
from experiments.trainer import TrainSettings
from semprola.errors import SemprolaError


def test_inputs_of_the_constraint_change_nothing() -> None:
    training = TrainSettings(steps=4, batch_size=64, evaluate_every=2)
    figures = []
    for setting in ("paper", "given"):
        task = preference_task(setting)
        assert task.y.shape[1] == 16
        result, _ = run(task, "product-spl", ModelSettings(hidden=(8,)), training, quiet=True)
        figures.append((result["test"]["exact"], result["test"]["hamming"], result["test"]["consistent"]))
    assert figures[0] == figures[1]
    assert figures[0][2] == 100.0


def test_the_published_rows(shared_data: Path) -> None:
    once = preference_task(source="file", data=shared_data)
    assert [len(once.rows(part)[0]) for part in ("train", "valid", "test")] == [2955, 985, 986]
    people = preference_task(source="file", data=shared_data, multiplicity=True, split="graph")
    assert len(people.x) == 5000
    assert sum(len(people.rows(part)[0]) for part in ("train", "valid", "test")) == 5000


def test_unknown_setting() -> None:
    with pytest.raises(SemprolaError, match="no setting 'hard': choose from paper, given"):
        preference_task("hard")
