"""The support of a pool as a torch constraint."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint

from semprola.distributions.names import as_rows
from semprola.distributions.pool.propagation import propagation_of

if TYPE_CHECKING:
    from semprola.distributions.pool.distribution import PoolDistribution


class Obeys(Constraint):
    """Label vectors that satisfy every circuit of a split, the rules that are left out, and the evidence."""

    is_discrete = True
    event_dim = 1

    def __init__(self, distribution: PoolDistribution) -> None:
        self._distribution = distribution
        super().__init__()

    def check(self, value: Any) -> Tensor:
        """Whether each row of value [*sample, *batch, labels] (or by name) is in the support: bool."""
        p = self._distribution
        rows = as_rows(value, p.labels, "y", p.members[0].evaluator.log_mixing)
        inside = p.members[0].support.check(rows)
        for member in p.members[1:]:
            inside = inside & member.support.check(rows)
        if p.split.rules_left_out and bool(inside.any()):
            shaped = torch.as_tensor(rows).expand(*inside.shape, len(p.labels))
            inside = inside.clone()
            held = propagation_of(p.split).left_out_hold(shaped[inside].T > 0.5)
            inside[inside.clone()] = held.to(inside.device)
        return inside

    def __repr__(self) -> str:
        return f"Obeys({self._distribution.split!r})"
