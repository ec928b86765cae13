"""Components that are circuits of the same shape: a plan, weights of its edges, scores of its literals."""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.domain import Domain, maximum
from semprola.distributions.evaluator import Components
from semprola.distributions.numeric import remembered
from semprola.engine import Literals, Plan, choices, log_value, posterior
from semprola.engine.numbers import NEGATIVE_INFINITY

_MOST_NUMBERS = 2**24
"""Largest tensor (in numbers) made to evaluate several samples at once; larger jobs are split."""


class CircuitComponents(Components):
    """Components f_c, each a circuit with its own parameters times the constraint.

    A new q is a subclass. It takes its parameters in the constructor, and defines its product with the constraint as
    `plan` and `weights` (or `scores`, if q is a product of literals), its likelihood as `log_scores`, and `_taken` to
    select some elements of the batch.

    An engine column is one pair of a component and a batch element, ordered by component first.
    """

    _tilt: tuple[Tensor, Tensor] | None = None
    _is_local: bool = False
    """Whether the weights of every sum add up to one, so that components are normalised before any evidence."""

    # what a subclass defines ----------------------------------------------------------------------------------------

    @abstractmethod
    def plan(self, *, explicit: bool) -> Plan:
        """The plan of a component; if explicit, with zero-suppressed literals spelled out."""

    @property
    @abstractmethod
    def weights(self) -> Tensor | None:
        """Log-weights of the plan's edges [W, components * batch]; None for weights of one."""

    @abstractmethod
    def _taken(self, index: Tensor) -> Any:
        """A copy with the parameters of some elements of the batch, by flat index; see `columns`."""

    def scores(self) -> tuple[Tensor, Tensor]:
        """Log-scores of "variable is 0" and "is 1" before anything is observed [variables, components * batch]."""
        shape = (self.domain.circuit.num_variables, self.count * self.batch)
        blank = torch.zeros(shape, dtype=self.domain.dtype, device=self.domain.device)
        return blank, blank

    @property
    def bound_plan(self) -> tuple[Plan, Tensor] | None:
        """A plan that bounds the maximum of components with several units, and its weights' indices (-1: none)."""
        return None if self.is_deterministic else self.domain.plans.bound

    # the interface --------------------------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        plan = self.plan(explicit=self.domain.needs_explicit)
        return self.count * (plan.num_edges + self.domain.circuit.num_variables)

    @property
    def is_normalized(self) -> bool:
        return self._is_local and not self.domain.has_evidence and self._tilt is None

    @property
    def log_z(self) -> Tensor:
        if self.is_normalized:
            return torch.zeros((self.count, self.batch), dtype=self.domain.dtype, device=self.domain.device)
        return self._log_z

    @remembered
    def _log_z(self) -> Tensor:
        return self._by_weights()

    def _by_weights(self) -> Tensor:
        """log Z [components, batch] from the log-weights and the value of the circuit."""
        plan, literals = self.evaluation()
        value = log_value(plan, self._own_weights, literals.leaves) + literals.constant
        return value.view(self.count, self.batch)

    def marginals(self) -> Tensor:
        _, ones = self.posterior_on(self.plan(explicit=self.domain.needs_explicit))
        return self._split(ones[: self.domain.circuit.num_labels])

    def best(self) -> tuple[Tensor, Tensor]:
        plan = self.plan(explicit=self.domain.needs_explicit)
        states, values = maximum(plan, self._own_weights, *self.observed_scores())
        states = self._split(states[: self.domain.circuit.num_labels])
        bounds = values.view(self.count, self.batch)
        if self.bound_plan is None:
            return states, bounds
        better, bounds = self._bounded(*self.bound_plan)
        return torch.cat([states, better], dim=1), bounds

    def ranked(self, k: int) -> tuple[Tensor, Tensor]:
        plans, labels = self.domain.plans, self.domain.circuit.num_labels
        literals = Literals.of(plans.layer_explicit, *self.observed_scores(), maximize=True)
        states, values = choices.top_k(plans.layer_explicit, self._own_weights, literals.leaves, k)
        found = states.shape[1]
        least = (values[-1] + literals.constant).view(self.count, self.batch)
        if found < k:  # the list is complete
            least = torch.full_like(least, NEGATIVE_INFINITY)
        return states[:labels].reshape(labels, found * self.count, self.batch), least

    def sample(self, component: Tensor, generator: torch.Generator | None) -> Tensor:
        plan, literals = self.evaluation()
        columns = component * self.batch + torch.arange(self.batch, device=component.device)
        states = choices.sample(plan, self._own_weights, literals, columns, generator)
        return states[: self.domain.circuit.num_labels]

    def entropies(self) -> Tensor:
        # -E[log f(y) / Z] = log Z - Σ_edges flow · weight - Σ_labels E[log-score]
        return self.log_z - self._expected(self)

    def select(self, index: Tensor) -> Any:
        new = self._taken(index)
        new.domain = self.domain.select(index)
        new._tilt = None if self._tilt is None else (self._tilt[0][:, :, index], self._tilt[1][:, :, index])
        return new

    def within(self, domain: Domain) -> Any:
        new = self._copy()
        new.domain = domain
        return new

    def tilted(self, zeros: Tensor, ones: Tensor) -> Any:
        new = self._copy()
        given = zeros.new_zeros((len(self.domain.circuit.given), *zeros.shape[1:]))
        new._tilt = torch.cat([zeros, given]), torch.cat([ones, given])
        if self._tilt is not None:
            new._tilt = new._tilt[0] + self._tilt[0], new._tilt[1] + self._tilt[1]
        return new

    def expected_log_scores(self, other: Components) -> Tensor | None:
        return self._expected(other) if isinstance(other, CircuitComponents) else None

    def greedy(self) -> Tensor:
        weights = self._own_weights
        if weights is None:
            return super().greedy()
        plan, literals = self.evaluation()
        return self._split(choices.follow(plan, weights, literals)[: self.domain.circuit.num_labels])

    # for subclasses and divergences ---------------------------------------------------------------------------------

    def observed_scores(self) -> tuple[Tensor, Tensor]:
        """The literals' scores, tilted, and -inf where observations exclude them [variables, components * batch]."""
        zeros, ones = self.scores()
        if self._tilt is not None:
            zeros, ones = (s.to(t) + self._repeated(t) for s, t in zip((zeros, ones), self._tilt, strict=True))
        if self.domain.observed is None:
            return zeros, ones
        no_zero, no_one = self.domain.masks
        return zeros + self._repeated(no_zero[:, None]), ones + self._repeated(no_one[:, None])

    def evaluation(self) -> tuple[Plan, Literals]:
        """The plan that fits the observations, and the literals' scores for it."""
        plan = self.plan(explicit=self.domain.needs_explicit)
        observed = self.domain.observed
        if observed is not None and self._tilt is None and type(self).scores is CircuitComponents.scores:
            return plan, Literals.of_observed(plan, self._repeated(observed[:, None]), self.domain.dtype)
        return plan, Literals.of(plan, *self.observed_scores())

    def posterior_on(self, plan: Plan) -> tuple[Tensor, Tensor]:
        """Flows through the edges of a plan [W, columns] and probabilities of the variables [variables, columns]."""
        literals = Literals.of(plan, *self.observed_scores())
        weights = self._own_weights
        if weights is None:
            weights = literals.leaves.new_zeros((plan.num_weights, literals.leaves.shape[1]))
        edge_flows, leaf_flows = posterior(plan, weights, literals.leaves)
        return edge_flows, literals.probability_of_one(leaf_flows)

    def _expected(self, other: CircuitComponents) -> Tensor:
        """E[log f'(y)] under each component [components, batch]; f' is the component itself, or another's only one.

        f' must be positive wherever the component is.
        """
        zeros, ones = other.observed_scores()
        weights, explicit = other._own_weights, self.domain.needs_explicit
        plan = self.plan(explicit=explicit) if weights is None else other.plan(explicit=explicit)
        edge_flows, probability = self.posterior_on(plan)
        total = _expectation(probability, ones) + _expectation(1 - probability, zeros)
        if weights is not None:
            total = total + _expectation(edge_flows, weights)
        return total.view(self.count, self.batch)

    def log_values(self, plan: Plan, weights: Tensor, y: Tensor) -> Tensor:
        """Log-values of a plan at states y [labels, samples, batch], per component [samples, components, batch]."""
        _, samples, batch = y.shape
        leaves = self.domain.leaves_of(y).unflatten(1, (samples, batch))
        step = max(1, samples)
        # a traced program must not depend on the batch size that it was traced with
        if not torch.compiler.is_compiling():
            step = max(1, _MOST_NUMBERS // max(1, plan.num_edges * self.count * self.batch))
        parts = []
        for first in range(0, max(1, samples), step):
            part = leaves[:, first : first + step, None].expand(-1, -1, self.count, -1)
            repeated = weights if part.shape[1] == 1 else weights.repeat(1, part.shape[1])
            parts.append(log_value(plan, repeated, part.flatten(1)))
        return torch.cat(parts).view(samples, self.count, self.batch)

    def columns(self, parameters: Tensor, index: Tensor) -> Tensor:
        """The columns of parameters [rows, components * batch] that belong to some elements of the batch."""
        return self._split(parameters)[:, :, index].flatten(1)

    def scaled(self, parameters: Tensor, temperature: Tensor) -> Tensor:
        """Parameters [rows, components * batch] divided by the temperature of their component [components]."""
        return (self._split(parameters) / temperature.to(parameters)[:, None]).flatten(1)

    @property
    def _own_weights(self) -> Tensor | None:
        """The weights, converted to the type of the tilt, if any."""
        weights = self.weights
        return weights if weights is None or self._tilt is None else weights.to(self._tilt[0].dtype)

    def _bounded(self, plan: Plan, carried: Tensor) -> tuple[Tensor, Tensor]:
        """Candidates and bounds for the maximum of components with several units."""
        weights = self._own_weights
        if weights is None:
            raise TypeError("components with several units have weights")
        carried = carried.to(weights.device)
        known = carried >= 0
        carried_weights = weights.new_zeros((len(carried), weights.shape[1]))
        carried_weights[known] = weights[carried[known]]
        literals = Literals.of(plan, *self.observed_scores(), maximize=True)
        states, bounds = choices.bound(plan, carried_weights, literals)
        return self._split(states[: self.domain.circuit.num_labels]), bounds.view(self.count, self.batch)

    def _split(self, columns: Tensor) -> Tensor:
        """[…, components, batch] from [..., components * batch]."""
        split: Tensor = columns.unflatten(1, (self.count, self.batch))
        return split

    def _repeated(self, rows: Tensor) -> Tensor:
        """[…, components * batch] from [..., components or 1, batch]."""
        return rows.expand(-1, self.count, self.batch).flatten(1)

    def _copy(self) -> Any:
        """A copy without the cached values that depend on observations and tilts."""
        new = copy.copy(self)
        type(self)._log_z.forget(new)
        return new


def _expectation(probability: Tensor, score: Tensor) -> Tensor:
    """Σ probability · score over the terms with a finite score; the others must have probability zero."""
    return (probability * score.masked_fill(score == NEGATIVE_INFINITY, 0.0)).sum(0)
