"""A distribution is a value: neither its answers nor its arguments can change it afterwards."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

import semprola as sp

RULES = "(cat -> animal) & (dog -> animal)"
Y = torch.tensor([1.0, 1.0, 0.0])
MADE: dict[str, Callable[[], Any]] = {
    "single": lambda: sp.SPL(4, RULES)(torch.ones(2, 4)),
    "mixture": lambda: sp.SPL(4, RULES, replicas=2)(torch.ones(2, 4)),
    "units": lambda: sp.SPL(4, RULES, units=2)(torch.ones(2, 4)),
    "known": lambda: sp.SPL(4, RULES, known_states=[[1, 1, 0], [0, 0, 0]])(torch.ones(2, 4)),
    "product": lambda: sp.ProductSPL(4, RULES)(torch.ones(2, 4)),
    "products": lambda: sp.ProductSPL(4, RULES, mixtures=2)(torch.ones(2, 4)),
    "hmm": lambda: sp.ProductSPL(4, RULES, q="hmm", units=2)(torch.ones(2, 4)),
    "constrained": lambda: sp.constrain(torch.tensor([[0.3, -0.2, 1.0], [0.0, 0.5, -1.0]]), RULES),
    "ensemble": lambda: sp.distributions.mixture(
        [sp.constrain(torch.zeros(2, 3), RULES), sp.constrain(torch.ones(2, 3), RULES)]
    ),
}
ANSWERS = ("mode", "mode_is_exact", "mean", "log_partition", "log_mixing")


@pytest.mark.parametrize("name", MADE)
@pytest.mark.parametrize("answer", ANSWERS)
@torch.no_grad()
def test_an_answer_that_is_changed_in_place_does_not_change_the_distribution(name: str, answer: str) -> None:
    torch.manual_seed(0)
    p = MADE[name]()
    before = p.log_prob(Y), p.mean.clone(), p.mode.clone(), getattr(p, answer).clone()
    _spoil(getattr(p, answer))
    after = p.log_prob(Y), p.mean, p.mode, getattr(p, answer)
    for old, new in zip(before, after, strict=True):
        torch.testing.assert_close(new, old)


def test_logits_and_decoded_states_are_copies() -> None:
    p = sp.ProductSPL(4, RULES)(torch.ones(2, 4))
    with torch.no_grad():
        before, mode = p.log_prob(Y), p.mode.clone()
        p.logits.mul_(0.5)
        p.decode("mode").mul_(2)
        torch.testing.assert_close(p.log_prob(Y), before)
        torch.testing.assert_close(p.mode, mode)


def test_marginals_of_sequences_are_copies() -> None:
    p = sp.SequenceSPL(3)(torch.randn(2, 4, 3))
    with torch.no_grad():
        before = p.mean.clone()
        p.mean.zero_()
        p.marginals.zero_()
        torch.testing.assert_close(p.mean, before)


@pytest.mark.parametrize("name", MADE)
def test_evidence_that_is_changed_later_does_not_count(name: str) -> None:
    evidence = torch.tensor([[1.0, math.nan, math.nan]] * 2)
    p = MADE[name]().condition(evidence)
    before = p.mean.clone()
    evidence[:, 0] = 0
    torch.testing.assert_close(p.mean, before)
    assert p.support.check(torch.tensor([[1.0, 1.0, 0.0]] * 2)).all()


def test_lengths_that_are_changed_later_do_not_count() -> None:
    lengths, y = torch.tensor([4, 2]), torch.zeros(2, 4, dtype=torch.long)
    p = sp.SequenceSPL(3)(torch.randn(2, 4, 3), lengths=lengths)
    before = p.log_prob(y)
    lengths.fill_(1)
    torch.testing.assert_close(p.log_prob(y), before)


def test_loading_other_known_states_does_not_change_what_was_made() -> None:
    first = sp.SPL(4, RULES, known_states=[[1, 1, 0], [0, 0, 0]])
    second = sp.SPL(4, RULES, known_states=[[0, 1, 1], [0, 1, 0]])
    states = torch.tensor([[0.0, 0, 0], [0, 1, 0], [0, 1, 1], [1, 1, 0], [1, 1, 1]])[:, None]
    p = first(torch.zeros(1, 4))
    before = p.log_prob(states)
    first.load_state_dict(second.state_dict())
    torch.testing.assert_close(p.log_prob(states), before)
    torch.testing.assert_close(first(torch.zeros(1, 4)).log_prob(states), second(torch.zeros(1, 4)).log_prob(states))


def _spoil(answer: Tensor) -> None:
    answer.logical_not_() if answer.dtype == torch.bool else answer.mul_(3).add_(1)
