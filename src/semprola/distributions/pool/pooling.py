"""Makes the members of a pool: the same independent labels under every circuit."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from semprola.compiler.splitting import Split
from semprola.distributions.domain import plans_of
from semprola.distributions.pool.distribution import PoolDistribution
from semprola.distributions.pool.search import Limits
from semprola.distributions.product import ProductDistribution


def independent(
    split: Split,
    logits: Tensor | Sequence[Tensor],
    evidence: Tensor | None = None,
    limits: Limits | None = None,
    weights: Tensor | None = None,
) -> PoolDistribution:
    """The pool of independent labels under each circuit of a split.

    Args:
        logits: log-odds [*batch, labels], the same for all circuits, or one tensor [*batch, components, labels] per
            circuit.
        evidence: observed labels [labels, batch], NaN where there are none.
    """
    each = [logits.unsqueeze(-2)] * len(split.circuits) if isinstance(logits, Tensor) else list(logits)
    members = [ProductDistribution(plans_of(circuit), own) for circuit, own in zip(split.circuits, each, strict=True)]
    if evidence is not None:
        rows = torch.as_tensor(evidence).T.reshape(*members[0].batch_shape, -1)
        members = [member.condition(rows) for member in members]
    return PoolDistribution(split, members, weights, limits)
