"""Networks, methods and a tiny campaign from one end to the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from experiments.warcraft import app, gallery, solver
from experiments.warcraft.dataset import generated_maps
from experiments.warcraft.models import METHODS, ModelSettings, PathModel
from experiments.warcraft.nets import CostNet, GridNet, ResNet18
from experiments.warcraft.paths import distances, edge_ends, least_cost_paths, tenths, touched_cells
from experiments.warcraft.runs import path_constraint
from experiments.warcraft.tables import markdown
from semprola.errors import SemprolaError

SIZES = {"train": 24, "val": 6, "test": 6}


def pictures(rows: int = 3) -> torch.Tensor:
    return torch.randint(0, 256, (rows, 96 * 96 * 3), dtype=torch.uint8)


def test_the_constraint_has_the_published_number_of_paths() -> None:
    assert path_constraint(12, 28).model_count() == 829_808_328


@pytest.mark.parametrize(("net", "outputs"), [(ResNet18(12, 30), 30), (GridNet(12, 2, 8, 1), 530), (CostNet(12), 264)])
def test_networks_are_gates(net: torch.nn.Module, outputs: int) -> None:
    net.eval()
    x = pictures()
    with torch.no_grad():
        assert net(x).shape == (3, outputs)
        assert torch.allclose(net(x[:1])[0], net(x[0]), atol=1e-5)


def test_an_edge_of_the_cost_net_scores_half_the_sum_of_its_cells() -> None:
    net = CostNet(12, biased=False).eval()
    with torch.no_grad():
        costs, scores = net.costs(pictures()), net(pictures())
        assert scores.shape == (3, 264)
        x = pictures(2)
        costs, scores = net.costs(x), net(x)
    ends = edge_ends(12)
    assert torch.allclose(scores, -0.5 * (costs[:, ends[:, 0]] + costs[:, ends[:, 1]]))


def test_an_edge_of_the_grid_net_sees_its_own_cells() -> None:
    """Without residual blocks, changing one cell changes the scores of its own edges and no others."""
    net = GridNet(12, 1, 8, 0).eval()
    x = pictures(1)
    changed = x.reshape(96, 96, 3).clone()
    changed[16:24, 40:48] = 255 - changed[16:24, 40:48]
    with torch.no_grad():
        moved = (net(x) != net(changed.reshape(1, -1)))[0].numpy()
    assert {tuple(edge) for edge in edge_ends(12)[moved]} == {(28, 29), (29, 30), (17, 29), (29, 41)}


def test_the_solver_finds_least_costs() -> None:
    random = np.random.default_rng(0)
    costs = random.choice([0.8, 1.2, 5.3, 7.7], (6, 12, 12))
    cells = solver.cheapest_cells(costs.reshape(6, -1)).reshape(6, 12, 12)
    assert np.array_equal((cells * tenths(costs)).sum((1, 2)), distances(costs)[:, 0, 0])


def test_the_perturbed_gradient_is_target_less_answer() -> None:
    costs = torch.rand(2, 144, requires_grad=True)
    target = torch.from_numpy(touched_cells(least_cost_paths(np.ones((2, 12, 12))), 12)).reshape(2, -1).float()
    solver.perturbed_loss(costs, target, 0.0, 1).backward()
    answer = torch.from_numpy(solver.cheapest_cells(costs.detach().double().numpy()))
    assert torch.allclose(costs.grad * 2, target - answer)  # type: ignore[operator]


def test_methods_that_do_not_fit_a_network_are_refused() -> None:
    circuit = path_constraint(12, 22)
    for settings, message in (
        (ModelSettings("svm"), "no method 'svm'"),
        (ModelSettings("fil", "vgg"), "no network 'vgg'"),
        (ModelSettings("spl", "costs"), "one score per edge"),
        (ModelSettings("perturbed", "grid"), "needs predicted costs"),
    ):
        with pytest.raises(SemprolaError, match=message):
            PathModel(settings, circuit)


def test_a_campaign_resumes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app, "PARTS", SIZES)
    words = ["--cache", str(tmp_path / "maps"), "--out", str(tmp_path / "out"), "--epochs", "1", "--longest", "24"]
    words += ["--checkpoints", str(tmp_path / "checkpoints")]
    assert app.main([*words, "--net", "grid", "--methods", "fil,product-spl,spl", "--components", "2"]) == 0
    assert app.main([*words, "--net", "costs"]) == 0
    capsys.readouterr()
    assert app.main([*words, "--net", "costs"]) == 0
    assert "costs-perturbed-seed0:" not in capsys.readouterr().out, "what is done is not run again"
    results = app.results_in(tmp_path / "out")
    assert len(results) == 5
    for result in results:
        if result["model"]["method"] != "fil" and result["model"]["method"] != "perturbed":
            assert result["test"]["consistent"] == 100.0
        if result["model"]["net"] == "costs":
            assert -1 <= result["test"]["rank_correlation"] <= 1
    assert markdown(results, "grid").count("\n") == 5
    assert "cost rank corr." in markdown(results, "costs")
    assert markdown(results, "resnet18") == ""
    assert all(len(line) <= 80 for line in _printed(results, capsys).splitlines())


def test_the_gallery(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    maps = generated_maps("val", sizes=SIZES, cache=tmp_path)
    broken = np.ones_like(maps.labels)
    figure = gallery.gallery(maps.pictures[:2], maps.costs[:2], maps.labels[:2], {"a": maps.labels, "b": broken})
    assert [axis.get_xlabel() for axis in figure.axes[3:4]] == ["no path"]
    figure.savefig(tmp_path / "x.png")
    gallery.unsure(maps.pictures[0], maps.labels[0] * 0.5, maps.labels[0], [maps.labels[0]] * 5, maps.labels[0])


def test_the_gallery_of_models(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    maps = generated_maps("val", sizes=SIZES, cache=tmp_path)
    circuit = path_constraint(12, 24)
    small = {"channels": 4, "blocks": 1}
    models = {name: PathModel(ModelSettings(name, **small), circuit) for name in ("fil", "product-spl")}  # type: ignore[arg-type]
    paths = gallery.draw_gallery(maps, models, tmp_path / "images")
    assert all(path.read_bytes()[1:4] == b"PNG" for path in paths)


def test_every_method_has_a_title() -> None:
    assert set(app.DEFAULT_METHODS["grid"]) <= set(METHODS)


def _printed(results: list[dict[str, object]], capsys: pytest.CaptureFixture[str]) -> str:
    from experiments.warcraft.tables import print_summary

    print_summary(results)
    return capsys.readouterr().out
