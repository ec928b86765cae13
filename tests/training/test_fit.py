"""`semprola.training.fit`: every option does what it says, and several processes reach the result of one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import semprola as sp
from semprola.errors import FormatError, SemprolaError
from semprola.training import FitSettings, Look, evaluate, fit
from semprola.training.data import Batch

RULES = "(cat -> animal) & (dog -> animal) & ~(cat & dog)"
STATES = torch.tensor([[0.0, 0, 0], [0, 0, 1], [1, 0, 1], [0, 1, 1]])


def data(count: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Inputs of which the first four say, with some noise, which of the four models it is."""
    generator = torch.Generator().manual_seed(seed)
    state = torch.randint(4, (count,), generator=generator)
    x = torch.randn(count, 6, generator=generator)
    x[torch.arange(count), state] += 3
    return x, STATES[state]


def network(dropout: float = 0.0) -> nn.Module:
    torch.manual_seed(1)
    circuit = sp.compile(sp.parse(RULES), labels=["cat", "dog", "animal"])
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(dropout), sp.SPL(8, circuit))


def parameters(model: nn.Module) -> Tensor:
    return torch.cat([parameter.detach().flatten() for parameter in model.parameters()])


def test_it_learns_and_keeps_the_best() -> None:
    model = network()
    history = fit(model, data(300), valid := data(100, 1), epochs=40, lr=1e-2, patience=5)
    assert not model.training
    exact, log_prob = evaluate(model, Batch(*valid))
    assert exact > 80
    assert log_prob == pytest.approx(max(history.valid_log_prob)) == pytest.approx(history.best_log_prob)
    assert history.loss[-1] < history.loss[0]


def test_without_validation_rows_the_last_parameters_count() -> None:
    model = network()
    history = fit(model, data(100), epochs=3)
    assert history.step == [2, 4, 6]
    assert history.best_step == 6
    assert history.valid_exact == []


def test_randomness_outside_is_left_alone() -> None:
    model = network(0.5)
    before = torch.random.get_rng_state()
    fit(model, data(50), epochs=1)
    assert torch.equal(torch.random.get_rng_state(), before)


@pytest.mark.parametrize("stop", [1, 3, 4])
@pytest.mark.parametrize("kind", ["tensors", "loader"])
def test_resumed_runs_end_the_same(tmp_path: Path, kind: str, stop: int) -> None:
    def train() -> Any:
        return data(100) if kind == "tensors" else DataLoader(TensorDataset(*data(100)), batch_size=32, shuffle=True)

    options: dict[str, Any] = {"epochs": 5, "batch_size": 32, "evaluate_every": 3, "seed": 2, "schedule": "cosine"}
    whole, parts, resumed = network(0.3), network(0.3), network(0.3)
    expected = fit(whole, train(), data(50, 1), **options)
    path = tmp_path / "run.pt"
    fit(parts, train(), data(50, 1), **options, checkpoint=path, callbacks=[lambda look: look.step >= 3 * stop])
    history = fit(resumed, train(), data(50, 1), **options, checkpoint=path)
    assert history.loss == expected.loss
    assert torch.equal(parameters(whole), parameters(resumed))
    with pytest.raises(FormatError, match="the checkpoint belongs to other settings"):
        fit(network(), train(), data(50, 1), **{**options, "epochs": 6}, checkpoint=path)


def test_labels_that_are_not_observed_train_by_the_marginal_likelihood() -> None:
    x, y = data(400)
    hidden = y.clone()
    hidden[torch.rand(y.shape, generator=torch.Generator().manual_seed(0)) < 0.3] = float("nan")
    model = network()
    p = model(x)
    loss = -p.log_marginal(hidden).mean()
    loss.backward()
    expected = [parameter.grad.clone() for parameter in model.parameters()]  # type: ignore[union-attr]
    seen: list[list[Tensor]] = []
    model.zero_grad()
    fit(
        model,
        (x, hidden),
        steps=1,
        batch_size=None,
        lr=0.0,
        start_at_labels=False,
        callbacks=[lambda look: seen.append([p.grad.clone() for p in look.model.parameters()])],  # type: ignore[func-returns-value]
    )
    torch.testing.assert_close(seen[0], expected)
    model = network()
    fit(model, (x, hidden), data(100, 1), epochs=30, lr=1e-2)
    assert evaluate(model, Batch(*data(100, 1)))[0] > 75


