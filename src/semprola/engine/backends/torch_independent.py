"""Independent labels times a constraint in plain torch: gradients, and the likelihood of states."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.engine.literals import indicators
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan


def slopes_of_log_z(plan: Plan, odds: Tensor, flows: Tensor) -> Tensor:
    """The gradient of log Z by the log-odds [variables, columns].

    Args:
        odds: log-odds [variables, columns].
        flows: into each literal [2 variables, columns].
    """
    one, zero = torch.sigmoid(odds), torch.sigmoid(-odds)
    suppressed, _ = plan.masks(odds.device)
    return torch.where(suppressed, flows[1::2] - one, flows[1::2] * zero - flows[0::2] * one)


def with_states(
    support: Callable[[Tensor], Tensor], odds: Tensor, states: Tensor, log_z: Tensor, slopes: Tensor | None
) -> tuple[Tensor, Tensor | None]:
    """From log Z and its gradient to the log-likelihood of states and its gradient.

    Args:
        odds: log-odds [variables, columns].
        states: 0/1 [variables, columns].
        log_z: [columns]
        slopes: the gradient of log Z [variables, columns], or None.

    Returns:
        values [columns], -inf outside the support, and the gradient [variables, columns], zero there, or None.
    """
    on = states > 0.5
    outside = ~support(torch.stack(indicators(states, odds.dtype), dim=1).flatten(0, 1))
    log_q = F.logsigmoid(torch.where(on, odds, -odds)).sum(0)
    value = (log_q - log_z).masked_fill(outside, NEGATIVE_INFINITY)
    if slopes is None:
        return value, None
    own = torch.where(on, torch.sigmoid(-odds), -torch.sigmoid(odds))
    return value, (own - slopes).masked_fill(outside, 0.0)
