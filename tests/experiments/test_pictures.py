"""Pictures: what goes into them, and that they are made."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from experiments import pictures
from experiments.data import generate_grids
from semprola.training.metrics import reliability

pytest.importorskip("matplotlib")


def test_pooled_reliability_is_that_of_all_rows() -> None:
    random = np.random.default_rng(0)
    stated, right = random.random(600), random.random(600) < 0.5
    parts = [reliability(stated[i::3], right[i::3]) for i in range(3)]
    whole = reliability(stated, right)
    for found, name in zip(pictures._pooled(parts), ("confidence", "accuracy", "rows"), strict=True):
        assert np.allclose(found, whole[name])


def test_broken_and_valid_paths_have_their_colours() -> None:
    data = generate_grids(graphs=1, seed=0)
    x, y = data.x[:2], data.y[:2]
    figure = pictures.gallery(x, {"true": (y, np.ones(2, bool)), "other": (y, np.array([True, False]))}, "title")
    colours = [{line.get_color() for line in axes.lines} for axes in figure.axes]
    assert [pictures._VALID in found for found in colours] == [True, True, True, False]
    assert [pictures._BROKEN in found for found in colours] == [False, False, False, True]
    missing = x.copy()
    missing[:, 16:] -= y * missing[:, 16:]
    elsewhere = pictures.gallery(missing, {"other": (y, np.ones(2, bool))})
    assert all(pictures._ELSEWHERE in {line.get_color() for line in axes.lines} for axes in elsewhere.axes)
    empty = pictures.gallery(x, {"none": (np.zeros_like(y), np.zeros(2, bool))})
    assert [text.get_text() for axes in empty.axes for text in axes.texts] == ["no edge", "no edge"]


def test_files(tmp_path: Path) -> None:
    history = {"step": [1, 2], "valid_exact": [0.0, 50.0]}
    results = [{"method": method, "history": history} for method in ("fil", "spl", "spl")]
    path = pictures.save(pictures.learning_curves(results, "title"), tmp_path / "new" / "curves.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    labels = [text.get_text() for text in pictures.learning_curves(results).axes[0].get_legend().get_texts()]
    assert labels == ["FIL", "SPL"]
