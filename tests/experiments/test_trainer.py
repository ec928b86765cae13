"""The trainer: it learns, it chooses by validation, and a run that is killed ends as one that is not."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import semprola as sp
from experiments.methods import METHODS, STARTS, Model, ModelSettings, perceptron
from experiments.trainer import Rows, TrainSettings, train
from semprola.errors import FormatError, SemprolaError

_SETTINGS = TrainSettings(steps=60, lr=1e-2, batch_size=16, evaluate_every=5)
_MODEL = ModelSettings(hidden=(8,), activation="relu", dropout=0.2)


def _rows(count: int, seed: int) -> Rows:
    """Which of four labels: the one whose input is largest."""
    x = torch.randn(count, 4, generator=torch.Generator().manual_seed(seed))
    return x, torch.nn.functional.one_hot(x.argmax(1), 4).float(), None


def _model(method: str = "spl", settings: ModelSettings = _MODEL) -> Model:
    torch.manual_seed(3)
    return Model(method, 4, sp.compile(sp.one_hot(["a", "b", "c", "d"])), settings)


@pytest.mark.parametrize("method", METHODS)
def test_every_method_learns(method: str) -> None:
    model = _model(method, replace(_MODEL, dropout=0.0))
    history = train(model, _rows(200, 1), _rows(100, 2), replace(_SETTINGS, steps=300, evaluate_every=50), seed=1)
    x, y, _ = _rows(200, 5)
    assert (model(x).mode == y).all(1).float().mean() > 0.8
    assert history.loss[-1] < history.loss[0]
    assert history.best_exact == max(history.valid_exact)


def test_the_best_parameters_are_kept() -> None:
    model = _model()
    history = train(model, _rows(100, 1), valid := _rows(60, 2), replace(_SETTINGS, lr=0.5), seed=1)
    assert not model.training
    now = 100 * float((model(valid[0]).mode == valid[1]).all(1).double().mean())
    assert now == pytest.approx(history.best_exact)
    assert history.best_step in history.step


def test_penalties_may_come_later() -> None:
    rows, valid = _rows(100, 1), _rows(60, 2)
    alone = train(_model("fil"), rows, valid, _SETTINGS, seed=1)
    later = train(_model("semantic-loss"), rows, valid, replace(_SETTINGS, penalty_from=30), seed=1)
    before = [step <= 30 for step in alone.step]
    assert later.loss[: sum(before)] == alone.loss[: sum(before)]
    assert all(b > a for a, b in zip(alone.loss[sum(before) :], later.loss[sum(before) :], strict=True))


def test_patience_does_not_count_what_is_before_the_penalties() -> None:
    settings = replace(_SETTINGS, lr=0.0, steps=1000, patience=3, penalty_from=20)
    history = train(_model("semantic-loss"), _rows(50, 1), _rows(50, 2), settings)
    assert history.step[-1] == 35


def test_patience_stops() -> None:
    settings = replace(_SETTINGS, lr=0.0, steps=1000, patience=3)
    history = train(_model(), _rows(50, 1), _rows(50, 2), settings)
    assert history.step == [5, 10, 15, 20]


def test_the_same_seed_gives_the_same_numbers() -> None:
    runs = []
    for seed in (4, 4, 5):
        model = _model()
        history = train(model, _rows(90, 1), _rows(60, 2), _SETTINGS, seed=seed)
        runs.append((history.loss, model.state_dict()))
    assert runs[0][0] == runs[1][0] != runs[2][0]
    assert all(torch.equal(runs[0][1][name], runs[1][1][name]) for name in runs[0][1])


@pytest.mark.parametrize("steps", [5, 30, 55, 60])
def test_a_run_that_was_stopped_ends_the_same(tmp_path: Path, steps: int) -> None:
    whole, parts = _model(), _model()
    expected = train(whole, _rows(90, 1), _rows(60, 2), _SETTINGS, seed=2)
    path = tmp_path / "run.pt"
    train(parts, _rows(90, 1), _rows(60, 2), _SETTINGS, seed=2, checkpoint=path, stop=lambda step: step >= steps)
    resumed = _model()
    history = train(resumed, _rows(90, 1), _rows(60, 2), _SETTINGS, seed=2, checkpoint=path)
    assert history.loss == expected.loss
    assert (history.best_step, history.best_exact) == (expected.best_step, expected.best_exact)
    assert all(torch.equal(value, whole.state_dict()[name]) for name, value in resumed.state_dict().items())


_CHILD = """
import sys
from pathlib import Path
from test_trainer import _SETTINGS, _model, _rows, train
import torch
model = _model()
train(model, _rows(90, 1), _rows(60, 2), _SETTINGS.__class__(**{**_SETTINGS.__dict__, "steps": 400}), seed=2,
      checkpoint=sys.argv[1])
