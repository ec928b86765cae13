"""Components of a factorised q: independent labels times the constraint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.distributions.arguments import is_hidden
from semprola.distributions.circuits import CircuitComponents
from semprola.distributions.domain import Domain
from semprola.distributions.numeric import remembered
from semprola.engine import CircuitPlans, Literals, Plan, independent, log_value, watched
from semprola.engine.numbers import NEGATIVE_INFINITY

_MOST_NUMBERS = 2**24
"""Largest tensor (in numbers) made to evaluate several samples at once; larger jobs are split."""
_LARGEST_ERROR = 1e-3
"""Largest acceptable error of a log-probability due to the rounding of log-odds."""


class IndependentLabels(CircuitComponents):
    """Independent labels times the constraint.

    Args:
        odds: log-odds of the labels [labels, components * batch].
    """

    def __init__(self, domain: Domain, odds: Tensor, count: int, size: float | None = None) -> None:
        self.domain, self.count, self.odds, self._size = domain, count, odds, size

    @property
    def is_deterministic(self) -> bool:
        return True

    @property
    def is_normalized(self) -> bool:
        # the circuit is asked even then if log-odds are extreme, so that rounding errors cancel
        plain = self.domain.has_no_rule and not self.domain.has_evidence and self._tilt is None
        return plain and not self._is_extreme

    @property
    def weights(self) -> None:
        return None

    def plan(self, *, explicit: bool) -> Plan:
        plans = self.domain.plans
        return plans.constraint_explicit if explicit else plans.constraint

    def scores(self) -> tuple[Tensor, Tensor]:
        blank = self.odds.new_zeros((len(self.domain.circuit.given), self.odds.shape[1]))
        return torch.cat([F.logsigmoid(-self.odds), blank]), torch.cat([F.logsigmoid(self.odds), blank])

    def evaluation(self) -> tuple[Plan, Literals]:
        if self.domain.observed is None and self._tilt is None and not self._is_extreme:
            plan = self.plan(explicit=False)
            return plan, Literals.of_odds(plan, self.odds)
        plan = self.plan(explicit=self.domain.needs_explicit or self._is_extreme)
        return plan, Literals.of(plan, *self.observed_scores())

    @remembered
    def _log_z(self) -> Tensor:
        if not self._is_bare:
            return self._by_weights()
        return independent.log_partition(self.plan(explicit=False), self.odds).view(self.count, self.batch)

    @property
    def log_z_alone(self) -> Tensor:
        return self._log_z_alone if self._is_bare else self.log_z[0]

    @remembered
    def _log_z_alone(self) -> Tensor:
        return independent.log_partition(self.plan(explicit=False), self.odds)

    def _copy(self) -> Any:
        new = super()._copy()
        IndependentLabels._log_z_alone.forget(new)
        return new

    def log_probs_alone(self, y: Tensor) -> Tensor | None:
        if y.shape[1] != 1 or not self._is_bare or watched(y):
            return None
        plans = self.domain.plans
        return independent.log_likelihood(plans.constraint, plans.constraint_explicit, self.odds, y[:, 0])[None]

    def best_alone(self) -> Tensor:
        if not self._is_bare:
            return super().best_alone()
        return independent.likeliest(self.plan(explicit=False), self.odds)

    @property
    def _is_bare(self) -> bool:
        """Whether queries can be answered from the log-odds alone: nothing is observed, given or tilted, or watches."""
        domain = self.domain
        bare = domain.observed is None and self._tilt is None and not domain.circuit.given
        return bare and not watched(self.odds) and not self._is_extreme

    def log_scores(self, y: Tensor) -> Tensor:
        _, samples, batch = y.shape
        if self._is_extreme and samples:
            return self._through_the_circuit(y)
        total = self._log_q(y)
        if self.domain.has_no_rule:
            return total
        with torch.no_grad():
            violated = ~self.domain.satisfied(y)
        return total.masked_fill(violated.view(samples, 1, batch), NEGATIVE_INFINITY)

    def _log_q(self, y: Tensor) -> Tensor:
        """log q of y [labels, samples, batch], whatever the constraint says [samples, components, batch]."""
        labels, samples, batch = y.shape
        on = y[:, :, None] > 0.5
        if samples == 1:  # half as many sigmoids
            odds = self.odds.view(labels, 1, self.count, batch)
            return F.logsigmoid(torch.where(on, odds, -odds)).sum(0)
        zeros, ones = (part[:labels].view(labels, 1, self.count, batch) for part in self.scores())
        return torch.where(on, ones, zeros).sum(0)

    @remembered  # torch.compile cannot follow functools.cached_property
    def _is_extreme(self) -> bool:
        """Whether log-odds are so large that the rounding errors of their sum over labels are too large."""
        size = self._size
        if size is None:
            if is_hidden(self.odds) or not self.odds.numel():
                return False
            size = float(torch.linalg.vector_norm(self.odds.detach(), dim=0).max())
        return size * torch.finfo(self.odds.dtype).eps > _LARGEST_ERROR

    def _through_the_circuit(self, y: Tensor) -> Tensor:
        """The result of `log_scores`, evaluated like log Z, so that the rounding errors of both cancel."""
        labels, _, batch = y.shape
        parts = []
        for some in y.split(max(1, _MOST_NUMBERS // max(1, self.size * batch)), dim=1):
            repeated = torch.arange(batch, device=y.device).repeat(some.shape[1])
            many = self.select(repeated)
            domain, conflict = many.domain.observe(some.reshape(labels, repeated.numel()))
            log_z = many.within(domain).log_z.masked_fill(conflict, NEGATIVE_INFINITY)
            parts.append(log_z.view(self.count, some.shape[1], batch).transpose(0, 1))
        return torch.cat(parts)

    @property
    def is_plain(self) -> bool:
        """Whether nothing but inputs is observed, and scores are the labels' own."""
        return self.count == 1 and not self.domain.has_evidence and self._tilt is None and not self._is_extreme

    def log_value_without(self, excluded: Tensor) -> Tensor:
        """log Z [batch] if these labels are off; for whole variables only, whose remaining label is then on.

        Args:
            excluded: bool [variables, batch].
        """
        zeros, ones = self.observed_scores()
        plan = self.plan(explicit=False)
        literals = Literals.of(plan, zeros, ones.masked_fill(excluded, NEGATIVE_INFINITY))
        return log_value(plan, None, literals.leaves) + literals.constant

    def under(self, plans: CircuitPlans) -> IndependentLabels:
        """The same labels under another constraint."""
        return IndependentLabels(self.domain.under(plans), self.odds, self.count)

    def tempered(self, temperature: Tensor) -> Any:
        return IndependentLabels(self.domain, self.scaled(self.odds, temperature), self.count)

    def _taken(self, index: Tensor) -> Any:
        return IndependentLabels(self.domain, self.columns(self.odds, index), self.count)
