"""Two circuits, where q has the constraint's structure: a hidden Markov model or a circuit over the vtree."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.circuits import CircuitComponents
from semprola.distributions.domain import Domain
from semprola.distributions.numeric import remembered
from semprola.distributions.product import product_evaluator
from semprola.engine import CompatiblePlans, Plan
from semprola.engine.numbers import NEGATIVE_INFINITY


class CompatibleCircuits(CircuitComponents):
    """A circuit over the constraint's vtree times the constraint.

    Args:
        plans: q and its product with the constraint.
        domain: which states are allowed.
        logits: parameters of q before normalisation [parameters, components * batch].
        count: number of components.
    """

    def __init__(self, plans: CompatiblePlans, domain: Domain, logits: Tensor, count: int) -> None:
        self.domain, self.count = domain, count
        self._plans, self._log_parameters = plans, plans.normalize(logits)

    @property
    def is_deterministic(self) -> bool:
        return self._plans.is_deterministic

    def plan(self, *, explicit: bool) -> Plan:
        return self._plans.product[0]

    @remembered
    def weights(self) -> Tensor:
        return self._log_parameters.index_select(0, self._plans.product[1].to(self._log_parameters.device))

    def log_scores(self, y: Tensor) -> Tensor:
        plan, parameter = self._plans.alone
        weights = self._log_parameters.index_select(0, parameter.to(self._log_parameters.device))
        with torch.no_grad():
            violated = ~self.domain.satisfied(y)
        return self.log_values(plan, weights, y).masked_fill(violated[:, None], NEGATIVE_INFINITY)

    def tempered(self, temperature: Tensor) -> Any:
        logits = self.scaled(self._log_parameters, temperature)
        return CompatibleCircuits(self._plans, self.domain, logits, self.count)

    def _taken(self, index: Tensor) -> Any:
        return CompatibleCircuits(self._plans, self.domain, self.columns(self._log_parameters, index), self.count)


class CompatibleDistribution(ConstrainedDistribution):
    """p(y | x) = q(y) c_K(x, y) / Z(x) with q a mixture of circuits compatible with the constraint.

    Args:
        plans: q and its product with the constraint.
        logits: parameters of q [*batch, components, parameters].
        mixing_logits: one number per component [*batch, components]; may be left out if there is only one.
        given: values of the given variables [*batch, given].
    """

    def __init__(
        self,
        plans: CompatiblePlans,
        logits: Tensor,
        mixing_logits: Tensor | None = None,
        given: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if logits.dim() == 0 or logits.shape[-1] != plans.num_parameters:
            raise ValueError(f"logits must be [*batch, components, {plans.num_parameters}], not {tuple(logits.shape)}")
        made = product_evaluator(plans, logits, mixing_logits, given, partial(CompatibleCircuits, plans))
        super().__init__(*made, validate_args)
