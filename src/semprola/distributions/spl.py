"""One circuit: the constraint's own sums carry the weights (Def. 3.6 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from semprola.circuit import Circuit
from semprola.distributions.arguments import flat_columns, given_rows, normalized_mixing, rows_named, with_components
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.circuits import CircuitComponents
from semprola.distributions.domain import Domain, plans_of
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.numeric import remembered
from semprola.engine import (
    CircuitPlans,
    Literals,
    Plan,
    likelihood,
    log_softmax,
    logits_of,
    marginal_likelihood,
    possible,
)
from semprola.errors import UnsatisfiableError


class WeightedBranches(CircuitComponents):
    """The constraint's circuit with a softmax of logits at every sum.

    Args:
        logits: [logits, components * batch]
        alive: which weights the given inputs leave possible, bool [W, components * batch]; None for all.
    """

    _is_local = True

    def __init__(self, domain: Domain, logits: Tensor, count: int, alive: Tensor | None = None) -> None:
        self.domain, self.count = domain, count
        self.logits, self._alive = logits, alive

    @property
    def is_deterministic(self) -> bool:
        return self.domain.plans.is_deterministic

    def plan(self, *, explicit: bool) -> Plan:
        plans = self.domain.plans
        return plans.layer_explicit if explicit else plans.layer

    @remembered
    def weights(self) -> Tensor:
        # the likelihood of a state needs few weights, so all are normalised only if a query needs them
        return log_softmax(self.domain.plans.layer, self.logits, self._alive)

    @remembered
    def _log_z(self) -> Tensor:
        observed = self.domain.observed
        if observed is None or self._tilt is not None or self._alive is not None:
            return self._by_weights()
        # directly from the logits, without normalising all weights beforehand
        plan = self.plan(explicit=self.domain.needs_explicit)
        return marginal_likelihood(plan, self._split(self.logits), observed)

    def log_scores(self, y: Tensor) -> Tensor:
        plan = self.domain.plans.layer_explicit
        if self.is_deterministic:
            # y uses exactly one branch of each sum that it reaches, so log p is a sum of log-softmax terms
            labels = self.domain.circuit.num_labels
            return likelihood(plan, self._split(self.logits), self.domain.rows_of(y), None, labels)
        return self.log_values(plan, self.weights, y)

    def tempered(self, temperature: Tensor) -> Any:
        # the logits of the uniform distribution are the log-counts of models below each branch, not zeros
        plans = self.domain.plans
        uniform = logits_of(plans.layer, plans.log_counts).to(self.logits)[:, None]
        logits = uniform + self.scaled(self.logits - uniform, temperature)
        return WeightedBranches(self.domain, logits, self.count, self._alive)

    def _taken(self, index: Tensor) -> Any:
        alive = None if self._alive is None else self.columns(self._alive, index)
        return WeightedBranches(self.domain, self.columns(self.logits, index), self.count, alive)


class SPLDistribution(ConstrainedDistribution):
    """p(y | x) = c_K(y, x; Ω): every sum of the constraint circuit weighs its branches by a softmax.

    Args:
        circuit: the compiled constraint (or its `CircuitPlans`).
        logits: of the sums' branches [*batch, components, logits], or [*batch, logits] for one component. A sum with
            two branches has one logit, that of the second relative to the first;
            ``CircuitPlans(circuit).layer.num_logits`` says how many there are.
        mixing_logits: one number per component [*batch, components]; may be left out if there is only one.
        given: values of the given variables [*batch, given].
        units: number of copies of each sum.
        mixing: which units of a product's two inputs are multiplied, "cross" or "elementwise".

    Raises:
        UnsatisfiableError: if a row of given inputs leaves no model; the message names the row.
    """

    def __init__(
        self,
        circuit: Circuit | CircuitPlans,
        logits: Tensor,
        mixing_logits: Tensor | None = None,
        given: Any = None,
        units: int = 1,
        validate_args: bool | None = None,
        mixing: str = "cross",
    ) -> None:
        plans = plans_of(circuit, units, mixing)
        plan = plans.layer
        if logits.dim() == 0 or logits.shape[-1] != plan.num_logits:
            raise ValueError(f"logits must be [*batch, components, {plan.num_logits}], not {tuple(logits.shape)}")
        logits = with_components(logits, mixing_logits)
        *batch_shape, count, _ = logits.shape
        components = weighted_branches(plans, logits, given)
        log_mixing = normalized_mixing(mixing_logits, count, batch_shape, components.logits)
        super().__init__(Evaluator(components, log_mixing), batch_shape, validate_args)


class ScoredDistribution(SPLDistribution):
    """An `SPLDistribution` that knows the log-probabilities of some states and computes everything else when asked.

    Args:
        y: the states [*batch, labels].
        log_probs: their log-probabilities [*batch].
        make: makes the mixture for other queries, or raises an error if it is too late for them.
    """

    def __init__(self, circuit: Circuit, y: Tensor, log_probs: Tensor, make: Callable[[], Evaluator]) -> None:
        Distribution.__init__(self, log_probs.shape, torch.Size([circuit.num_labels]), validate_args=False)
        self._validate_args = __debug__
        self._known, self._version, self._log_probs, self._make = y, y._version, log_probs, make
        self._whole: Evaluator | None = None

    @property
    def evaluator(self) -> Evaluator:
        """The mixture, over a flat batch."""
        if self._whole is None:
            self._whole = self._make()
        return self._whole

    @evaluator.setter
    def evaluator(self, evaluator: Evaluator) -> None:
        # the known log-probabilities do not apply to another mixture
        self._whole, self._version = evaluator, -1

    def log_prob(self, value: Any, on_violation: str | None = None) -> Tensor:
        """See :meth:`SPLDistribution.log_prob`."""
        if on_violation is None and value is self._known and value._version == self._version:
            return self._log_probs.clone()
        return super().log_prob(value, on_violation)


def weighted_branches(plans: CircuitPlans, logits: Tensor, given: Any = None) -> WeightedBranches:
    """The components for logits [*batch, components, logits] and given inputs [*batch, given]."""
    *batch_shape, count, _ = logits.shape
    columns = flat_columns(logits)
    observed = given_rows(plans.circuit, given, batch_shape, columns)
    domain = Domain(plans, columns, math.prod(batch_shape), observed)
    alive = None if observed is None else _alive(domain, batch_shape).repeat(1, count)
    return WeightedBranches(domain, columns, count, alive)


def _alive(domain: Domain, batch_shape: Any) -> Tensor:
    """Which weights some model of the given inputs uses: bool [W, batch]."""
    plan = domain.plans.layer
    with torch.no_grad():
        alive, some = possible(plan, Literals.of(plan, *domain.masks).leaves)
    if not torch.compiler.is_compiling() and not bool(some.all()):
        raise UnsatisfiableError(f"the given inputs leave no model{rows_named(~some, batch_shape)}")
    return alive
