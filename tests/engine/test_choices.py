"""Decoding, sampling and ranking against enumeration, with each engine."""

from __future__ import annotations

import pytest
import torch
from engine_cases import INF, NAMES, leaves_of, numbers, plans, states
from torch import Tensor

import semprola as sp
from semprola.engine import CircuitPlans, Literals, choices, log_value

pytestmark = pytest.mark.usefixtures("each_engine")


def table(one: CircuitPlans, weights: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """All states [variables, 2^variables] and their log-values [2^variables, columns]."""
    plan = one.layer_explicit
    rows = states(plan)
    scores = [log_value(plan, weights, leaves + leaves_of(rows[:, [i] * 3])) for i in range(rows.shape[1])]
    return rows, torch.stack(scores)


@pytest.mark.parametrize("name", NAMES)
def test_maximize(name: str) -> None:
    one = plans(name)
    plan = one.layer_explicit
    weights, leaves = numbers(plan)
    literals = Literals.of(plan, leaves[0::2], leaves[1::2], maximize=True)
    rows, scores = table(one, weights, leaves)
    found, value = choices.maximize(plan, weights, literals)
    torch.testing.assert_close(value, scores.amax(0))
    torch.testing.assert_close(found, rows[:, scores.argmax(0)])


@pytest.mark.parametrize("name", NAMES)
def test_top_k(name: str) -> None:
    one = plans(name)
    weights, leaves = numbers(one.layer_explicit)
    rows, scores = table(one, weights, leaves)
    best, order = scores.sort(0, descending=True)
    found, values = choices.top_k(one.layer_explicit, weights, leaves, 3)
    torch.testing.assert_close(values, best[:3])
    for rank in range(3):
        real = values[rank] > -INF
        torch.testing.assert_close(found[:, rank, real], rows[:, order[rank]][:, real])


@pytest.mark.parametrize("k", [7, 50])
def test_top_k_of_a_deep_circuit(k: int) -> None:
    """A chain of 60 sums: fewer and more states are asked for than there are below most of them."""
    circuit = sp.compile(sp.constraints.cardinality([f"y{i}" for i in range(60)], exactly=59) & sp.Bool("y0"))
    one = sp.SPL(1, circuit).plans
    weights, leaves = numbers(one.layer_explicit, 35)
    found, values = choices.top_k(one.layer_explicit, weights, leaves, k)
    sp.engine.set_engine("torch")
    expected, best = choices.top_k(one.layer_explicit, weights, leaves, k)
    torch.testing.assert_close(values, best)
    torch.testing.assert_close(found, expected)
    assert (values[:-1] >= values[1:]).all()


@pytest.mark.parametrize("name", ["cat_dog_animal", "exactly_two_of_five", "free_labels"])
def test_samples_have_the_right_frequencies(name: str) -> None:
    one = plans(name)
    plan = one.layer_explicit
    weights, leaves = numbers(plan)
    literals = Literals.of(plan, leaves[0::2], leaves[1::2])
    rows, scores = table(one, weights, leaves)
    count = 4000
    drawn = choices.sample(plan, weights, literals, torch.arange(3).expand(count, -1), torch.Generator().manual_seed(7))
    for column in range(3):
        probability = scores[:, column].softmax(0)
        hits = (drawn[:, :, column][:, :, None] == rows[:, None]).all(0).double().mean(0)
        assert hits.sum() == pytest.approx(1.0)
        assert (hits[probability == 0] == 0).all()
        spread = (probability * (1 - probability) / count).sqrt()
        assert ((hits - probability).abs() <= 5 * spread + 1e-12).all()


def test_samples_depend_on_the_seed_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = plans("exactly_two_of_five").layer
    weights, leaves = numbers(plan, 40)
    literals = Literals.of(plan, leaves[0::2], leaves[1::2])
    column = torch.arange(40).expand(50, -1)

    def draw(seed: int) -> Tensor:
        return choices.sample(plan, weights, literals, column, torch.Generator().manual_seed(seed))

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))
    before = draw(3)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert torch.equal(draw(3), before)
    finally:
        torch.set_num_threads(threads)
