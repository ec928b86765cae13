"""Two circuits, q of the constraint's own structure: a hidden Markov model or a circuit over the vtree."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.distributions.arguments import given_rows
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.components import with_components
from semprola.distributions.product import check_given
from semprola.distributions.spl import bounded_candidates, flat_columns, normalized_mixing
from semprola.engine import Plan
from semprola.engine.compatible import CompatibleStructure

_NEGATIVE_INFINITY = float("-inf")


class CompatibleDistribution(ConstrainedDistribution):
    """p(y | x) = q(y) c_K(x, y) / Z(x) with q a mixture of circuits compatible with the constraint.

    Args:
        structure: q's structure and its product with the constraint.
        logits: parameters of q [*batch, mixtures, parameters].
        mixing_logits: one number for each component [*batch, mixtures]; may be left out if there is one.
        given: values of the given variables [*batch, given].
    """

    _structure: CompatibleStructure

    def __init__(
        self,
        structure: CompatibleStructure,
        logits: Tensor,
        mixing_logits: Tensor | None = None,
        given: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        if logits.dim() == 0 or logits.shape[-1] != structure.num_parameters:
            raise ValueError(
                f"logits must be [*batch, mixtures, {structure.num_parameters}], not {tuple(logits.shape)}"
            )
        logits = with_components(logits, mixing_logits)
        *batch_shape, mixtures, _ = logits.shape
        columns = flat_columns(logits)
        self._log_parameters = structure.normalize(columns)
        mixing = normalized_mixing(mixing_logits, mixtures, batch_shape, columns)
        observed = given_rows(structure.circuit, given, batch_shape, columns)
        super().__init__(structure, mixing, batch_shape, observed, False, validate_args)
        if observed is not None:
            check_given(structure, observed, batch_shape)

    @property
    def _weights(self) -> Tensor:
        def chosen() -> Tensor:
            parameter = self._structure.product[1].to(self._log_parameters.device)
            return self._log_parameters.index_select(0, parameter)

        return self._remembered("weights", chosen)

    @property
    def _is_deterministic(self) -> bool:
        return self._structure.is_deterministic

    def _plan(self, *, explicit: bool) -> Plan:
        return self._structure.product[0]

    def _scores(self) -> tuple[Tensor, Tensor]:
        blank = self._log_mixing.new_zeros((self.circuit.num_variables, self._components * self._batch))
        return blank, blank

    def _log_scores_of(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        plan, parameter = self._structure.alone
        weights = self._log_parameters.index_select(0, parameter.to(self._log_parameters.device))
        _, samples, batch = y.shape
        values = self._log_values(plan, weights, self._state_leaves(y).unflatten(1, (samples, batch)))
        with torch.no_grad():
            violated = ~self._satisfied(y)
        return values.masked_fill(violated.view(samples, 1, batch), _NEGATIVE_INFINITY)

    def _component_bounds(self) -> tuple[Tensor, Tensor]:
        return bounded_candidates(self, super()._component_bounds())

    def _select(self, index: Tensor, batch_shape: torch.Size, observed: Tensor | None, has_evidence: bool) -> Any:
        new = object.__new__(CompatibleDistribution)
        columns = self._split_columns(self._log_parameters)[:, :, index]
        new._log_parameters = columns.flatten(1)
        ConstrainedDistribution.__init__(
            new, self._structure, self._log_mixing[:, index], batch_shape, observed, has_evidence, self._validate_args
        )
        return new
