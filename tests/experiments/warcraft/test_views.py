"""Views of maps, eight neighbours, larger grids, and the choice of settings."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.provenance import write_json
from experiments.warcraft import app, larger, report, shares, tuning
from experiments.warcraft.dataset import generated_maps
from experiments.warcraft.models import ModelSettings, PathModel
from experiments.warcraft.paths import distances, least_cost_paths, path_costs, tenths
from experiments.warcraft.runs import Task, path_constraint
from experiments.warcraft.score import is_path, scores
from experiments.warcraft.solver import cheapest_cells
from experiments.warcraft.views import VIEWS, edge_order, random_views, turned, with_view
from semprola.errors import FormatError, SemprolaError

SIZES = {"train": 16, "val": 8, "test": 8}


def test_every_view_is_its_own_inverse() -> None:
    square = torch.arange(2 * 5 * 5).reshape(2, 5, 5)
    for view in range(VIEWS):
        assert torch.equal(turned(turned(square, view), view), square)
        order = edge_order(5, view)
        assert torch.equal(order[order], torch.arange(len(order)))
    assert len({tuple(edge_order(5, view).tolist()) for view in range(VIEWS)}) == VIEWS


def test_a_path_in_a_view_is_a_path_of_the_same_cost() -> None:
    costs = np.random.default_rng(0).choice([0.8, 5.3, 9.2], (6, 12, 12))
    labels = least_cost_paths(costs)
    for view in range(VIEWS):
        seen = labels[:, edge_order(12, view).numpy()]
        there = turned(torch.from_numpy(costs), view).numpy()
        assert is_path(seen, 12).all()
        assert np.allclose(path_costs(seen, there), path_costs(labels, costs))
        assert np.array_equal(distances(there)[:, 0, 0], distances(costs)[:, 0, 0])


def test_random_views_keep_pictures_and_paths_together(tmp_path: Path) -> None:
    maps = generated_maps("train", sizes=SIZES, cache=tmp_path)
    x, y = torch.from_numpy(np.array(maps.pictures)).flatten(1), torch.from_numpy(maps.labels)
    torch.manual_seed(0)
    seen, edges = random_views(x, y, 12)
    assert seen[:, -1].unique().tolist() == list(range(VIEWS))
    for row in range(len(x)):
        view = int(seen[row, -1])
        back = turned(seen[row : row + 1, :-1].reshape(1, 96, 96, 3), view).flatten(1)
        assert torch.equal(back, x[row : row + 1])
        assert torch.equal(edges[row, edge_order(12, view)], y[row])
    assert torch.equal(with_view(x)[:, -1], torch.zeros(len(x), dtype=x.dtype))


def test_a_prediction_uses_the_map_as_it_is(tmp_path: Path) -> None:
    maps = generated_maps("val", sizes=SIZES, cache=tmp_path)
    model = PathModel(ModelSettings("product-spl", channels=4, blocks=1), path_constraint(12, 22)).eval()
    x = torch.from_numpy(np.array(maps.pictures)).flatten(1)
    assert torch.equal(model(x).mode, model.head(with_view(x)).mode)
    assert not torch.equal(model(x).logits, model.head(with_view(x, 1)).logits)


def test_eight_neighbours(tmp_path: Path) -> None:
    maps = generated_maps("test", sizes=SIZES, cache=tmp_path, neighbours=8)
    assert maps.labels.shape[1] == 506
    own = scores(maps.labels, maps.labels, maps.costs, 30)
    assert own["exact"] == own["optimal"] == own["consistent"] == 100
    cells = cheapest_cells(maps.costs.reshape(len(maps), -1).astype(float), 8)
    spent = (cells.reshape(maps.costs.shape) * tenths(maps.costs)).sum((1, 2)) / 10
    assert np.allclose(spent, path_costs(maps.labels, maps.costs))
    assert path_constraint(4, 6, 8).model_count() == 425
    with pytest.raises(SemprolaError, match="eight neighbours"):
        PathModel(ModelSettings("fil", "grid"), path_constraint(4, 3, 8), 4, 8)


def test_settings_are_chosen_on_validation_maps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [generated_maps(part, sizes=SIZES, cache=tmp_path / "maps") for part in SIZES]
    task = Task(*parts, path_constraint(12, 24), 24, "maps")
    monkeypatch.setattr(tuning, "EPOCHS", 1)
    training = app.TRAINING["costs"]
    entry = tuning.tune(task, "costs", "perturbed", training, tmp_path)
    assert len(entry["tried"]) == 5
    best = max(entry["tried"], key=lambda tried: tried["optimal"])
    settings, chosen = tuning.chosen_settings(tmp_path, ModelSettings("perturbed", "costs"), training)
    assert chosen == replace(training, **best["changes"]["training"])
    assert settings.sigma == best["changes"]["model"].get("sigma", 0.5)
    assert tuning.tuned_methods(("fil", "spl", "hmm", "product-spl")) == ["fil", "product-spl"]


def test_shares_of_a_step(tmp_path: Path) -> None:
    result = shares.measure_shares({"costs": "float32"}, shares.MODELS[-1:], batch=4, rounds=1, cache=tmp_path)
    (row,) = result["rows"]
    assert row["net"] == "costs"
    assert 0 < row["layer"] < row["step"]
    assert "| cost net, float32 | SPL, two circuits, m = 1 | " in shares.shares_markdown(result)


def test_larger_grids_and_the_page(tmp_path: Path) -> None:
    result = larger.measure_grids({12: (0, 2)}, tmp_path / "maps")
    assert [row["models"] for row in result["rows"]] == ["705432", "11648672"]
    assert result["rows"][0]["outside"] >= result["rows"][1]["outside"]
    write_json(tmp_path / report.GRIDS, result)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n", encoding="utf-8")
    report.write_report(tmp_path, page)
    text = page.read_text(encoding="utf-8")
    assert "| 12 × 12 | ≤ 24 | 1.2e7 |" in text
    assert "old" not in text
    assert text.endswith("after\n")
    page.write_text("nothing\n", encoding="utf-8")
    with pytest.raises(FormatError, match="expected a part"):
        report.write_report(tmp_path, page)
