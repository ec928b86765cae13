"""The simple-path task, a run of it, and the demonstration."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import pytest
import torch

from experiments import demo
from experiments.methods import ModelSettings
from experiments.runs import run
from experiments.simple_path import simple_path_task
from experiments.trainer import TrainSettings
from semprola.errors import SemprolaError


def test_settings_of_the_task() -> None:
    paper, given = simple_path_task("paper"), simple_path_task("given")
    assert paper.y.shape[1] == 40
    assert paper.circuit.model_count() == 14_248
    assert given.y.shape[1] == 24
    assert given.given is not None
    assert torch.equal(given.given, given.x)
    assert torch.equal(paper.y[:, :24], given.y)
    assert torch.equal(paper.y[:, 24:], paper.x[:, :16])
    ends = simple_path_task("ends")
    assert ends.given is not None
    assert torch.equal(ends.given, ends.x[:, :16])
    assert torch.equal(ends.y, given.y)
    wrong = ends.given.roll(1, 1)
    assert ends.obeys(ends.y, ends.given).all()
    assert not ends.obeys(ends.y, wrong).any()
    assert ends.circuit.given == tuple(f"end {node}" for node in range(16))
    assert ends.circuit.model_count() == 14_248, "one for each path, whose end points follow from it"
    other = simple_path_task("ends", ends="first")
    assert other.circuit.model_count() == 14_248
    assert other.circuit.num_edges > other.circuit_for("fil").num_edges


def test_split_by_graph_shares_no_subgraph() -> None:
    task = simple_path_task("given", split="graph")
    graphs = [{tuple(row) for row in task.rows(part)[0][:, 16:].tolist()} for part in ("train", "valid", "test")]
    assert not graphs[0] & graphs[1]
    assert not graphs[0] & graphs[2]


@pytest.mark.parametrize("setting", ["paper", "given"])
def test_turned_rows_are_for_training_only(setting: str) -> None:
    plain, turned = simple_path_task(setting), simple_path_task(setting, turned=True)
    for part in ("valid", "test"):
        for one, other in zip(plain.rows(part), turned.rows(part), strict=True):
            assert (one is None and other is None) or torch.equal(one, other)  # type: ignore[arg-type]
    x, y, given = turned.rows("train")
    rows = len(plain.rows("train")[0])
    assert len(x) > 4 * rows
    assert torch.equal(x[:rows], plain.rows("train")[0])
    assert turned.obeys(y, given).all()


@pytest.mark.parametrize(("split", "same"), [("published", 2), ("graph", 0)])
def test_few_published_test_rows_are_turned_training_rows(split: str, same: int, shared_data: Path) -> None:
    """As docs/record_paths.md says."""
    task = simple_path_task("given", split, "file", shared_data, turned=True)
    seen = {tuple(row) for row in task.rows("train")[0].tolist()}
    assert sum(tuple(row) in seen for row in task.rows("test")[0].tolist()) == same


def test_unknown_names() -> None:
    with pytest.raises(SemprolaError, match="no setting 'hard': choose from paper, ends, given"):
        simple_path_task("hard")
    with pytest.raises(SemprolaError, match="the circuit reads end points early"):
        simple_path_task("given", ends="first")
    with pytest.raises(SemprolaError, match="no split 'random': choose from published, graph"):
        simple_path_task(split="random")


def test_only_the_single_circuit_reads_all_end_points_first() -> None:
    task = simple_path_task("paper", ends="first")
    assert task.circuit_for("spl") is task.circuit
    other = task.circuit_for("nesy-entropy")
    assert other.num_edges < task.circuit.num_edges
    assert other.labels == task.circuit.labels
    assert other.model_count() == task.circuit.model_count() == 14_248
    early = simple_path_task("paper")
    assert early.circuit_for("spl") is early.circuit_for("product-spl") is early.circuit


@pytest.mark.parametrize(
    ("setting", "method"),
    [
        *itertools.product(["paper", "given"], ["fil", "semantic-loss", "nesy-entropy", "spl", "product-spl"]),
        ("ends", "nesy-entropy"),
        ("ends", "spl"),
    ],
)
def test_a_short_run(setting: str, method: str) -> None:
    task = simple_path_task(setting)
    training = TrainSettings(steps=4, batch_size=16, evaluate_every=4)
    result, model = run(task, method, ModelSettings(hidden=(16,), activation="relu"), training, seed=1, quiet=True)
    assert json.loads(json.dumps(result, allow_nan=False))["seed"] == 1
    assert {"command", "commit", "packages", "python", "semprola"} <= set(result["provenance"])
    assert ("greedy_decoder" in result["test"]) == (method == "spl")
    for decoder in (result["test"], result["test"]["hamming_decoder"], result["test"].get("greedy_decoder")):
        if method.endswith("spl") and decoder is not None:
            assert decoder["consistent"] == 100.0
    x, y, inputs = task.rows("test")
    assert result["test"]["exact"] == pytest.approx(100 * float((model(x, inputs).mode == y).all(1).double().mean()))


def test_inputs_in_the_constraint_learn_fast() -> None:
    """With equal scores for all edges the most probable path is a shortest one: little is left to learn."""
    task = simple_path_task("given")
    training = TrainSettings(steps=60, lr=5e-3, batch_size=64, evaluate_every=30)
    settings = ModelSettings(hidden=(64,), activation="relu")
    result, _ = run(task, "product-spl", settings, training, quiet=True)
    assert result["test"]["exact"] > 80
    assert result["test"]["consistent"] == 100.0


def test_the_demonstration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert demo.main(["--steps", "2", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "37.6 / 88.5 / 100.0" in text
    assert max(len(line.rstrip()) for line in text.splitlines() if str(tmp_path) not in line) <= 80
    assert {path.name for path in tmp_path.iterdir()} == {
        "gallery.png", "given.json", "learning_given.png", "learning_paper.png", "paper.json", "reliability.png",
    }  # fmt: skip


def test_the_demonstration_without_extras(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("matplotlib", "matplotlib.figure", "rich", "rich.console", "rich.table"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    assert demo.main(["--steps", "2", "--out", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert "pip install 'semprola[plot]'" in text
    assert "37.6 / 88.5 / 100.0" in text