torch.save(model.state_dict(), sys.argv[2])
"""


@pytest.mark.extensive
def test_a_run_that_was_killed_ends_the_same(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parent), *sys.path])}

    def start(name: str) -> subprocess.Popen[bytes]:
        arguments = [sys.executable, "-c", _CHILD, str(tmp_path / f"{name}.pt"), str(tmp_path / f"{name}.end")]
        return subprocess.Popen(arguments, env=environment)

    assert start("whole").wait(timeout=120) == 0
    killed = start("killed")
    while not (tmp_path / "killed.pt").is_file() and killed.poll() is None:
        time.sleep(0.01)
    time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.wait(timeout=10)
    assert start("killed").wait(timeout=120) == 0
    whole, resumed = (torch.load(tmp_path / f"{name}.end", weights_only=True) for name in ("whole", "killed"))
    assert all(torch.equal(whole[name], resumed[name]) for name in whole)


def test_checkpoints_that_cannot_be_resumed(tmp_path: Path) -> None:
    path = tmp_path / "run.pt"
    path.write_bytes(b"no archive")
    with pytest.raises(FormatError, match=r"run.pt: not a checkpoint that can be resumed .*: remove it") as raised:
        train(_model(), _rows(20, 1), _rows(20, 2), _SETTINGS, checkpoint=path)
    assert "\n" not in str(raised.value)
    path.unlink()
    train(_model(), _rows(20, 1), _rows(20, 2), replace(_SETTINGS, steps=5), checkpoint=path)
    with pytest.raises(FormatError, match="the checkpoint belongs to other settings"):
        train(_model(), _rows(20, 1), _rows(20, 2), replace(_SETTINGS, steps=5), checkpoint=path, seed=9)


def test_labels_that_violate_the_constraint() -> None:
    x, y, _ = _rows(20, 1)
    with pytest.raises(SemprolaError, match="the loss is inf at step 0: labels violate the constraint"):
        train(_model(), (x, 1 - y, None), _rows(20, 2), _SETTINGS)


def test_unknown_names() -> None:
    circuit = sp.compile(sp.one_hot(["a", "b"]))
    with pytest.raises(SemprolaError, match="no method 'svm': choose from fil, "):
        Model("svm", 2, circuit, _MODEL)
    with pytest.raises(SemprolaError, match="no activation 'step': choose from relu, sigmoid"):
        Model("fil", 2, circuit, ModelSettings(activation="step"))
    with pytest.raises(SemprolaError, match="no start 'zero': choose from torch, scaled"):
        Model("fil", 2, circuit, ModelSettings(start="zero"))


@pytest.mark.parametrize("activation", ["sigmoid", "relu"])
def test_a_scaled_start_lets_signals_through(activation: str) -> None:
    """After six layers, units still differ from row to row, as they hardly do with weights as PyTorch draws them."""
    torch.manual_seed(0)
    x = torch.randint(0, 2, (200, 40)).float()
    nets = {start: perceptron(40, (50,) * 6, activation, start=start) for start in STARTS}
    spread = {start: float(net(x).std(0).mean().detach()) for start, net in nets.items()}
    assert spread["scaled"] > 0.1
    assert spread["torch"] < 0.1 * spread["scaled"]
    with_dropout = perceptron(40, (50,), activation, 0.5, "scaled")
    assert [type(layer).__name__ for layer in with_dropout][-1] == "Dropout"
