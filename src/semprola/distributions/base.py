"""The distribution that a layer returns: normalised, exactly zero outside the constraint, exactly queryable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from semprola.circuit import Circuit
from semprola.distributions import decoding, information
from semprola.distributions.arguments import check_binary, check_evidence, flat_rows, rows_named
from semprola.distributions.encoding import EncodedStates
from semprola.distributions.numeric import log_sum_exp
from semprola.distributions.support import Satisfies
from semprola.engine import Literals, Plan, Structure, indicators, log_value, posterior, search, supported
from semprola.errors import UnsatisfiableError

_NEGATIVE_INFINITY = float("-inf")
_MOST_NUMBERS = 2**24
"""Largest tensor made to evaluate several samples at once; more are evaluated in several steps."""


class ConstrainedDistribution(Distribution):
    """A mixture of circuits over label vectors y in {0, 1}^L whose support is exactly the models of a constraint.

    p(y) = Σ_c π_c f_c(y) / Z, where every component f_c is a circuit with its own weights or literal scores. Subclasses
    say what these are; every query is written once, here and in `decoding` and `information`.

    Inside, a batch is flat and comes last: tensors are [rows, components, batch], and an engine column is one pair of
    component and batch element.
    """

    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    has_enumerate_support = True

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

    # shape and description ------------------------------------------------------------------------------------------

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self._structure.circuit

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the columns of y."""
        return self.circuit.labels

    @property
    def log_mixing(self) -> Tensor:
        """Normalised log-weights of the mixture components [*batch, components]."""
        return self._log_mixing.T.reshape(*self.batch_shape, self._components)

    @property
    def support(self) -> Satisfies:
        """A torch constraint: ``p.support.check(y)`` is whether y satisfies the rules (and the evidence)."""
        return Satisfies(self)

    def __repr__(self) -> str:
        return (
            f"{type(self).__name__}(batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)}, "
            f"components={self._components})"
        )

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same distribution over a larger batch shape, as torch.distributions do it."""
        shape = torch.Size(batch_shape)
        index = torch.arange(self._batch, device=self._log_mixing.device).reshape(self.batch_shape)
        index = index.expand(shape).reshape(-1)
        observed = None if self._observed is None else self._observed[:, index]
        return self._select(index, shape, observed, self._has_evidence)

    # probabilities --------------------------------------------------------------------------------------------------

    def log_prob(self, value: Tensor | EncodedStates) -> Tensor:
        """Log-probability of label vectors; exactly -inf where one violates the constraint.

        Args:
            value: 0/1 of shape [*sample, *batch, labels], or what the layer's `encode` made of such.

        Returns:
            [*sample, *batch]
        """
        encoded = isinstance(value, EncodedStates)
        codes = None
        if isinstance(value, EncodedStates):
            value, codes = value.unpack(self._structure, self.batch_shape)
        y, shape = self._flat_rows(value)
        if self._validate_args and not encoded and not torch.compiler.is_compiling():
            check_binary(value, "y")
        scores = self._log_scores_of(y, codes)
        if self._has_evidence and self._observed is not None:
            seen = self._observed[: len(y), None]
            scores = scores.masked_fill(((y != seen) & ~seen.isnan()).any(0)[:, None], _NEGATIVE_INFINITY)
        total = log_sum_exp(scores + self._log_mixing, 1) if self._components > 1 else scores[:, 0]
        # an impossible y has no gradient, not even through the partition function
        return (total - self._log_partition).masked_fill(total == _NEGATIVE_INFINITY, _NEGATIVE_INFINITY).reshape(shape)

    @property
    def log_partition(self) -> Tensor:
        """log Z [*batch]: 0 for a single normalised circuit, the log-probability of the constraint for a product."""
        return self._log_partition.reshape(self.batch_shape)

    @property
    def mean(self) -> Tensor:
        """Marginals P(Y_j = 1) of shape [*batch, labels]; differentiable."""
        return self._shaped(information.marginals(self))

    @property
    def variance(self) -> Tensor:
        """Variances of the labels [*batch, labels]."""
        mean = self.mean
        return mean * (1 - mean)

    def log_marginal(self, evidence: Tensor) -> Tensor:
        """Log-probability of a partial assignment.

        Args:
            evidence: 0, 1, or NaN where not observed, of shape [*sample, *batch, labels].

        Returns:
            [*sample, *batch]; 0 if nothing is observed, -inf if the evidence is impossible.
        """
        rows, shape = self._flat_rows(evidence)
        if self._validate_args:
            check_evidence(evidence)
        parts = []
        for sample in range(rows.shape[1]):
            observed, conflict = self._observe(rows[:, sample])
            log_z = self._select_all(observed)._log_partition
            parts.append(log_z.masked_fill(conflict, _NEGATIVE_INFINITY) - self._log_partition)
        return torch.stack(parts).reshape(shape) if parts else rows.new_zeros(shape)

    def condition(self, evidence: Tensor) -> Any:
        """The distribution given evidence.

        Args:
            evidence: 0, 1, or NaN where not observed, of shape [*batch, labels] (or broadcastable to it).

        Raises:
            UnsatisfiableError: evidence that has probability zero; names the rows.
        """
        if self._validate_args:
            check_evidence(evidence)
        rows, shape = self._flat_rows(evidence)
        if shape != self.batch_shape:
            raise ValueError(f"evidence of shape {tuple(evidence.shape)} does not fit batch {tuple(self.batch_shape)}")
        observed, conflict = self._observe(rows[:, 0])
        given = self._select_all(observed)
        impossible = conflict | (given._log_partition == _NEGATIVE_INFINITY)
        if impossible.any():
            raise UnsatisfiableError(f"the evidence has probability zero{rows_named(impossible, self.batch_shape)}")
        return given

    def entropy(self) -> Tensor:
        """Entropy in nats [*batch]: exact for deterministic circuits and for supports small enough to list.

        Raises:
            IntractableError: a mixture with a large support; use `entropy_bounds` or `entropy_estimate`.
        """
        return information.entropy(self).reshape(self.batch_shape)

    def entropy_bounds(self) -> tuple[Tensor, Tensor]:
        """A lower and an upper bound on the entropy [*batch], cheap for any mixture."""
        lower, upper = information.entropy_bounds(self)
        return lower.reshape(self.batch_shape), upper.reshape(self.batch_shape)

    def entropy_estimate(self, samples: int = 1000, generator: torch.Generator | None = None) -> Tensor:
        """A Monte-Carlo estimate of the entropy [*batch]."""
        with torch.no_grad():
            drawn = self.sample(torch.Size([samples]), generator=generator)
            return -self.log_prob(drawn).mean(0)

    # states ---------------------------------------------------------------------------------------------------------

    @property
    def mode(self) -> Tensor:
        """The most probable y [*batch, labels]; exact where `mode_is_exact`, else the best of all candidates found."""
        return self._shaped(self._best[0])

    @property
    def mode_is_exact(self) -> Tensor:
        """Whether `mode` is proven to be the most probable y, bool [*batch]."""
        return self._best[1].reshape(self.batch_shape)

    def decode(self, utility: str | Tensor = "mode") -> Tensor:
        """The y in the constraint that maximises an expected utility.

        Args:
            utility: "mode"; "hamming" (least expected number of wrong labels); "greedy" (the published decoder, which
                is not the mode, for comparison only); or a tensor [*batch, labels] of gains for a label being 1.

        Returns:
            [*batch, labels]
        """
        return self._shaped(decoding.decode(self, utility))

    def sample(self, sample_shape: Any = torch.Size(), generator: torch.Generator | None = None) -> Tensor:  # noqa: B008
        """Exact samples [*sample_shape, *batch, labels]; all of them satisfy the constraint.

        Args:
            sample_shape: how many.
            generator: source of randomness; by default torch's, so that torch.manual_seed makes it reproducible.
        """
        shape = torch.Size(sample_shape)
        with torch.no_grad():
            y = decoding.sample(self, shape.numel(), generator)
        return y.permute(1, 2, 0).reshape(*shape, *self.batch_shape, self.circuit.num_labels)

    def top_k(self, k: int) -> tuple[Tensor, Tensor]:
        """The k most probable states, best first: states [*batch, k, labels] and log-probabilities [*batch, k].

        Exact for deterministic circuits and for supports small enough to list; for other mixtures the best of the
        components' own lists. Rows past the end of the support repeat the mode and have log-probability -inf.
        """
        if isinstance(k, bool) or not isinstance(k, int) or k < 1:
            raise ValueError(f"k must be a positive whole number, not {k!r}")
        with torch.no_grad():
            states, log_probs = decoding.top_k(self, k)
        return (
            states.permute(2, 1, 0).reshape(*self.batch_shape, k, self.circuit.num_labels),
            log_probs.T.reshape(*self.batch_shape, k),
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All states of the support [states, *batch, labels].

        Raises:
            IntractableError: too many to list.
            ValueError: the rows of the batch have different supports (given inputs or evidence differ).
        """
        states = self._all_states()
        if self._observed is not None:
            allowed = self.support.check(states.reshape(-1, *[1] * len(self.batch_shape), states.shape[1]))
            allowed = allowed.reshape(len(states), self._batch)
            if bool((allowed != allowed[:, :1]).any()):
                raise ValueError("the rows of the batch have different supports: enumerate them one by one")
            states = states[allowed[:, 0]]
        states = states.reshape(-1, *[1] * len(self.batch_shape), states.shape[1])
        return states.expand(-1, *self.batch_shape, -1) if expand else states

    # shared by the queries ------------------------------------------------------------------------------------------

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
        cached = self.__dict__.get("_cached_component_log_z")
        if cached is None:
            plan, literals = self._evaluation()
            total = log_value(plan, self._weights, literals.leaves) + literals.constant
            cached = self.__dict__["_cached_component_log_z"] = total.view(self._components, self._batch)
        return cached

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

    @property
    def _best(self) -> tuple[Tensor, Tensor]:
        """The mode [labels, batch] and whether it is proven [batch]."""
        cached: tuple[Tensor, Tensor] | None = self.__dict__.get("_cached_best")
        if cached is None:
            with torch.no_grad():
                cached = self.__dict__["_cached_best"] = decoding.mode(self)
        return cached

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
