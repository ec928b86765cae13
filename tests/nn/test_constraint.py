"""Rules for the logits of a network that exists: `sp.constrain` and `sp.ConstraintLayer`."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import weakref
from typing import Any

import numpy as np
import oracle
import pytest
import torch
import zoo
from oracle import Table
from selection import spread
from torch import nn

import semprola as sp
from semprola.distributions import domain as cached

pytestmark = pytest.mark.usefixtures("each_engine")
PETS = "(cat -> animal) & (dog -> animal)"
SMALL = [case for case in zoo.CASES if not case.large]
BATCHES = [(), (1,), (7,), (2, 3)]


def inputs(case: zoo.Case, batch: tuple[int, ...]) -> Any:
    if not case.given:
        return None
    live = oracle.inputs(case)
    return live[torch.randint(len(live), batch)]


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("case", spread(SMALL, 22), ids=lambda case: case.name)
def test_it_is_the_independent_distribution_given_the_rules(case: zoo.Case, dtype: torch.dtype) -> None:
    batch = BATCHES[SMALL.index(case) % len(BATCHES)]
    logits = 2 * torch.randn(*batch, len(case.columns), dtype=dtype)
    x = inputs(case, batch)
    keep = oracle.allowed(case, x).expand(*batch, -1)
    expected = Table.of_mixture(torch.zeros(*batch, 1), logits.unsqueeze(-2), keep)
    tolerance = {"atol": 1e-4, "rtol": 1e-4} if dtype == torch.float32 else {}
    layer = sp.ConstraintLayer(case.circuit)
    for p in (sp.constrain(logits, case.circuit, given=x), layer(logits, given=x)):
        assert p.batch_shape == batch
        torch.testing.assert_close(oracle.log_probs_of_all(p).double(), expected.log_probs, **tolerance)
        torch.testing.assert_close(p.mean.double(), expected.mean, **tolerance)
        assert expected.is_mode(p.mode, 1e-4).all()


@pytest.mark.parametrize("batch", BATCHES)
def test_every_batch_shape(batch: tuple[int, ...]) -> None:
    p = sp.constrain(torch.randn(*batch, 3), PETS)
    assert p.batch_shape == batch
    assert p.mode.shape == (*batch, 3)


def test_columns_by_name() -> None:
    logits = torch.tensor([-1.0, 3.0, 2.0])
    by_name = sp.constrain(logits, PETS, labels=["animal", "cat", "dog"])
    assert by_name.labels == ("animal", "cat", "dog")
    assert by_name.to_dict() == {"animal": 1, "cat": 1, "dog": 1}
    layer = sp.ConstraintLayer(PETS, labels=["animal", "cat", "dog"])
    torch.testing.assert_close(layer(logits).mean, by_name.mean)
    other = sp.constrain(logits, sp.compile(PETS), labels=["animal", "cat", "dog"])
    torch.testing.assert_close(other.mean, by_name.mean)


def test_inputs_by_name() -> None:
    rules = "(night -> ~a) & (a | b)"
    logits = torch.zeros(2, 2)
    by_name = sp.constrain(logits, rules, given={"night": torch.tensor([1, 0])})
    layer = sp.ConstraintLayer(rules, given=["night"])
    assert by_name.labels == layer.labels == ("a", "b")
    by_position = layer(logits, given=torch.tensor([[1], [0]]))
    torch.testing.assert_close(by_name.mean, by_position.mean)
    assert by_name.mean[0].tolist() == [0, 1]


def test_the_second_call_makes_no_plans(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = sp.exactly(2, [f"y{i}" for i in range(9)])
    logits = torch.randn(3, 9)
    first = sp.constrain(logits, rules).log_prob(sp.constrain(logits, rules).mode)
    monkeypatch.setattr(cached.CircuitPlans, "__init__", _refuse)
    again = sp.constrain(logits, rules)
    torch.testing.assert_close(again.log_prob(again.mode), first)
    circuit = sp.compile(rules)
    assert sp.distributions.ProductDistribution(circuit, logits).evaluator.domain.plans is again.evaluator.domain.plans


def _refuse(*_: Any) -> Any:
    raise AssertionError("plans were made again")


def test_plans_live_as_long_as_their_circuit() -> None:
    circuit = sp.compile(sp.exactly(3, [f"unique{i}" for i in range(5)]), cache=False)
    plans = weakref.ref(cached.plans_of(circuit))
    assert sp.constrain(torch.zeros(5), circuit).evaluator.domain.plans is plans()
    restored = pickle.loads(pickle.dumps(circuit))
    assert restored == circuit
    del circuit
    gc.collect()
    assert plans() is None


def test_a_circuit_with_another_note_is_itself() -> None:
    circuit = sp.compile(sp.exactly(2, [f"noted{i}" for i in range(4)]), cache=False)
    sp.constrain(torch.zeros(4), circuit)
    noted = circuit.with_info({"by": "hand"})
    assert sp.constrain(torch.zeros(4), noted).circuit.info["by"] == "hand"
    assert "by" not in sp.constrain(torch.zeros(4), circuit).circuit.info


def test_threads_share_one_structure() -> None:
    circuit = sp.compile(sp.exactly(3, [f"thread{i}" for i in range(12)]), cache=False)
    logits = torch.randn(5, 12)
    found: list[Any] = []
    gate = threading.Barrier(8)

    def work() -> None:
        gate.wait()
        p = sp.constrain(logits, circuit)
        found.append((p.evaluator.domain.plans, p.log_prob(p.mode)))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(plans) for plans, _ in found}) == 1
    assert all(torch.equal(value, found[0][1]) for _, value in found)


def test_gradients_reach_the_network() -> None:
    net = nn.Sequential(nn.Linear(4, 3), sp.ConstraintLayer(PETS)).double()
    x, y = torch.randn(6, 4, dtype=torch.float64), torch.tensor([1.0, 1.0, 0.0]).expand(6, 3)
    assert list(net[1].parameters()) == []
    loss = -net(x).log_prob(y).mean()
    loss.backward()
    assert all(weight.grad is not None and weight.grad.isfinite().all() for weight in net.parameters())


def test_it_is_a_proper_module() -> None:
    layer = sp.ConstraintLayer(PETS)
    logits = torch.randn(4, 3)
    expected = layer(logits).mean
    for same in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), layer.double().float()):
        torch.testing.assert_close(same(logits).mean, expected)
    state = layer.state_dict()
    sp.ConstraintLayer(PETS).load_state_dict(state)
    with pytest.raises(sp.FormatError, match="belong to another circuit"):
        sp.ConstraintLayer(sp.one_hot(["a", "b", "c"])).load_state_dict(state)
    assert "3 labels" in repr(layer)


def test_compiled_by_torch() -> None:
    layer = sp.ConstraintLayer(PETS)
    compiled = torch.compile(lambda logits: layer(logits).mean, fullgraph=True, backend="eager")
    logits = torch.randn(4, 3)
    torch.testing.assert_close(compiled(logits), layer(logits).mean)


def test_under_the_transforms_of_torch() -> None:
    circuit, logits = sp.compile(PETS), torch.randn(5, 3)

    def loss(row: torch.Tensor) -> torch.Tensor:
        return -sp.constrain(row, circuit).log_prob(torch.tensor([1.0, 1.0, 0.0]))

    row = logits[0].clone().requires_grad_()
    loss(row).backward()
    assert row.grad is not None
    torch.testing.assert_close(torch.func.grad(loss)(logits[0]), row.grad)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(logits)[0], row.grad)
    means = torch.func.vmap(lambda row: sp.constrain(row, circuit).mean)(logits)
    torch.testing.assert_close(means, sp.constrain(logits, circuit).mean)


def test_half_precision_logits() -> None:
    logits = torch.randn(4, 3)
    p = sp.constrain(logits.bfloat16(), PETS)
    assert p.mean.dtype == torch.float32
    torch.testing.assert_close(p.mean, sp.constrain(logits, PETS).mean, atol=0.02, rtol=0.02)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: sp.constrain(torch.tensor([[0.0] * 3, [torch.nan, 0, 0], [0, torch.inf, 0]]), PETS),
            ValueError,
            "logits must be finite: found NaN or infinite values in rows 1, 2",
        ),
        (
            lambda: sp.ConstraintLayer(PETS)(torch.full((3,), torch.nan)),
            ValueError,
            "logits must be finite: found NaN or infinite values",
        ),
        (
            lambda: sp.constrain(torch.zeros(5, 2), PETS),
            sp.LabelError,
            "logits must be [*batch, 3], one column for each of cat, animal, dog; not (5, 2)",
        ),
        (
            lambda: sp.constrain(np.zeros((5, 3)), PETS),  # type: ignore[arg-type]
            TypeError,
            "logits must be a tensor [*batch, 3], not ndarray: use torch.as_tensor",
        ),
        (
            lambda: sp.constrain(torch.zeros(5, 3, dtype=torch.int64), PETS),
            TypeError,
            "logits must be floating point, not torch.int64",
        ),
        (lambda: sp.constrain(torch.zeros(1), "a & ~a"), sp.UnsatisfiableError, None),
        (
            lambda: sp.ConstraintLayer("(night -> ~a) & (a | b)", given="night"),
            sp.LabelError,
            "given: expected a list of names, not 'night'",
        ),
        (
            lambda: sp.ConstraintLayer("a | b", given=None),  # type: ignore[arg-type]
            sp.LabelError,
            "given: expected a list of names, not None",
        ),
        (
            lambda: sp.ConstraintLayer("a | b", labels="ab"),
            sp.LabelError,
            "labels: expected a list of names, not 'ab'",
        ),
        (
            lambda: sp.constrain(torch.zeros(2), "a | b", labels="ab"),
            sp.LabelError,
            "labels: expected a list of names, not 'ab'",
        ),
        (
            lambda: sp.constrain(torch.zeros(2, 1), "a <-> x", given={"y": 1}),
            sp.LabelError,
            None,
        ),
    ],
)
def test_bad_arguments(call: Any, kind: type[Exception], message: str | None) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert "\n" not in str(caught.value)
    if message is not None:
        assert str(caught.value) == message


@pytest.mark.parametrize("batch", [(7,), (2, 3), (0,), ()])
def test_one_component_needs_no_dimension(batch: tuple[int, ...]) -> None:
    circuit = sp.compile(PETS)
    logits = torch.randn(*batch, 3)
    p = sp.distributions.ProductDistribution(circuit, logits)
    assert p.batch_shape == batch
    torch.testing.assert_close(p.mean, sp.distributions.ProductDistribution(circuit, logits.unsqueeze(-2)).mean)
    weights = sp.SPL(4, circuit).plans.layer.num_logits
    assert sp.distributions.SPLDistribution(circuit, torch.randn(*batch, weights)).batch_shape == batch


def test_a_dimension_of_one_is_the_component() -> None:
    # what a gate returns without a batch; `constrain` reads the same tensor as a batch of one row
    circuit, logits = sp.compile(PETS), torch.randn(1, 3)
    assert sp.distributions.ProductDistribution(circuit, logits).batch_shape == ()
    assert sp.constrain(logits, circuit).batch_shape == (1,)
