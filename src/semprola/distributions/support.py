"""The support of a distribution as a torch constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint

from semprola.distributions.arguments import flat_rows
from semprola.distributions.names import as_rows

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


class Satisfies(Constraint):
    """Label vectors that satisfy the constraint, for the distribution's given inputs and evidence."""

    is_discrete = True
    event_dim = 1

    def __init__(self, distribution: ConstrainedDistribution) -> None:
        self._distribution = distribution
        super().__init__()

    def check(self, value: Any) -> Tensor:
        """Whether each row of value [*sample, *batch, labels] (or by name) is in the support: bool."""
        p = self._distribution
        domain = p.evaluator.domain
        rows = as_rows(value, p.labels, "y", domain.like)
        y, shape = flat_rows(rows, len(p.labels), p.batch_shape, domain.like)
        binary = ((y == 0) | (y == 1)).all(0)
        with torch.no_grad():
            inside = binary & domain.satisfied((y > 0.5).to(y.dtype))
        contradicted = domain.contradicts(y)
        if contradicted is not None:
            inside &= ~contradicted
        return inside.reshape(shape)

    def __repr__(self) -> str:
        return f"Satisfies({self._distribution.circuit!r})"
