"""Two circuits: q times the constraint, renormalised (Def. 1 of the paper); q is factorised, or has the same vtree."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor

from semprola.circuit import Circuit
from semprola.distributions.arguments import (
    flat_columns,
    given_rows,
    normalized_mixing,
    rows_as_columns,
    rows_named,
    with_components,
)
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.circuits import CircuitComponents
from semprola.distributions.domain import Domain, plans_of
from semprola.distributions.evaluator import Components, Evaluator
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.numeric import remembered
from semprola.engine import CircuitPlans, CompatiblePlans, Literals, Plan, possible
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import UnsatisfiableError


class ProductDistribution(ConstrainedDistribution):
    """p(y | x) = q(y) c_K(x, y) / Z(x) with q a mixture of fully factorised distributions.

    Args:
        circuit: the compiled constraint (or its `CircuitPlans`).
        logits: log-odds of the labels in each component [*batch, components, labels].
        mixing_logits: one number per component [*batch, components]; may be left out if there is only one.
        given: values of the given variables [*batch, given].

    Raises:
        UnsatisfiableError: if a row of given inputs leaves no model; the message names the row.
    """

    def __init__(
        self,
        circuit: Circuit | CircuitPlans,
        logits: Tensor,
        mixing_logits: Tensor | None = None,
        given: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        plans = plans_of(circuit)
        labels = plans.circuit.num_labels
        if logits.dim() == 0 or logits.shape[-1] != labels:
            raise ValueError(f"logits must be [*batch, components, {labels}], not {tuple(logits.shape)}")
        made = product_evaluator(plans, logits, mixing_logits, given, IndependentLabels)
        super().__init__(*made, validate_args)

    @classmethod
    def of_rows(cls, plans: CircuitPlans, logits: Tensor, given: Any = None) -> ProductDistribution:
        """The distribution for one component; logits [*batch, labels] never have a dimension for components."""
        columns, size = rows_as_columns(logits)
        batch_shape = logits.shape[:-1]
        domain = _domain(plans, columns, batch_shape, given)
        made = cls.__new__(cls)
        ConstrainedDistribution.__init__(made, Evaluator(IndependentLabels(domain, columns, 1, size)), batch_shape)
        return made

    @property
    def logits(self) -> Tensor:
        """Log-odds of the labels in q [*batch, components, labels]."""
        components = self.evaluator.components
        if not isinstance(components, IndependentLabels):
            raise TypeError(f"a product has independent labels, not {type(components).__name__}")
        rows: Tensor = components.odds.unflatten(1, (components.count, components.batch)).permute(2, 1, 0)
        return rows.reshape(*self.batch_shape, components.count, len(components.odds)).clone()


def product_evaluator(
    plans: CircuitPlans,
    logits: Tensor,
    mixing_logits: Tensor | None,
    given: Any,
    components: Callable[[Domain, Tensor, int], Components],
) -> tuple[Evaluator, Sequence[int]]:
    """The evaluator of some q times the constraint, and its batch shape.

    Args:
        logits: parameters of q [*batch, components, parameters], or [*batch, parameters] for one component.
        mixing_logits: one number per component [*batch, components]; None if there is only one.
        given: values of the given variables [*batch, given].
        components: makes the components from a domain, parameters [parameters, components * batch] and the number of
            components.
    """
    logits = with_components(logits, mixing_logits)
    *batch_shape, count, _ = logits.shape
    columns = flat_columns(logits)
    log_mixing = normalized_mixing(mixing_logits, count, batch_shape, columns)
    domain = _domain(plans, log_mixing, batch_shape, given)
    return Evaluator(components(domain, columns, count), log_mixing), batch_shape


def _domain(plans: CircuitPlans, like: Tensor, batch_shape: Sequence[int], given: Any) -> Domain:
    """The domain with these given inputs; refuses, by row, those that leave no model."""
    domain = Domain(plans, like, like.shape[1], given_rows(plans.circuit, given, batch_shape, like))
    if domain.observed is None or torch.compiler.is_compiling():
        return domain
    plan = plans.constraint
    with torch.no_grad():
        _, some = possible(plan, Literals.of(plan, *domain.masks).leaves)
    if not bool(some.all()):
        raise UnsatisfiableError(f"the given inputs leave no model{rows_named(~some, batch_shape)}")
    return domain


class CompatibleCircuits(CircuitComponents):
    """A circuit over the constraint's vtree times the constraint.

    Args:
        logits: parameters of q before normalisation [parameters, components * batch].
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
