"""Components of a factorised q: independent labels times the constraint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.distributions.circuits import CircuitComponents
from semprola.distributions.domain import Domain
from semprola.engine import Literals, Plan, Structure

_NEGATIVE_INFINITY = float("-inf")


class IndependentLabels(CircuitComponents):
    """Independent labels times the constraint.

    Args:
        domain: which states are allowed.
        odds: log-odds of the labels [labels, components * batch].
        count: number of components.
    """

    def __init__(self, domain: Domain, odds: Tensor, count: int) -> None:
        self.domain, self.count, self.odds = domain, count, odds

    @property
    def is_deterministic(self) -> bool:
        return True

    @property
    def weights(self) -> None:
        return None

    def plan(self, *, explicit: bool) -> Plan:
        structure = self.domain.structure
        return structure.constraint_explicit if explicit else structure.constraint

    def scores(self) -> tuple[Tensor, Tensor]:
        blank = self.odds.new_zeros((len(self.domain.circuit.given), self.odds.shape[1]))
        return torch.cat([F.logsigmoid(-self.odds), blank]), torch.cat([F.logsigmoid(self.odds), blank])

    def evaluation(self) -> tuple[Plan, Literals]:
        if self.domain.observed is not None or self._tilt is not None:
            return super().evaluation()
        plan = self.plan(explicit=False)
        return plan, Literals.of_odds(plan, self.odds)

    def log_scores(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        labels, samples, batch = y.shape
        zeros, ones = (part[:labels].view(labels, 1, self.count, batch) for part in self.scores())
        total = torch.where(y[:, :, None] > 0.5, ones, zeros).sum(0)
        with torch.no_grad():
            violated = ~self.domain.satisfied(y)
        return total.masked_fill(violated.view(samples, 1, batch), _NEGATIVE_INFINITY)

    def under(self, structure: Structure) -> IndependentLabels:
        """The same labels under another constraint."""
        return IndependentLabels(self.domain.under(structure), self.odds, self.count)

    def tempered(self, temperature: Tensor) -> Any:
        return IndependentLabels(self.domain, self.scaled(self.odds, temperature), self.count)

    def _taken(self, index: Tensor) -> Any:
        return IndependentLabels(self.domain, self.columns(self.odds, index), self.count)