@pytest.mark.parametrize("bad", [-1.0, float("nan"), float("inf")])
def test_weights_that_are_no_weights_are_refused(bad: float) -> None:
    x, y = data(30)
    weight = torch.ones(30)
    weight[4] = bad
    message = rf"^weights of rows must be finite and not negative, but row 4 has {bad}$"
    with pytest.raises(ValueError, match=message):
        fit(network(), (x, y, None, weight), epochs=1)
    loader = DataLoader(range(30), batch_size=30, collate_fn=lambda rows: (x, y, None, weight))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=message):
        fit(network(), loader, epochs=1)
    with pytest.raises(ValueError, match=r"weights of rows must have shape \[rows\], not \[30, 1\]"):
        fit(network(), (x, y, None, weight[:, None]), epochs=1)


def test_weights_of_rows_are_like_repeated_rows() -> None:
    x, y = data(30)
    weight = torch.arange(30) % 3
    repeated = torch.repeat_interleave(torch.arange(30), weight)
    weighted, copied = network(), network()
    fit(weighted, (x, y, None, weight), steps=20, batch_size=None, lr=1e-2)
    fit(copied, (x[repeated], y[repeated]), steps=20, batch_size=None, lr=1e-2)
    torch.testing.assert_close(parameters(weighted), parameters(copied), rtol=1e-4, atol=1e-5)


def test_a_row_without_weight_may_break_the_rules() -> None:
    x, y = data(30)
    y[4] = torch.tensor([1.0, 1.0, 0.0])
    weight = torch.ones(30)
    weight[4] = 0
    model = network()
    fit(model, (x, y, None, weight), steps=3)
    assert bool(parameters(model).isfinite().all())


def test_weights_of_labels_pull_their_marginals() -> None:
    x, y = data(200)
    noise = torch.rand(200, generator=torch.Generator().manual_seed(3)) < 0.3
    y = torch.where(noise[:, None], STATES[torch.arange(200) % 4], y)
    plain, pulled = network(), network()
    fit(plain, (x, y), steps=150, lr=1e-2)
    fit(pulled, (x, y), steps=150, lr=1e-2, label_weight=(0.0, 0.0, 30.0))

    def loss(model: nn.Module) -> float:
        return float(nn.functional.binary_cross_entropy(model(x).mean[:, 2].clamp(1e-6, 1 - 1e-6), y[:, 2]).detach())

    assert loss(pulled) < loss(plain)


def test_schedule_warmup_and_clipping() -> None:
    settings = FitSettings(lr=2.0, schedule="linear", warmup=4)
    assert [settings.rate(step, 14) for step in (0, 2, 4, 9, 14)] == [0.0, 1.0, 2.0, 1.0, 0.0]
    assert FitSettings(lr=2.0, schedule=lambda step, steps: step / steps).rate(5, 10) == 1.0
    norms: list[float] = []

    def look(seen: Look) -> None:
        grads = [p.grad.norm() for p in seen.model.parameters() if p.grad is not None]
        norms.append(float(torch.stack(grads).norm()))

    fit(network(), data(50), epochs=3, clip=1e-3, callbacks=[look])
    assert all(norm == pytest.approx(1e-3, rel=1e-3) for norm in norms)


def test_mixed_precision_learns() -> None:
    model = network()
    fit(model, data(300), valid := data(100, 1), epochs=20, lr=1e-2, precision="bfloat16")
    assert evaluate(model, Batch(*valid))[0] > 75
    assert parameters(model).dtype == torch.float32


def test_callbacks_see_and_stop() -> None:
    looks: list[Look] = []

    def callback(look: Look) -> bool:
        looks.append(look)
        return look.step >= 6

    history = fit(network(), data(100), data(50, 1), epochs=50, batch_size=50, callbacks=[callback])
    assert [look.step for look in looks] == [2, 4, 6] == history.step
    assert all(look.rows_per_second > 0 and look.steps == 100 for look in looks)


def test_inputs_of_the_constraint() -> None:
    circuit = sp.compile(sp.parse("x -> (a | b)"), labels=["a", "b"], given=["x"])

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = sp.SPL(3, circuit)

        def forward(self, z: Tensor, given: Tensor) -> Any:
            return self.layer(z, given=given)

    z, given = torch.randn(60, 3), torch.randint(2, (60, 1)).float()
    y = torch.cat([given, torch.zeros(60, 1)], 1)
    model = Model()
    history = fit(model, (z, y, given), (z, y, given), epochs=20, lr=0.1)
    assert history.best_exact == 100


