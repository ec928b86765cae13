"""Label vectors that violate the constraint: refused, left out, or moved to the nearest state that obeys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from semprola.distributions.encoding import EncodedStates
from semprola.distributions.names import as_rows
from semprola.distributions.violations import violations
from semprola.engine import Literals, search
from semprola.errors import ViolationError

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution

_CHOICES = ("raise", "ignore", "project")
_NAMED = 3
"""Rows that an error names, each with its first broken rule."""
_LISTED = 256
"""A mixture with no more states than this compares all of them."""


def log_prob(p: ConstrainedDistribution, value: Any, on_violation: str) -> Tensor:
    """See :meth:`ConstrainedDistribution.log_prob`."""
    if on_violation not in _CHOICES:
        raise ValueError(f"on_violation must be one of {', '.join(map(repr, _CHOICES))}, not {on_violation!r}")
    y = value.states if isinstance(value, EncodedStates) else value
    y = as_rows(y, p.labels, "y", p.log_mixing)
    if on_violation == "project":
        return p.log_prob(project(p, y))
    wrong = ~p.support.check(y)
    if on_violation == "raise" and bool(wrong.any()):
        raise ViolationError(_message(p, y, wrong))
    return p.log_prob(value).masked_fill(wrong, 0.0)


def project(p: ConstrainedDistribution, value: Any) -> Tensor:
    """See :meth:`ConstrainedDistribution.project`."""
    y = as_rows(value, p.labels, "y", p.log_mixing)
    rows, shape = p._flat_rows(y)
    wrong = ~p.support.check(y).reshape(rows.shape[1:])
    if not bool(wrong.any()):
        unchanged: Tensor = y.to(rows.dtype).expand(*shape, len(rows))
        return unchanged
    sample, column = torch.nonzero(wrong, as_tuple=True)
    observed = None if p._observed is None else p._observed[:, column]
    with torch.no_grad():
        some = p._select(column, torch.Size([len(column)]), observed, p._has_evidence)
        rows = rows.clone()
        rows[:, sample, column] = _nearest(some, rows[:, sample, column])
    return rows.permute(1, 2, 0).reshape(*shape, len(rows))


def _nearest(p: ConstrainedDistribution, target: Tensor) -> Tensor:
    """The state nearest to each column of target [labels, batch], the most probable of several: [labels, batch]."""
    first = p.decode(2 * target.T - 1).T
    candidates = torch.cat([first[:, None], _tied(p, target, first)], dim=1)
    if not (p._components == 1 and p._is_deterministic) and p._can_list_states(_LISTED):
        candidates = torch.cat([candidates, p._all_states().T[:, :, None].expand(-1, -1, p._batch)], dim=1)
    distance = (candidates != target[:, None]).sum(0)
    least = distance[0]
    log_probs = p.log_prob(candidates.permute(1, 2, 0)).masked_fill(distance > least, float("-inf"))
    best = log_probs.argmax(0)
    return candidates.gather(1, best.expand(len(target), 1, -1))[:, 0]


def _tied(p: ConstrainedDistribution, target: Tensor, first: Tensor) -> Tensor:
    """Every component's most probable state among the nearest [labels, components, batch].

    One maximisation does it: each agreement with the target earns more than any two log-probabilities can differ by.
    """
    _, upper = p._component_bounds()
    margin = (upper - p._log_scores_of(first[:, None])[0]).clamp(min=0.0).double() + 1.0
    bonus = margin.reshape(1, -1) * p._per_component(target.double())
    malus = margin.reshape(1, -1) * p._per_component(1 - target.double())
    zeros, ones = (scores.double() for scores in p._observed_scores())
    labels = len(target)
    zeros = torch.cat([zeros[:labels] + malus, zeros[labels:]])
    ones = torch.cat([ones[:labels] + bonus, ones[labels:]])
    weights = p._weights
    plan = p._plan(explicit=p._needs_explicit)
    literals = Literals.of(plan, zeros, ones, maximize=True)
    states, _ = search.maximize(plan, None if weights is None else weights.double(), literals)
    return p._split_columns(states[:labels]).to(target.dtype)


def _message(p: ConstrainedDistribution, y: Tensor, wrong: Tensor) -> str:
    """Which rows violate the constraint, and how the first of them do."""
    places = torch.nonzero(wrong)
    first = tuple(places[:_NAMED].T) if wrong.dim() else ()
    rows = y.expand(*wrong.shape, y.shape[-1])[first].reshape(-1, y.shape[-1])
    given = None
    if p.circuit.given and p._observed is not None:
        own = p._observed[p.circuit.num_labels :].T.reshape(*p.batch_shape, -1).expand(*wrong.shape, -1)
        given = own[first].reshape(len(rows), -1)
    found = {violation.row: violation for violation in reversed(violations(p.circuit, rows, given=given))}
    parts = []
    for i, place in enumerate(places[:_NAMED].tolist()):
        where = f"row {place[0] if len(place) == 1 else tuple(place)}: " if place else ""
        parts.append(where + (str(found[i]).partition(": ")[2] if i in found else "it contradicts the evidence"))
    more = f"; and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"y violates the constraint in {len(places)} of {wrong.numel()} rows: {'; '.join(parts)}{more}"
