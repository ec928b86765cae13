"""A component over a table of known label vectors: a softmax of additive scores."""

from __future__ import annotations

from random import Random
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Components
from semprola.distributions.numeric import log_sum_exp
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.ops.registration import watched

_MOST_NUMBERS = 2**22
"""Largest tensor (in numbers) made to check states against the constraint; larger jobs are split."""

_FEW_ONES = 1 / 8
"""Of all labels of all states: with fewer, adding up rows is faster than a product of matrices."""

_Lists = tuple[Tensor, Tensor]
"""For each row of a matrix, the columns that are one: all of them in a row, and where each row's begin."""


class StateTable:
    """Distinct label vectors, with a fast lookup and fast products.

    Args:
        states: 0/1 [states, labels], without repetitions; at least one.
    """

    def __init__(self, states: Tensor) -> None:
        self.states = states
        random = Random(0)
        code = [random.randrange(-(2**62), 2**62) for _ in range(states.shape[1])]
        self._code = torch.tensor(code, device=states.device)
        self._sorted, self._order = self._keys(states.T).sort()
        # tracing compilers cannot follow this, and only the CPU is faster with it
        few = states.device.type == "cpu" and bool((states > 0).sum() <= _FEW_ONES * states.numel())
        self._ones: tuple[_Lists, _Lists] | None = (_lists(states), _lists(states.T)) if few else None

    def find(self, y: Tensor) -> Tensor:
        """The row of each label vector [labels, n], or -1 if it is not in the table: [n]."""
        place = torch.searchsorted(self._sorted, self._keys(y)).clamp(max=len(self._sorted) - 1)
        row = self._order[place]
        # different label vectors may have the same key by chance
        same = ((self.states[row].T > 0.5) == (y > 0.5)).all(0)
        return torch.where(same, row, -1)

    def sums_over_labels(self, values: Tensor) -> Tensor:
        """For each state, the sum of the values of its labels that are 1: [states, n] from [labels, n]."""
        if self._ones is None or watched(values):
            return self.states.to(values) @ values
        result: Tensor = _Sums.apply(values, *self._ones)  # type: ignore[no-untyped-call]
        return result

    def sums_over_states(self, values: Tensor) -> Tensor:
        """For each label, the sum of the values of the states in which it is 1: [labels, n] from [states, n]."""
        if self._ones is None or watched(values):
            return self.states.to(values).T @ values
        result: Tensor = _Sums.apply(values, *reversed(self._ones))  # type: ignore[no-untyped-call]
        return result

    def _keys(self, y: Tensor) -> Tensor:
        """A key for each label vector [labels, n]: the sum, modulo 2^64, of a random number per label that is 1."""
        return ((y > 0.5).to(torch.int64) * self._code[:, None]).sum(0)


