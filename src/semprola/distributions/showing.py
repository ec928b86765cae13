"""Distributions in notebooks: the most probable states with bars, and the marginals. Nothing is compiled for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from semprola._notebook import ORANGE, bar, beside, heading, more, table, text
from semprola.circuit.whole import whole_variables
from semprola.distributions.names import columns_of

if TYPE_CHECKING:
    from semprola.distributions.base import ConstrainedDistribution

MOST_EDGES = 100_000
"""Edges of all components; above that, a picture would take too long."""
_STATES, _MARGINALS, _NAMES = 5, 15, 12


def html(p: ConstrainedDistribution) -> str | None:
    """The first row of the batch, as two tables; None if there is no row, or the circuit is too large."""
    if p.circuit.num_edges * p.evaluator.count > MOST_EDGES or not p.batch_shape.numel():
        return None
    with torch.no_grad():
        first = p.over(p.evaluator.select(torch.zeros(1, dtype=torch.long, device=p.evaluator.log_mixing.device)), ())
        states, log_probs = first.top_k(_STATES)
        marginals = columns_of(p, first.mean, "marginals")
    named = columns_of(p, states, "top_k")
    variables = whole_variables(p.circuit)
    rows = [
        (_state({name: column[rank] for name, column in named.items()}, variables), math.exp(value))
        for rank, value in enumerate(log_probs.tolist())
        if value > -math.inf
    ]
    proven = "" if first.evaluator.is_single or first.evaluator.domain.can_be_listed() else " found"
    return title(type(p).__name__, p.batch_shape, f"{len(p.labels):,} labels") + beside(
        heading(f"most probable states{proven}") + states_table(rows), _marginals(marginals)
    )


def title(name: str, batch: Sequence[int], size: str) -> str:
    """The line above the tables; of a batch, they show the first row."""
    rows = math.prod(batch)
    return heading(f"{name} over {size}" + (f"; the first of {rows:,} rows" if rows > 1 else ""))


def states_table(rows: Sequence[tuple[str, float]]) -> str:
    """States, as text, with their probabilities."""
    return table(["p", "", "state"], [[f"{p:.3f}", bar(p), text(name)] for name, p in rows], numbers=[0])


def _state(values: dict[str, Any], variables: Any) -> str:
    """The labels that are 1 and the values of variables."""
    names = [f"{name} = {value}" if name in variables else name for name, value in values.items()]
    ones = [shown for shown, (name, value) in zip(names, values.items(), strict=True) if name in variables or value]
    return ", ".join([*ones[:_NAMES], *(["…"] if len(ones) > _NAMES else [])]) or "no label"


def _marginals(columns: dict[str, Any]) -> str:
    """The labels in their order, or the most probable ones if there are many."""
    chances: dict[str, float] = {}
    for name, column in columns.items():
        chances |= {f"{name} = {v}": p for v, p in column.items()} if isinstance(column, dict) else {name: column}
    names = list(chances)
    if len(names) > _MARGINALS:
        names = sorted(names, key=lambda name: -chances[name])[:_MARGINALS]
    rows = [[text(name, 40), f"{chances[name]:.3f}", bar(chances[name], ORANGE)] for name in names]
    left = len(chances) - len(names)
    return (
        heading("marginals" + ", highest first" * (left > 0))
        + table(["label", "p", ""], rows, numbers=[1])
        + more(left, "labels")
    )
