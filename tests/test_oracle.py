"""The oracle against tables computed by hand."""

from __future__ import annotations

import math

import oracle
import pytest
import torch
from oracle import INF, Table

# p(00) = .1, p(01) = .2, p(10) = .3, p(11) = .4, and the same with 11 ruled out
FULL = torch.tensor([0.1, 0.2, 0.3, 0.4], dtype=torch.float64)
CUT = torch.tensor([0.1, 0.2, 0.3, 0.0], dtype=torch.float64)
NAN = math.nan


@pytest.fixture
def table() -> Table:
    return Table(torch.stack([FULL, CUT]).log())


def test_states_count_upwards() -> None:
    assert oracle.all_states(2).tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert oracle.state_index(oracle.all_states(4)).tolist() == list(range(16))
    assert oracle.all_states(0).shape == (1, 0)


def test_log_partition_and_log_prob(table: Table) -> None:
    assert table.log_partition.exp().tolist() == pytest.approx([1.0, 0.6])
    y = torch.tensor([[1.0, 1.0], [1.0, 1.0]])
    assert table.log_prob(y).exp().tolist() == pytest.approx([0.4, 0.0])
    assert table.log_prob(y)[1] == -INF
    assert table.log_prob(torch.tensor([0.0, 1.0])).exp().tolist() == pytest.approx([0.2, 1 / 3])
    assert table.log_prob(y.expand(5, 2, 2)).shape == (5, 2)


def test_mode_mean_entropy(table: Table) -> None:
    assert table.max_log_prob.exp().tolist() == pytest.approx([0.4, 0.5])
    assert table.is_mode(torch.tensor([[1.0, 1.0], [1.0, 0.0]]), 1e-9).tolist() == [True, True]
    assert table.is_mode(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 1e-9).tolist() == [False, False]
    assert table.mean.tolist() == [pytest.approx([0.7, 0.6]), pytest.approx([0.5, 1 / 3])]
    by_hand = -sum(v * math.log(v) for v in (0.1, 0.2, 0.3, 0.4))
    assert table.entropy[0].item() == pytest.approx(by_hand)
    assert table.entropy[1].item() == pytest.approx(math.log(6) / 6 + math.log(3) / 3 + math.log(2) / 2)


def test_log_marginal_and_condition(table: Table) -> None:
    nothing = torch.tensor([NAN, NAN])
    assert table.log_marginal(nothing).tolist() == pytest.approx([0.0, 0.0])
    assert table.log_marginal(torch.tensor([1.0, NAN])).exp().tolist() == pytest.approx([0.7, 0.5])
    assert table.log_marginal(torch.tensor([[1.0, 1.0], [1.0, 1.0]]))[1] == -INF
    given = table.condition(torch.tensor([[NAN, 1.0], [NAN, 0.0]]))
    assert given.probs.tolist() == [pytest.approx([0, 1 / 3, 0, 2 / 3]), pytest.approx([0.25, 0, 0.75, 0])]
    assert given.log_partition.exp().tolist() == pytest.approx([0.6, 2 / 3])


def test_top_k_and_kl(table: Table) -> None:
    assert table.top_k(2).exp().tolist() == [pytest.approx([0.4, 0.3]), pytest.approx([0.5, 1 / 3])]
    assert table.top_k(6)[1, 3:].tolist() == [-INF] * 3
    uniform = Table(torch.zeros(2, 4))
    log4 = math.log(4)
    assert table.kl(uniform).tolist() == pytest.approx([log4 - float(h) for h in table.entropy])
    assert uniform.kl(table)[1] == INF
    assert table.kl(table).tolist() == [0.0, 0.0]


def test_utilities_and_hamming(table: Table) -> None:
    assert table.best_utility(torch.tensor([[1.0, 2.0], [1.0, 2.0]])).tolist() == [3.0, 2.0]
    assert table.best_utility(torch.tensor([-1.0, -2.0])).tolist() == [0.0, 0.0]
    # of 11: differs by one from 01 and 10, by two from 00
    assert table.hamming_loss(torch.tensor([1.0, 1.0]))[0].item() == pytest.approx(0.2 + 0.3 + 2 * 0.1)
    losses = [float(table.hamming_loss(y)[1]) for y in oracle.all_states(2)[:3]]
    assert table.least_hamming_loss[1].item() == pytest.approx(min(losses))


def test_mixture_of_independent_labels() -> None:
    half = math.log(0.5)
    theta = torch.tensor([[0.0, math.log(3)], [math.log(1 / 3), 0.0]], dtype=torch.float64)
    keep = torch.tensor([True, True, True, False])
    table = Table.of_mixture(torch.tensor([half, half], dtype=torch.float64), theta, keep)
    # components: P(y1), P(y2) = (1/2, 3/4) and (1/4, 1/2)
    q = [0.5 * (1 / 8 + 3 / 8), 0.5 * (3 / 8 + 3 / 8), 0.5 * (1 / 8 + 1 / 8)]
    assert table.log_partition.exp().item() == pytest.approx(sum(q))
    assert table.probs.tolist() == pytest.approx([v / sum(q) for v in q] + [0])


def test_chi_square() -> None:
    assert abs(oracle.chi_square_z(torch.tensor([100, 200, 300, 400]), FULL)) < 5
    assert oracle.chi_square_z(torch.tensor([400, 300, 200, 100]), FULL) > 5
    assert oracle.chi_square_z(torch.tensor([10, 20, 30, 1]), CUT / CUT.sum()) == INF
