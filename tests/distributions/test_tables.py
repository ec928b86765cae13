"""Tables of known states: their sums are products with a matrix of zeros and ones, whichever way they are computed."""

from __future__ import annotations

import threading
from typing import Any

import pytest
import torch
from torch.autograd import gradcheck, gradgradcheck

import semprola as sp
from semprola.distributions.tables import StateTable


def _states(count: int = 60, labels: int = 40, share: float = 0.05, seed: int = 0) -> torch.Tensor:
    drawn = torch.rand(count, labels, generator=torch.Generator().manual_seed(seed)) < share
    return torch.unique(drawn.to(torch.uint8), dim=0)


def _plain(table: StateTable) -> StateTable:
    """The same table without the lists of ones."""
    table = StateTable(table.states)
    table._ones = None
    return table


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("columns", [0, 1, 7])
@pytest.mark.parametrize("share", [0.0, 0.05, 0.9])
def test_sums_are_products_of_matrices(share: float, columns: int, dtype: torch.dtype) -> None:
    table = StateTable(_states(share=share))
    assert (table._ones is None) == (share == 0.9)
    states = table.states.to(dtype)
    torch.manual_seed(1)
    by_label, by_state = torch.randn(40, columns, dtype=dtype), torch.randn(len(states), columns, dtype=dtype)
    torch.testing.assert_close(table.sums_over_labels(by_label), states @ by_label)
    torch.testing.assert_close(table.sums_over_states(by_state), states.T @ by_state)


def test_derivatives_of_sums() -> None:
    table = StateTable(_states(count=12, labels=9, share=0.1))
    assert table._ones is not None
    torch.manual_seed(0)
    for function, rows in ((table.sums_over_labels, 9), (table.sums_over_states, len(table.states))):
        values = torch.randn(rows, 3, dtype=torch.float64, requires_grad=True)
        assert gradcheck(function, values, check_forward_ad=True, check_batched_grad=True)
        assert gradgradcheck(lambda x, function=function: function(x.exp()), values)


def test_function_transforms_use_the_product() -> None:
    table = StateTable(_states())
    values = torch.randn(5, 40, 3)
    stacked = torch.func.vmap(table.sums_over_labels)(values)
    torch.testing.assert_close(stacked, torch.stack([table.sums_over_labels(part) for part in values]))
    jacobian: Any = torch.func.jacrev(table.sums_over_labels)(values[0])
    torch.testing.assert_close(jacobian[:, 0, :, 0], table.states.float())


def test_a_layer_answers_the_same_with_and_without_lists() -> None:
    rule = sp.constraints.hierarchy([(f"c{i}", f"p{i % 4}") for i in range(28)])
    circuit = sp.compile(rule)
    torch.manual_seed(0)
    y = _rows(circuit)
    layer = sp.SPL(6, circuit, known_states=y)
    table = layer.known.table
    assert table._ones is not None
    z = torch.randn(5, 6)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(2):  # also after a step
        answers = []
        for kept in (table, _plain(table)):
            layer.known._kept = kept
            layer.zero_grad()
            p = layer(z)
            loss = -p.log_prob(y[:5]).mean() + p.mean.square().sum()
            loss.backward()
            answers.append([loss.detach(), p.mean.detach(), p.mode, *(w.grad.clone() for w in layer.parameters())])
        for one, other in zip(*answers, strict=True):
            torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-6)
        optimizer.step()


def test_threads_share_a_table() -> None:
    table = StateTable(_states())
    values = torch.randn(40, 8)
    right = table.sums_over_labels(values)
    wrong: list[int] = []

    def work(number: int) -> None:
        if not all(torch.equal(table.sums_over_labels(values), right) for _ in range(50)):
            wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _rows(circuit: sp.Circuit) -> torch.Tensor:
    """Some label vectors with one child each."""
    index = {name: number for number, name in enumerate(circuit.labels)}
    rows = torch.zeros(28, len(index))
    for i in range(28):
        rows[i, index[f"c{i}"]] = rows[i, index[f"p{i % 4}"]] = 1
    return rows
