"""One circuit: the constraint's own sums carry the weights (Def. 3.6 of the paper)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.circuit import Circuit
from semprola.distributions.arguments import given_rows, rows_named
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.cached import structure_of
from semprola.distributions.components import with_components
from semprola.engine import (
    Literals,
    Plan,
    Structure,
    indicators,
    likelihood,
    log_softmax,
    possible,
    search,
)
from semprola.errors import UnsatisfiableError


class SPLDistribution(ConstrainedDistribution):
    """p(y | x) = c_K(y, x; Ω): every sum of the constraint circuit weighs its branches by a softmax.

    Args:
        circuit: the compiled constraint (or its `Structure`).
        logits: of the sums' branches [*batch, replicas, logits], or [*batch, logits] for one replica. A sum with two
            branches has one logit, that of the second relative to the first; ``Structure(circuit).layer.num_logits``
            says how many there are.
        mixing_logits: one number for each replica [*batch, replicas]; may be left out if there is one.
        given: values of the given variables [*batch, given].
        units: copies of each sum that `logits` are for.
        mixing: which of them are multiplied, "cross" or "elementwise".

    Raises:
        UnsatisfiableError: a row of given inputs leaves no model; names the row.
    """

    def __init__(
        self,
        circuit: Circuit | Structure,
        logits: Tensor,
        mixing_logits: Tensor | None = None,
        given: Any = None,
        units: int = 1,
        validate_args: bool | None = None,
        mixing: str = "cross",
    ) -> None:
        structure = structure_of(circuit, units, mixing)
        plan = structure.layer
        if logits.dim() == 0 or logits.shape[-1] != plan.num_logits:
            raise ValueError(f"logits must be [*batch, replicas, {plan.num_logits}], not {tuple(logits.shape)}")
        logits = with_components(logits, mixing_logits)
        *batch_shape, replicas, _ = logits.shape
        columns = flat_columns(logits)
        observed = given_rows(structure.circuit, given, batch_shape, columns)
        self._logits = columns
        self._alive = None if observed is None else _alive(structure, observed, columns, replicas, batch_shape)
        log_mixing = normalized_mixing(mixing_logits, replicas, batch_shape, columns)
        super().__init__(structure, log_mixing, batch_shape, observed, False, validate_args)

    @property
    def _weights(self) -> Tensor:
        # the likelihood of a state needs few of them, so all are normalised only when a query asks
        return self._remembered("weights", lambda: log_softmax(self._structure.layer, self._logits, self._alive))

    @property
    def _is_deterministic(self) -> bool:
        return self._structure.is_deterministic

    def _plan(self, *, explicit: bool) -> Plan:
        return self._structure.layer_explicit if explicit else self._structure.layer

    def _scores(self) -> tuple[Tensor, Tensor]:
        blank = self._log_mixing.new_zeros((self.circuit.num_variables, self._components * self._batch))
        return blank, blank

    @property
    def _component_log_z(self) -> Tensor:
        # without evidence each component is normalised as it stands
        return super()._component_log_z if self._has_evidence else torch.zeros_like(self._log_mixing)

    @property
    def _log_partition(self) -> Tensor:
        return super()._log_partition if self._has_evidence else self._log_mixing.new_zeros(self._batch)

    def _log_scores_of(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        plan = self._structure.layer_explicit
        if self._is_deterministic:
            # exactly one branch of each sum is active: log p is a sum of log-softmax terms, with no -inf on the way
            return likelihood(plan, self._split_columns(self._logits), self._state_rows(y), codes, len(self.labels))
        _, samples, batch = y.shape
        return self._log_values(plan, self._weights, self._state_leaves(y).unflatten(1, (samples, batch)))

    def _component_bounds(self) -> tuple[Tensor, Tensor]:
        return bounded_candidates(self, super()._component_bounds())

    def _select(self, index: Tensor, batch_shape: torch.Size, observed: Tensor | None, has_evidence: bool) -> Any:
        new = object.__new__(SPLDistribution)
        new._logits = self._split_columns(self._logits)[:, :, index].flatten(1)
        new._alive = None if self._alive is None else self._split_columns(self._alive)[:, :, index].flatten(1)
        ConstrainedDistribution.__init__(
            new, self._structure, self._log_mixing[:, index], batch_shape, observed, has_evidence, self._validate_args
        )
        return new


def bounded_candidates(p: ConstrainedDistribution, paths: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Candidates and bounds for the mode of components with several units, beside the states of their best paths."""
    states, values = paths
    weights = p._weights
    if p._is_deterministic or weights is None:
        return states, values
    plan, carried = p._structure.bound
    carried = carried.to(weights.device)
    known = carried >= 0
    carried_weights = weights.new_zeros((len(carried), weights.shape[1]))
    carried_weights[known] = weights[carried[known]]
    literals = Literals.of(plan, *p._observed_scores(), maximize=True)
    better, bounds = search.bound(plan, carried_weights, literals)
    better = better[: p.circuit.num_labels].view_as(states)
    return torch.cat([states, better], dim=1), bounds.view(p._components, p._batch)


def upcast(logits: Tensor) -> Tensor:
    """Half-precision gate outputs are computed with in float32."""
    if not logits.is_floating_point():
        raise TypeError(f"logits must be floating point, not {logits.dtype}")
    return logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits


def flat_columns(logits: Tensor) -> Tensor:
    """Engine columns [parameters, components * batch] from gate outputs [*batch, components, parameters]."""
    *batch_shape, components, parameters = logits.shape
    rows = upcast(logits).reshape(math.prod(batch_shape), components, parameters)
    return rows.permute(2, 1, 0).flatten(1)


def normalized_mixing(logits: Tensor | None, components: int, batch_shape: Sequence[int], like: Tensor) -> Tensor:
    """Log-weights of the components [components, batch] from logits [*batch, components]."""
    if logits is None:
        if components > 1:
            raise ValueError(f"a mixture of {components} components needs mixing logits [*batch, {components}]")
        return like.new_zeros((1, like.shape[1]))
    if logits.shape != (*batch_shape, components):
        raise ValueError(f"mixing logits must be {(*batch_shape, components)}, not {tuple(logits.shape)}")
    rows = upcast(logits).reshape(math.prod(batch_shape), components)
    return torch.log_softmax(rows.T.to(like.dtype), 0)


def _alive(structure: Structure, observed: Tensor, like: Tensor, replicas: int, batch_shape: Sequence[int]) -> Tensor:
    """Which weights some model of the given inputs uses: bool [W, replicas * batch]."""
    with torch.no_grad():
        literals = Literals.of(structure.layer, *indicators(observed, like.dtype))
        alive, some = possible(structure.layer, literals.leaves)
    if not torch.compiler.is_compiling() and not bool(some.all()):
        raise UnsatisfiableError(f"the given inputs leave no model{rows_named(~some, batch_shape)}")
    return alive.repeat(1, replicas)
