"""Jobs and searches: done once, in any number of processes, with the same results."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from experiments import jobs as jobs_module
from experiments.jobs import Job, TaskSettings, execute, execute_all
from experiments.methods import METHODS, ModelSettings
from experiments.search import _job, search
from experiments.settings import EXPERIMENTS, NETS, best_known, candidates, default_net, starting_point
from experiments.trainer import TrainSettings
from semprola.errors import FormatError, SemprolaError

_TASK = TaskSettings("preference")
_MODEL = ModelSettings(hidden=(8,), activation="relu")
_TRAINING = TrainSettings(steps=6, batch_size=64, evaluate_every=3)


def _without_times(result: dict[str, Any]) -> dict[str, Any]:
    return {**result, "history": {**result["history"], "seconds": 0}}


def test_a_job_is_done_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job = Job(_TASK, "spl", _MODEL, _TRAINING, 0)
    first = execute(job, tmp_path)
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]
    monkeypatch.setattr(jobs_module, "run", None)
    assert execute(job, tmp_path) == first


def test_a_damaged_result_is_refused(tmp_path: Path) -> None:
    job = Job(_TASK, "spl", _MODEL, _TRAINING, 0)
    (tmp_path / f"spl-seed0-{job.key}.json").write_text("{")
    with pytest.raises(FormatError, match="cannot be read as JSON"):
        execute(job, tmp_path)


def test_an_interrupted_job_is_resumed(tmp_path: Path) -> None:
    job = Job(_TASK, "spl", _MODEL, _TRAINING, 0)
    expected = execute(job, tmp_path / "whole")
    checkpoint = tmp_path / "part" / f"spl-seed0-{job.key}.pt"
    jobs_module.run(
        _TASK.task(), "spl", _MODEL, _TRAINING, 0, checkpoint=checkpoint, quiet=True, stop=lambda step: step >= 3
    )
    assert checkpoint.is_file()
    assert _without_times(execute(job, tmp_path / "part")) == _without_times(expected)
    assert not checkpoint.exists()


def test_keys_tell_jobs_apart_and_ignore_the_folder() -> None:
    job = Job(_TASK, "spl", _MODEL, _TRAINING, 0)
    others = [
        replace(job, seed=1),
        replace(job, method="fil"),
        replace(job, model=replace(_MODEL, replicas=2)),
        replace(job, training=replace(_TRAINING, lr=0.5)),
        replace(job, task=replace(_TASK, split="graph")),
    ]
    assert len({job.key, *(other.key for other in others)}) == 6
    assert replace(job, task=replace(_TASK, data="elsewhere")).key == job.key
    assert _job(asdict(job)) == job


def test_processes_change_nothing(tmp_path: Path) -> None:
    jobs = [Job(_TASK, method, _MODEL, _TRAINING, seed) for method in ("fil", "spl") for seed in (0, 1)]
    alone = execute_all(jobs, tmp_path / "alone", quiet=True, command="x")
    seen: list[Job] = []
    both = execute_all(
        jobs, tmp_path / "both", processes=2, quiet=True, command="x", done=lambda job, _: seen.append(job)
    )
    assert [_without_times(result) for result in alone] == [_without_times(result) for result in both]
    assert set(seen) == set(jobs)


def test_a_search_keeps_the_best_on_validation(tmp_path: Path) -> None:
    tried = [(_MODEL, replace(_TRAINING, lr=rate)) for rate in (0.0, 1e-2, 1e-3)]
    best, seen = search(_TASK, "spl", tried, tmp_path, seeds=2, quiet=True)
    assert [entry["settings"] for entry in seen] == [{"lr": 0.0}, {"lr": 1e-2}, {"lr": 1e-3}]
    assert all(entry["seeds"] == 2 for entry in seen)
    scores = []
    for (model, training), entry in zip(tried, seen, strict=True):
        runs = [execute(Job(_TASK, "spl", model, training, seed), tmp_path)["valid"] for seed in (0, 1)]
        for name, value in entry["valid"].items():
            assert value == pytest.approx((runs[0][name] + runs[1][name]) / 2)
        scores.append((entry["valid"]["exact"], -entry["valid"]["nll"]))
    assert best == tried[scores.index(max(scores))]
    assert [entry["chosen"] for entry in seen].index(True) == scores.index(max(scores))
    likely = [(model, replace(training, choose="likelihood")) for model, training in tried]
    best, seen = search(_TASK, "spl", likely, tmp_path, quiet=True)
    losses = [entry["valid"]["nll"] for entry in seen]
    assert best == likely[losses.index(min(losses))]
    with pytest.raises(SemprolaError, match="cannot be compared: exact, likelihood"):
        search(_TASK, "spl", [tried[0], likely[0]], tmp_path)
    with pytest.raises(SemprolaError, match="at least one candidate"):
        search(_TASK, "spl", [], tmp_path)
    with pytest.raises(SemprolaError, match="at least one seed, not 0"):
        search(_TASK, "spl", tried, tmp_path, seeds=0)


def test_search_without_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    with pytest.raises(SemprolaError, match=r"needs Ray Tune: pip install 'semprola\[tune\]'"):
        search(_TASK, "spl", [(_MODEL, _TRAINING)], tmp_path, ray=True)


@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="needs Ray Tune (extra `tune`)")
@pytest.mark.filterwarnings("ignore")
def test_search_with_a_local_ray(tmp_path: Path) -> None:
    tried = [(_MODEL, replace(_TRAINING, lr=rate)) for rate in (0.0, 1e-2)]
    here = search(_TASK, "spl", tried, tmp_path / "here", quiet=True, command="x")
    assert search(_TASK, "spl", tried, tmp_path / "there", ray=True, command="x") == here


def test_grids_and_best_known_settings() -> None:
    for experiment in EXPERIMENTS:
        for net in list(NETS)[: None if experiment == "preference" else 3]:
            for method in METHODS:
                for grid in ("small", "public", "weights"):
                    small = candidates(experiment, net, method, grid)
                    assert 1 <= len(small) == len(set(small))
                for grid in ("released", "published"):
                    tried = candidates(experiment, net, method, grid)
                    assert {training.lr for _, training in tried} == {1e-3, 5e-3, 1e-4, 5e-4}
                for setting in ("paper", "given"):
                    model, training = best_known(experiment, setting, net, method)
                    assert model.hidden
                    assert training.steps <= 20_000
    spl = candidates("simple-path", "paper", "spl", "published")
    assert {(model.replicas, model.units) for model, _ in spl} == {(m, k) for m in (2, 4, 8) for k in (2, 4, 8)}
    spl = candidates("simple-path", "paper", "spl", "released")
    assert {(model.replicas, model.units, model.gate, training.steps) for model, training in spl} == {
        (m, 1, (), 2000) for m in (2, 4, 8)
    }


def test_the_network_if_none_is_named() -> None:
    assert {experiment: default_net(experiment) for experiment in EXPERIMENTS} == {
        "simple-path": "scaled",
        "preference": "paper",
    }


def test_unknown_names() -> None:
    with pytest.raises(SemprolaError, match="no experiment 'chess': choose from simple-path, preference"):
        starting_point("chess", "paper")
    with pytest.raises(SemprolaError, match="no network 'deep': choose from paper, scaled, wide"):
        starting_point("preference", "deep")
    with pytest.raises(SemprolaError, match="no method 'svm'"):
        candidates("preference", "paper", "svm")
    with pytest.raises(SemprolaError, match="no grid 'huge'"):
        candidates("preference", "paper", "spl", "huge")
    with pytest.raises(SemprolaError, match="no experiment 'chess'"):
        TaskSettings("chess").task()
    with pytest.raises(SemprolaError, match="processes must be at least 1, not 0"):
        execute_all([], ".", processes=0)
