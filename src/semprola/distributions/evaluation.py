"""What every query of a distribution is made from: plans, scores, log Z, posteriors, and how batches are laid out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from semprola.circuit import Circuit
from semprola.distributions.arguments import flat_rows
from semprola.distributions.numeric import log_sum_exp
from semprola.engine import Literals, Plan, Structure, indicators, log_value, posterior, search, supported

_NEGATIVE_INFINITY = float("-inf")
_MOST_NUMBERS = 2**24
"""Largest tensor made to evaluate several samples at once; more are evaluated in several steps."""


class EvaluatedDistribution(Distribution):
    """A mixture of circuits, Σ_c π_c f_c(y) / Z, without its public queries.

    Inside, a batch is flat and comes last: tensors are [rows, components, batch], and an engine column is one pair of
    component and batch element.
    """

    def __init__(
        self,
        structure: Structure,
        log_mixing: Tensor,
        batch_shape: Sequence[int],
        observed: Tensor | None,
        has_evidence: bool,
        validate_args: bool | None,
    ) -> None:
        """See the subclasses.

        Args:
            structure: plans of the circuit.
            log_mixing: normalised log-weights of the components [components, batch].
            batch_shape: what the flat batch stands for.
            observed: values of variables, NaN where not observed [variables, batch]; None if nothing is.
            has_evidence: whether labels, not only given variables, are observed.
            validate_args: check the arguments of queries, as torch.distributions does.
        """
        self._structure = structure
        self._log_mixing = log_mixing
        self._observed = observed
        self._has_evidence = has_evidence
        super().__init__(torch.Size(batch_shape), torch.Size([structure.circuit.num_labels]), validate_args=False)
        # not torch's default, which torch.compile turns off for the whole process: a bad y would go unnoticed
        self._validate_args = __debug__ if validate_args is None else validate_args

    # what a subclass says -------------------------------------------------------------------------------------------

    def _plan(self, *, explicit: bool) -> Plan:
        """The plan that evaluates a component; explicit: with zero-suppressed literals spelled out."""
        raise NotImplementedError

    @property
    def _weights(self) -> Tensor | None:
        """Log-weights of the plan's edges [W, components * batch]."""
        raise NotImplementedError

    def _scores(self) -> tuple[Tensor, Tensor]:
        """Log-scores of "variable is 0" and "is 1" before anything is observed [variables, components * batch]."""
        raise NotImplementedError

    def _log_scores_of(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        """log f_c(y) [samples, components, batch] of y [labels, samples, batch]; -inf where y breaks the constraint.

        Codes are what a layer's `encode` made of y [samples, batch, most], for whoever can use them.
        """
        raise NotImplementedError

    def _select(self, index: Tensor, batch_shape: torch.Size, observed: Tensor | None, has_evidence: bool) -> Any:
        """The same distribution for some batch elements (by flat index) and with other observations."""
        raise NotImplementedError

    @property
    def _is_deterministic(self) -> bool:
        """Whether every component has disjoint branches, so that its maximum is exact."""
        raise NotImplementedError

    # shared by the queries ------------------------------------------------------------------------------------------

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self._structure.circuit

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.circuit.labels

    @property
    def _components(self) -> int:
        return self._log_mixing.shape[0]

    @property
    def _batch(self) -> int:
        return self._log_mixing.shape[1]

    @property
    def _dtype(self) -> torch.dtype:
        return self._log_mixing.dtype

    def _shaped(self, y: Tensor) -> Tensor:
        """[*batch, labels] from [labels, batch]."""
        return y.T.reshape(*self.batch_shape, self.circuit.num_labels)

    @property
    def _needs_explicit(self) -> bool:
        """Whether labels that the circuit suppresses at zero may be observed to be one."""
        return self._has_evidence and bool(self.circuit.zero_suppressed.any())

    def _observed_scores(self) -> tuple[Tensor, Tensor]:
        """The literals' scores, -inf where what is observed excludes them [variables, components * batch]."""
        zeros, ones = self._scores()
        if self._observed is None:
            return zeros, ones
        no_zero, no_one = indicators(self._observed, self._dtype)
        return zeros + self._per_component(no_zero), ones + self._per_component(no_one)

    def _split_columns(self, columns: Tensor) -> Tensor:
        """[…, components, batch] from [..., components * batch]."""
        split: Tensor = columns.unflatten(1, (self._components, self._batch))
        return split

    def _evaluation(self, *, maximize: bool = False) -> tuple[Plan, Literals]:
        """The plan for what is observed, and the literals' scores for it."""
        plan = self._plan(explicit=self._needs_explicit)
        return plan, Literals.of(plan, *self._observed_scores(), maximize=maximize)

    def _per_component(self, rows: Tensor) -> Tensor:
        """[…, components * batch] from [..., batch]."""
        return rows.repeat(1, self._components)

    @property
    def _component_log_z(self) -> Tensor:
        """log Z of each component [components, batch]."""

        def total() -> Tensor:
            plan, literals = self._evaluation()
            value = log_value(plan, self._weights, literals.leaves) + literals.constant
            return value.view(self._components, self._batch)

        return self._remembered("component_log_z", total)

    def _remembered(self, name: str, make: Callable[[], Tensor]) -> Tensor:
        """What `make` gives, worked out once; and again if that was without derivatives and now they are wanted."""
        wanted = torch.is_grad_enabled()
        found: tuple[Tensor, bool] | None = self.__dict__.get(f"_cached_{name}")
        if found is None or (wanted and not found[1]):
            found = self.__dict__[f"_cached_{name}"] = (make(), wanted)
        return found[0]

    @property
    def _log_partition(self) -> Tensor:
        """log Z [batch]."""
        if self._components == 1:
            return self._component_log_z[0]
        return log_sum_exp(self._log_mixing + self._component_log_z, 0)

    @property
    def _responsibilities(self) -> Tensor:
        """Posterior probability of each component [components, batch]."""
        if self._components == 1:
            return torch.ones_like(self._log_mixing)
        return torch.softmax(self._log_mixing + self._component_log_z, 0)

    def _posterior_on(self, plan: Plan) -> tuple[Tensor, Tensor]:
        """Flows through the edges of a plan [W, columns] and probabilities of the variables [variables, columns]."""
        literals = Literals.of(plan, *self._observed_scores())
        weights = self._weights
        if weights is None:
            weights = literals.leaves.new_zeros((plan.num_weights, literals.leaves.shape[1]))
        edge_flows, leaf_flows = posterior(plan, weights, literals.leaves)
        return edge_flows, literals.probability_of_one(leaf_flows)

    def _component_bounds(self) -> tuple[Tensor, Tensor]:
        """Candidates [labels, candidates, batch] and upper bounds on each component's maximum [components, batch]."""
        plan, literals = self._evaluation(maximize=True)
        states, values = search.maximize(plan, self._weights, literals)
        states = self._split_columns(states[: self.circuit.num_labels])
        return states, values.view(self._components, self._batch)

    def _all_states(self) -> Tensor:
        """Every label vector that is a model for some input [states, labels]."""
        rows = torch.from_numpy(self.circuit.enumerate()[:, : self.circuit.num_labels].copy())
        if self.circuit.given:
            rows = torch.unique(rows, dim=0)
        return rows.to(self._log_mixing)

    def _can_list_states(self, most: int = 2**12) -> bool:
        """Whether the support is small enough to answer a query by listing it."""
        cached: int | None = self._structure.__dict__.get("_model_count")
        if cached is None:
            cached = self._structure.__dict__["_model_count"] = self.circuit.model_count()
        return cached <= most

    def _satisfied(self, y: Tensor) -> Tensor:
        """Whether y [labels, samples, batch] satisfies the constraint for the given inputs: bool [samples, batch]."""
        return supported(self._structure.constraint_explicit, self._state_leaves(y)).view(y.shape[1:])

    def _state_rows(self, y: Tensor) -> Tensor:
        """Values of all variables [variables, samples, batch]: those of y [labels, samples, batch] and the given."""
        if not self.circuit.given:
            return y
        assert self._observed is not None
        given = self._observed[len(y) :, None].expand(-1, y.shape[1], -1)
        return torch.cat([y, given.to(y.dtype)])

    def _state_leaves(self, y: Tensor) -> Tensor:
        """Leaves that allow only the literals of y [labels, samples, batch], and of the given inputs."""
        return torch.stack(indicators(self._state_rows(y).flatten(1), self._dtype), dim=1).flatten(0, 1)

    def _log_values(self, plan: Plan, weights: Tensor, leaves: Tensor) -> Tensor:
        """Value of every component [samples, components, batch] for leaves [2 variables, samples, batch]."""
        columns = self._components * self._batch
        step = max(1, leaves.shape[1])
        # a traced program must not depend on the size of the batch that it was traced with
        if not torch.compiler.is_compiling():
            step = max(1, _MOST_NUMBERS // max(1, plan.num_edges * columns))
        parts = []
        for first in range(0, leaves.shape[1], step):
            part = leaves[:, first : first + step, None].expand(-1, -1, self._components, -1)
            repeated = weights if part.shape[1] == 1 else weights.repeat(1, part.shape[1])
            parts.append(log_value(plan, repeated, part.flatten(1)))
        return torch.cat(parts).view(leaves.shape[1], self._components, self._batch)

    def _observe(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Evidence [labels, batch] added to what is observed already; and where the two disagree [batch]."""
        if self._observed is None:
            return rows, torch.zeros(self._batch, dtype=torch.bool, device=rows.device)
        old = self._observed[: len(rows)]
        conflict = (~old.isnan() & ~rows.isnan() & (old != rows)).any(0)
        merged = torch.where(rows.isnan(), old, rows)
        return torch.cat([merged, self._observed[len(rows) :]]), conflict

    def _select_all(self, observed: Tensor) -> Any:
        index = torch.arange(self._batch, device=self._log_mixing.device)
        return self._select(index, self.batch_shape, observed, True)

    def _flat_rows(self, value: Tensor) -> tuple[Tensor, torch.Size]:
        """[labels, samples, batch] from [*sample, *batch, labels], and the shape [*sample, *batch]."""
        return flat_rows(value, len(self.labels), self.batch_shape, self._log_mixing)
