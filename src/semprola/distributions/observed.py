"""The probability of observed values, such as a sum: no circuit is conditioned, rows differ in scores only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from semprola.circuit.whole import WholeVariable, whole_variables
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.whole import places_in

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution


def log_prob_of_values(p: ConstrainedDistribution, values: Mapping[str, Any]) -> Tensor:
    """Log-probability of values of variables and labels, one per row or one for all [*sample, *batch]."""
    variables = whole_variables(p.circuit)
    components = p.evaluator.components
    wanted = {name: variables[name] for name in values if name in variables}
    if len(wanted) == len(values) and isinstance(components, IndependentLabels) and components.is_plain:
        places = [(wanted[name], _tensor(places_in(wanted[name], values[name]), p)) for name in values]
        if all(place.dim() == 0 or place.shape == p.batch_shape for _, place in places):
            value = components.log_value_without(_excluded(p, places))
            return (p.evaluator.log_mixing[0] + value - p.evaluator.log_partition).reshape(p.batch_shape).clamp(max=0.0)
    return p.log_marginal(values)


def _tensor(places: Any, p: ConstrainedDistribution) -> Tensor:
    return torch.as_tensor(places, device=p.evaluator.log_mixing.device)


def _excluded(p: ConstrainedDistribution, places: list[tuple[WholeVariable, Tensor]]) -> Tensor:
    """Which labels are other values than the observed ones: bool [variables, batch]."""
    batch, device = p.evaluator.batch, p.evaluator.log_mixing.device
    labels = torch.tensor([v for variable, _ in places for v in variable.places], device=device)
    widths = [len(variable.values) for variable, _ in places]
    within = torch.cat([torch.arange(width, device=device) for width in widths])
    chosen = torch.stack([place.expand(p.batch_shape).reshape(batch) for _, place in places])
    chosen = chosen.repeat_interleave(torch.tensor(widths, device=device), dim=0)
    excluded = torch.zeros((p.circuit.num_variables, batch), dtype=torch.bool, device=device)
    excluded[labels] = (chosen != within[:, None]) & (chosen >= 0)
    return excluded
