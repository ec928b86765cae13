"""The campaign: its plans, and that runs and searches are taken over from a results file."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments import reproduce as module
from experiments.campaign import Comparison, Hierarchy, campaign, steps
from experiments.jobs import TaskSettings
from experiments.methods import ModelSettings
from experiments.provenance import read_json, write_json
from experiments.reproduce import Plan, reproduce
from experiments.restore import collect, restore
from experiments.settings import candidates
from experiments.trainer import TrainSettings
from semprola.errors import SemprolaError


def test_every_step_is_a_command_and_counts_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    names = [step.name for step in steps()]
    assert len(set(names)) == len(names)
    assert all(name.startswith("python -m experiments ") for name in names)
    plan = Plan(TaskSettings(setting="ends", source="file"), grid="public", methods=("fil", "spl"), seeds=3)
    assert Comparison(plan).missing() == 6
    write_json(Path("results") / f"{plan.name}.json", {"results": [{"method": "fil", "seed": 2}]})
    assert Comparison(plan).missing() == 5
    assert Hierarchy("enron", "hierarchy").missing() == 20


def test_a_list_does_no_work(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("experiments.campaign.reproduce", lambda *arguments: pytest.fail("it ran"))
    campaign(show=True)
    assert len(capsys.readouterr().out.splitlines()) == len(steps())


def test_a_plan_goes_on_from_a_results_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = [
        (ModelSettings(hidden=(3,), gate=(2,), dropout=dropout), TrainSettings(steps=2, evaluate_every=1))
        for dropout in (0.0, 0.1)
    ]
    monkeypatch.setattr(module, "candidates", lambda *words: tried)
    plan = Plan(TaskSettings("preference"), methods=("fil",), seeds=1, quiet=True)
    first = reproduce(plan, tmp_path / "a")
    more = replace(plan, seeds=2)
    assert collect(more, tmp_path / "a") == {**first, "command": more.command}, "the other seed is still to do"
    (worse,) = (path for path in (tmp_path / "a/runs" / plan.name).iterdir() if read_json(path) not in first["results"])
    worse.unlink()
    assert collect(more, tmp_path / "a")["results"] == [], "the search is not finished"
    assert restore(more, first, tmp_path / "b") == 1
    assert restore(more, first, tmp_path / "b") == 0
    kept: list[int] = []
    second = reproduce(
        more, tmp_path / "b", first, lambda: kept.append(len(collect(more, tmp_path / "b", first)["results"]))
    )
    assert kept == [1, 2], "every run is kept as soon as it is done"
    assert second["search"] == first["search"]
    assert second["results"][0] == first["results"][0]
    done = {path.name for path in (tmp_path / "b/runs" / plan.name).iterdir()}
    assert len(done) == 2, "the candidate that was not chosen is not trained again"
    assert {result["seed"] for result in second["results"]} == {0, 1}
    # with other candidates, the search is made again
    monkeypatch.setattr(module, "candidates", lambda *words: [tried[0], (tried[0][0], replace(tried[0][1], lr=0.1))])
    assert "lr" in reproduce(more, tmp_path / "b", first)["search"][0]["settings"]


def test_networks_of_preferences(tmp_path: Path) -> None:
    (text, _), *_ = candidates("preference", "text", "fil", "public")
    (released, training), *_ = candidates("preference", "released", "semantic-loss", "public")
    assert (text.hidden, text.features) == ((50, 50, 50), None)
    assert (released.hidden, released.features) == ((25, 25, 25), 50)
    assert (released.semantic_weight / 16, training.lr) == (0.25, 1e-3)
    with pytest.raises(SemprolaError, match="'text' is for preferences"):
        candidates("simple-path", "text", "fil")
    with pytest.raises(SemprolaError, match="for one circuit"):
        candidates("simple-path", "scaled", "fil", "sizes")


def test_public_settings_of_simple_paths() -> None:
    found: dict[str, Any] = {
        method: candidates("simple-path", "paper", method, "public")[0] for method in ("semantic-loss", "nesy-entropy")
    }
    for model, training in found.values():
        # of a sum over 24 labels; the public code has 0.5 and 0.1 of a mean over them
        assert (model.semantic_weight / 24, round(model.entropy_weight / 24, 9), model.start) == (0.5, 0.1, "torch")
        assert (training.lr, training.steps, training.batch_size, training.patience) == (1e-3, 20_000, None, None)
