"""Two circuits: an expressive q times the constraint, renormalised (Def. 1 of the paper)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.circuit import Circuit
from semprola.distributions.arguments import given_rows, rows_named
from semprola.distributions.base import ConstrainedDistribution
from semprola.distributions.cached import structure_of
from semprola.distributions.components import with_components
from semprola.distributions.spl import flat_columns, normalized_mixing
from semprola.engine import Literals, Plan, Structure, indicators, possible
from semprola.errors import UnsatisfiableError

_NEGATIVE_INFINITY = float("-inf")


class ProductDistribution(ConstrainedDistribution):
    """p(y | x) = q(y) c_K(x, y) / Z(x) with q a mixture of fully factorised distributions.

    Args:
        circuit: the compiled constraint (or its `Structure`).
        logits: log-odds of the labels in each component [*batch, mixtures, labels], or [*batch, labels] for one
            component; see :func:`semprola.distributions.components.with_components`.
        mixing_logits: one number for each component [*batch, mixtures]; may be left out if there is one.
        given: values of the given variables [*batch, given].

    Raises:
        UnsatisfiableError: a row of given inputs leaves no model; names the row.
    """

    def __init__(
        self,
        circuit: Circuit | Structure,
        logits: Tensor,
        mixing_logits: Tensor | None = None,
        given: Any = None,
        validate_args: bool | None = None,
    ) -> None:
        structure = structure_of(circuit)
        labels = structure.circuit.num_labels
        if logits.dim() == 0 or logits.shape[-1] != labels:
            raise ValueError(f"logits must be [*batch, mixtures, {labels}], not {tuple(logits.shape)}")
        logits = with_components(logits, mixing_logits)
        *batch_shape, mixtures, _ = logits.shape
        self._logits = flat_columns(logits)
        mixing = normalized_mixing(mixing_logits, mixtures, batch_shape, self._logits)
        observed = given_rows(structure.circuit, given, batch_shape, self._logits)
        super().__init__(structure, mixing, batch_shape, observed, False, validate_args)
        if observed is not None:
            check_given(structure, observed, batch_shape)

    @property
    def logits(self) -> Tensor:
        """Log-odds of the labels in q [*batch, mixtures, labels]."""
        rows = self._split_columns(self._logits).permute(2, 1, 0)
        return rows.reshape(*self.batch_shape, self._components, len(self._logits))

    @property
    def _weights(self) -> None:
        return None

    @property
    def _is_deterministic(self) -> bool:
        return True

    def _plan(self, *, explicit: bool) -> Plan:
        return self._structure.constraint_explicit if explicit else self._structure.constraint

    def _evaluation(self, *, maximize: bool = False) -> tuple[Plan, Literals]:
        if maximize or self._observed is not None:
            return super()._evaluation(maximize=maximize)
        plan = self._plan(explicit=False)
        return plan, Literals.of_odds(plan, self._logits)

    def _scores(self) -> tuple[Tensor, Tensor]:
        blank = self._logits.new_zeros((len(self.circuit.given), self._logits.shape[1]))
        return (
            torch.cat([F.logsigmoid(-self._logits), blank]),
            torch.cat([F.logsigmoid(self._logits), blank]),
        )

    def _log_scores_of(self, y: Tensor, codes: Tensor | None = None) -> Tensor:
        labels, samples, batch = y.shape
        zeros, ones = (part[:labels].view(labels, 1, self._components, batch) for part in self._scores())
        total = torch.where(y[:, :, None] > 0.5, ones, zeros).sum(0)
        with torch.no_grad():
            violated = ~self._satisfied(y)
        return total.masked_fill(violated.view(samples, 1, batch), _NEGATIVE_INFINITY)

    def _select(self, index: Tensor, batch_shape: torch.Size, observed: Tensor | None, has_evidence: bool) -> Any:
        new = object.__new__(ProductDistribution)
        columns = self._split_columns(self._logits)[:, :, index]
        new._logits = columns.flatten(1)
        ConstrainedDistribution.__init__(
            new, self._structure, self._log_mixing[:, index], batch_shape, observed, has_evidence, self._validate_args
        )
        return new


def check_given(structure: Structure, observed: Tensor, batch_shape: Any) -> None:
    """Refuse given inputs that leave no model, naming their rows."""
    if torch.compiler.is_compiling():
        return
    plan = structure.constraint
    with torch.no_grad():
        masks = indicators(observed, torch.float32)
        _, some = possible(plan, Literals.of(plan, *masks).leaves)
    if not bool(some.all()):
        raise UnsatisfiableError(f"the given inputs leave no model{rows_named(~some, batch_shape)}")
