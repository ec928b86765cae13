"""Two circuits: an expressive q times the constraint, renormalised (Def. 1 of the paper)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from semprola.distributions.components import Components
from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.plans import plans_of
from semprola.engine import CircuitPlans, Literals, possible
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
        plans: plans of the constraint.
        logits: parameters of q [*batch, components, parameters], or [*batch, parameters] for one component.
        mixing_logits: one number per component [*batch, components]; None if there is only one.
        given: values of the given variables [*batch, given].
        components: makes the components from a domain, parameters [parameters, components * batch] and the number of
            components.

    Raises:
        UnsatisfiableError: if a row of given inputs leaves no model; the message names the row.
    """
    logits = with_components(logits, mixing_logits)
    *batch_shape, count, _ = logits.shape
    columns = flat_columns(logits)
    log_mixing = normalized_mixing(mixing_logits, count, batch_shape, columns)
    domain = _domain(plans, log_mixing, batch_shape, given)
    return Evaluator(components(domain, columns, count), log_mixing), batch_shape


def _domain(plans: CircuitPlans, like: Tensor, batch_shape: Sequence[int], given: Any) -> Domain:
    """The domain with these given inputs; refuses, by row, those that leave no model.

    Args:
        plans: plans of the constraint.
        like: a tensor with one column per element of the batch.
        batch_shape: shape of the batch.
        given: values of the given variables.
    """
    domain = Domain(plans, like, like.shape[1], given_rows(plans.circuit, given, batch_shape, like))
    if domain.observed is None or torch.compiler.is_compiling():
        return domain
    plan = plans.constraint
    with torch.no_grad():
        _, some = possible(plan, Literals.of(plan, *domain.masks).leaves)
    if not bool(some.all()):
        raise UnsatisfiableError(f"the given inputs leave no model{rows_named(~some, batch_shape)}")
    return domain