class _Sums(torch.autograd.Function):
    """The product of a matrix of zeros and ones, given by its lists and those of its transpose, with a matrix."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, ones: _Lists, transposed: _Lists) -> Tensor:
        ctx.ones, ctx.transposed = ones, transposed
        columns, starts = ones
        if len(columns) == 0:  # embedding_bag takes no empty list
            return values.new_zeros((len(starts), values.shape[1]))
        return F.embedding_bag(columns, values, starts, mode="sum")

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        return _Sums.apply(slopes[0], ctx.transposed, ctx.ones), None, None  # type: ignore[no-untyped-call]

    @staticmethod
    def jvp(ctx: Any, *changes: Any) -> Any:
        return _Sums.apply(changes[0], ctx.ones, ctx.transposed)  # type: ignore[no-untyped-call]


class KnownStates(Components):
    """One component with f(y) = exp(score of y) for the states of a table, and zero for every other y.

    Args:
        scores: log f [states, batch]; -inf for states that the given inputs exclude.
    """

    count = 1

    def __init__(self, domain: Domain, table: StateTable, scores: Tensor, is_normalized: bool = False) -> None:
        self.domain, self._table, self._scores, self._is_normalized = domain, table, scores, is_normalized
        seen = scores
        if domain.has_evidence and domain.observed is not None:
            observed = domain.observed[: domain.circuit.num_labels, None]
            states = table.states.T[:, :, None]
            seen = seen.masked_fill(((states != observed) & ~observed.isnan()).any(0), NEGATIVE_INFINITY)
        self._seen = seen

    @classmethod
    def of(cls, domain: Domain, table: StateTable, odds: Tensor, bias: Tensor) -> KnownStates:
        """A softmax of θ·y + b_y over the states that the given inputs allow.

        Args:
            odds: θ [labels, batch].
            bias: b [states].
        """
        scores = table.sums_over_labels(odds) + bias.to(odds)[:, None]
        if domain.circuit.given:
            scores = scores.masked_fill(~_allowed(domain, table), NEGATIVE_INFINITY)
            return cls(domain, table, scores - _finite(log_sum_exp(scores, 0)))
        return cls(domain, table, torch.log_softmax(scores, 0), is_normalized=True)

    @property
    def is_deterministic(self) -> bool:
        return True

    @property
    def size(self) -> int:
        return len(self._scores)

    @property
    def is_normalized(self) -> bool:
        return self._is_normalized and not self.domain.has_evidence

    @property
    def log_z(self) -> Tensor:
        return log_sum_exp(self._seen, 0)[None]

    def log_scores(self, y: Tensor) -> Tensor:
        row = self._table.find(y.flatten(1)).view(y.shape[1:])
        scores = self._scores.gather(0, row.clamp(min=0))
        return scores.masked_fill(row < 0, NEGATIVE_INFINITY)[:, None]

    def marginals(self) -> Tensor:
        return self._table.sums_over_states(self._probabilities)[:, None]

    def best(self) -> tuple[Tensor, Tensor]:
        value, row = self._seen.max(0)
        return self._states[row].T[:, None], value[None]

    def ranked(self, k: int) -> tuple[Tensor, Tensor]:
        size = min(k, len(self._seen))
        values, rows = self._seen.topk(size, 0)
        least = values[-1:] if size == k else torch.full_like(values[-1:], NEGATIVE_INFINITY)
        return self._states[rows].permute(2, 0, 1), least

    def sample(self, component: Tensor, generator: torch.Generator | None) -> Tensor:
        share = self._probabilities
        # if no state is possible, this component is never drawn, so any state will do
        share = torch.where(share.sum(0) > 0, share, torch.ones_like(share))
        row = torch.multinomial(share.T, len(component), replacement=True, generator=generator).T
        return self._states[row].permute(2, 0, 1)

    def entropies(self) -> Tensor:
        terms: Tensor = torch.special.entr(self._probabilities)
        return terms.sum(0)[None]

    def select(self, index: Tensor) -> Any:
        return KnownStates(self.domain.select(index), self._table, self._scores[:, index], self._is_normalized)

    def within(self, domain: Domain) -> Any:
        return KnownStates(domain, self._table, self._scores, self._is_normalized)

    def tempered(self, temperature: Tensor) -> Any:
        scores = self._scores / temperature.to(self._scores)
        return KnownStates(self.domain, self._table, scores - _finite(log_sum_exp(scores, 0)), self._is_normalized)

    def tilted(self, zeros: Tensor, ones: Tensor) -> Any:
        states = self._table.states.to(ones)
        tilt = states @ ones[:, 0] + (1 - states) @ zeros[:, 0]
        return KnownStates(self.domain, self._table, self._scores.to(tilt) + tilt)

    @property
    def _states(self) -> Tensor:
        return self._table.states.to(self._seen)

    @property
    def _probabilities(self) -> Tensor:
        """[states, batch]; all zero where no state is possible."""
        return torch.exp(self._seen - _finite(self.log_z))


def _lists(matrix: Tensor) -> _Lists:
    rows, columns = (matrix > 0).nonzero().unbind(1)
    counts = torch.bincount(rows, minlength=len(matrix))
    return columns.contiguous(), counts.cumsum(0) - counts


def _allowed(domain: Domain, table: StateTable) -> Tensor:
    """Which states satisfy the constraint for each element of the batch: bool [states, batch]."""
    step = max(1, _MOST_NUMBERS // max(1, domain.batch * len(domain.circuit.labels)))
    with torch.no_grad():
        parts = [
            domain.satisfied(rows.to(domain.dtype).T[:, :, None].expand(-1, -1, domain.batch))
            for rows in table.states.split(step)
        ]
    return torch.cat(parts)


def _finite(values: Tensor) -> Tensor:
    return values.masked_fill(values == NEGATIVE_INFINITY, 0.0)