_WORKER = """
import sys, torch
from test_fit import data, network, parameters
from semprola.training import fit
model = network()
x, y = data(101)
y[::7, 0] = float("nan")
weight = torch.rand(101, generator=torch.Generator().manual_seed(0))
history = fit(model, (x, y, None, weight), data(50, 1), epochs=4, batch_size=25, lr=1e-2, seed=3, clip=1.0,
              checkpoint=sys.argv[1] + ".checkpoint")
import os
if os.environ.get("RANK", "0") == "0":
    torch.save({"parameters": parameters(model), "loss": history.loss}, sys.argv[1])
"""


@pytest.mark.extensive
def test_two_processes_reach_the_result_of_one(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text(_WORKER)
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    for name, words in (("one", []), ("two", torchrun)):
        command = [sys.executable, *words, str(tmp_path / "worker.py"), str(tmp_path / name)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240)
        assert done.returncode == 0, done.stderr[-2000:]
    one, two = (torch.load(tmp_path / name, weights_only=True) for name in ("one", "two"))
    assert two["loss"] == pytest.approx(one["loss"], abs=1e-5)
    torch.testing.assert_close(one["parameters"], two["parameters"], rtol=0, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"epochs": 0}, "epochs must be a positive whole number, not 0"),
        ({"lr": -1.0}, "lr must not be negative"),
        ({"lr": float("nan")}, "lr must not be negative"),
        ({"choose": "luck"}, "choose must be 'exact' or 'likelihood', not 'luck'"),
        ({"precision": "int8"}, "precision must be 'float32' or 'bfloat16'"),
        ({"schedule": "steps"}, "schedule must be 'constant', 'cosine', 'linear' or a function"),
        ({"clip": 0.0}, "clip must be a positive number"),
        ({"label_weight": -1.0}, "label_weight must not be negative"),
        ({"label_weight": (1.0, 2.0)}, "label_weight has 2 numbers, but there are 3 labels"),
    ],
)
def test_settings_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        fit(network(), data(10), **options)


def test_rows_that_make_no_sense() -> None:
    x, y = data(10)
    with pytest.raises(ValueError, match="different numbers of rows: x has 9, y has 10"):
        fit(network(), (x[:9], y))
    with pytest.raises(ValueError, match="there are no training rows"):
        fit(network(), (x[:0], y[:0]))
    with pytest.raises(ValueError, match=r"rows must be a tuple \(x, y\)"):
        fit(network(), (x,))
    with pytest.raises(ValueError, match="a tuple of tensors or a DataLoader"):
        fit(network(), x)  # a tensor iterates over rows
    with pytest.raises(TypeError, match="fit has no setting 'rate'; its settings are epochs, steps"):
        fit(network(), (x, y), rate=0.1)
    with pytest.raises(ValueError, match="the model has no parameters to train"):
        fit(nn.Identity(), (x, y))


@pytest.mark.parametrize("model", [None, "spl", sp.SPL, lambda x: x])
def test_what_is_no_model(model: Any) -> None:
    with pytest.raises(TypeError, match=r"^model must be an nn.Module that returns a distribution, not \w+: end it in"):
        fit(model, data(10))


class _Returns(nn.Module):
    def __init__(self, wrap: Any) -> None:
        super().__init__()
        self.net, self.wrap = nn.Linear(6, 3), wrap

    def forward(self, x: Tensor) -> Any:
        return self.wrap(self.net(x))


@pytest.mark.parametrize("valid", [None, data(5, 1)], ids=["without", "with validation rows"])
@pytest.mark.parametrize("choose", ["likelihood", "exact"])
def test_models_that_return_no_distribution(valid: Any, choose: str) -> None:
    for model, returned in (
        (nn.Linear(6, 3), "Tensor"),
        (_Returns(lambda logits: (logits, None)), "tuple"),
        (_Returns(lambda logits: {"logits": logits}), "dict"),
        (_Returns(lambda logits: None), "NoneType"),
    ):
        message = rf"^the model must return a distribution, not {returned}: end it in a layer such as sp.SPL$"
        with pytest.raises(TypeError, match=message):
            fit(model, data(10), valid, choose=choose)


def test_rows_that_break_the_rules_are_named() -> None:
    x, y = data(10)
    y[3] = torch.tensor([1.0, 1.0, 1.0])
    message = "the loss is inf at step 0: labels violate the constraint in 1 of 10 rows of the batch .cat, dog"
    with pytest.raises(SemprolaError, match=message):
        fit(network(), (x, y))
    x[5, 0] = float("nan")
    with pytest.raises((SemprolaError, ValueError), match="NaN"):
        fit(network(), (x, STATES[torch.zeros(10, dtype=torch.long)]))
