"""Label vectors that violate the constraint: refused, ignored, or moved to the nearest state of the support."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from semprola._names import row_names
from semprola.distributions.arguments import check_labels, flat_rows
from semprola.distributions.evaluator import Evaluator
from semprola.distributions.names import as_rows
from semprola.distributions.violations import violations
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import ViolationError

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution

_CHOICES = ("raise", "ignore", "project")
_NAMED = 3
"""Number of rows that an error names, each with the first rule that it breaks."""
_LISTED = 256
"""If a mixture has at most this many states, all of them are compared."""


def log_prob(p: ConstrainedDistribution, value: Any, on_violation: str) -> Tensor:
    """See :meth:`ConstrainedDistribution.log_prob`."""
    if on_violation not in _CHOICES:
        raise ValueError(f"on_violation must be one of {', '.join(map(repr, _CHOICES))}, not {on_violation!r}")
    index = row_names(value)
    y = as_rows(value, p.labels, "y", p.log_mixing)
    if on_violation == "project":
        return p.log_prob(project(p, y))
    wrong = ~p.support.check(y)
    if p._validate_args:
        check_labels(y)
    if on_violation == "raise" and bool(wrong.any()):
        raise ViolationError(_message(p, y, wrong, index))
    return p.log_prob(value).masked_fill(wrong, 0.0)


def project(p: ConstrainedDistribution, value: Any) -> Tensor:
    """See :meth:`ConstrainedDistribution.project`."""
    y = as_rows(value, p.labels, "y", p.log_mixing)
    rows, shape = flat_rows(y, len(p.labels), p.batch_shape, p.evaluator.log_mixing)
    if p._validate_args:
        check_labels(y)
    wrong = ~p.support.check(y).reshape(rows.shape[1:])
    if not bool(wrong.any()):
        unchanged: Tensor = y.to(rows.dtype).expand(*shape, len(rows))
        return unchanged
    sample, column = torch.nonzero(wrong, as_tuple=True)
    with torch.no_grad():
        rows = rows.clone()
        rows[:, sample, column] = _nearest(p.evaluator.select(column), rows[:, sample, column])
    return rows.permute(1, 2, 0).reshape(*shape, len(rows))


def _nearest(p: Evaluator, target: Tensor) -> Tensor:
    """The state nearest to each column of target [labels, batch], or the most probable of several [labels, batch]."""
    first = p.domain.best_total(2 * target - 1)
    candidates = torch.cat([first[:, None], _tied(p, target, first)], dim=1)
    if not p.is_single and p.domain.can_be_listed(_LISTED):
        candidates = torch.cat([candidates, p.domain.candidates()], dim=1)
    distance = (candidates != target[:, None]).sum(0)
    log_probs = p.log_probs(candidates).masked_fill(distance > distance[0], NEGATIVE_INFINITY)
    best = log_probs.argmax(0)
    return candidates.gather(1, best.expand(len(target), 1, -1))[:, 0]


def _tied(p: Evaluator, target: Tensor, first: Tensor) -> Tensor:
    """Every component's most probable state among the nearest [labels, candidates, batch].

    One maximisation suffices: each agreement with the target gains more than any two log-probabilities can differ by.
    """
    _, upper = p.components.best()
    margin = (upper - p.components.log_scores(first[:, None])[0]).clamp(min=0.0).double() + 1.0
    wanted = target.double()[:, None]
    states: Tensor = p.components.tilted(margin * (1 - wanted), margin * wanted).best()[0]
    return states.to(target.dtype)


def _message(p: ConstrainedDistribution, y: Tensor, wrong: Tensor, index: list[Any] | None) -> str:
    """Which rows violate the constraint, and how the first of them do."""
    places = torch.nonzero(wrong)
    first = tuple(places[:_NAMED].T) if wrong.dim() else ()
    rows = y.expand(*wrong.shape, y.shape[-1])[first].reshape(-1, y.shape[-1])
    given = None
    observed = p.evaluator.domain.observed
    if p.circuit.given and observed is not None:
        own = observed[p.circuit.num_labels :].T.reshape(*p.batch_shape, -1).expand(*wrong.shape, -1)
        given = own[first].reshape(len(rows), -1)
    found = {violation.row: violation for violation in reversed(violations(p.circuit, rows, given=given))}
    parts = []
    for i, place in enumerate(places[:_NAMED].tolist()):
        where = f"row {_name(place, index)}: " if place else ""
        parts.append(where + (found[i].reason if i in found else "it contradicts the evidence"))
    more = f"; and {len(places) - _NAMED} more" if len(places) > _NAMED else ""
    return f"y violates the constraint in {len(places)} of {wrong.numel()} rows: {'; '.join(parts)}{more}"


def _name(place: list[int], index: list[Any] | None) -> Any:
    return tuple(place) if len(place) > 1 else place[0] if index is None else index[place[0]]
