"""All circuits of a pool as one, each over its own copy of the labels, so that one pass evaluates them all.

A circuit of parts that share no label is a product of them: its maximum is the sum of their maxima, and its flows are
theirs. With many small circuits, most of the time would go by between calls of the engine otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from semprola.circuit import Circuit
from semprola.compiler.join import join_circuits
from semprola.distributions.domain import maximum
from semprola.engine import CircuitPlans, Literals, Plan, indicators, log_value, posterior, supported

_LEAST = 1e-300
"""A share of a literal may vanish in double precision; bounds take it to be at most this."""


def side_by_side(circuits: Sequence[Circuit]) -> CircuitPlans:
    """The plans of circuits over the same labels as one circuit, over a copy of the labels for each."""
    renamed = [
        Circuit(
            [f"{number}:{name}" for name in circuit.labels],
            (),
            *(circuit.kind, circuit.literal, circuit.child_start, circuit.children),
            zero_suppressed=circuit.zero_suppressed,
        )
        for number, circuit in enumerate(circuits)
    ]
    return CircuitPlans(join_circuits(renamed, {}, [name for circuit in renamed for name in circuit.labels]))


class Copies:
    """Log-scores of every circuit's literals, and what the circuits make of them.

    Args:
        zeros, ones: log-scores of "label is 0" and "is 1" [circuits, labels, batch].
    """

    def __init__(self, plans: CircuitPlans, zeros: Tensor, ones: Tensor, *, explicit: bool) -> None:
        self.plans, self.shape = plans, zeros.shape[:2]
        self.plan = plans.constraint_explicit if explicit else plans.constraint
        self.zeros, self.ones = zeros.flatten(0, 1), ones.flatten(0, 1)

    def best(self) -> tuple[Tensor, Tensor]:
        """The best state of each circuit [circuits, labels, batch], and the sum of their log-scores [batch]."""
        states, values = maximum(self.plan, None, self.zeros, self.ones)
        return states[: len(self.zeros)].unflatten(0, self.shape), values

    def shares(self) -> Tensor:
        """How often each label is one in states drawn by these scores [circuits, labels, batch]."""
        literals = Literals.of(self.plan, self.zeros, self.ones)
        _, flows = posterior(self.plan, None, literals.leaves)
        shares: Tensor = literals.probability_of_one(flows)[: len(self.zeros)].unflatten(0, self.shape)
        return shares

    def total(self) -> Tensor:
        """log Σ_y exp(log-score of y), summed over circuits [batch]."""
        literals = Literals.of(self.plan, self.zeros, self.ones)
        return log_value(self.plan, None, literals.leaves) + literals.constant

    def literal_bounds(self) -> tuple[Tensor, Tensor]:
        """No states with label l at 0 (or 1) have a larger sum of log-scores than this, two of [labels, batch]."""
        total = self.total()
        zero, one = _flows(self.plans.layer_explicit, self.zeros, self.ones)
        zero, one = (share.clamp(min=_LEAST).log().unflatten(0, self.shape).sum(0) for share in (zero, one))
        return total + zero, total + one


def possible_values(plans: CircuitPlans, fixed: Tensor) -> tuple[Tensor, Tensor]:
    """Whether every circuit has a state with label l at 0 (or 1), given fixed labels: two of bool [labels, columns].

    Args:
        fixed: 0, 1, or NaN where free [labels, columns].
    """
    copies = plans.circuit.num_labels // len(fixed)
    rows = fixed.repeat(copies, 1)
    zero, one = (share > 0 for share in _flows(plans.layer_explicit, *indicators(rows, torch.float64)))
    return zero.unflatten(0, (copies, -1)).all(0), one.unflatten(0, (copies, -1)).all(0)


def all_satisfied(plans: CircuitPlans, states: Tensor) -> Tensor:
    """Whether states [labels, columns] satisfy every circuit: bool [columns]."""
    rows = states.repeat(plans.circuit.num_labels // len(states), 1)
    leaves = torch.stack(indicators(rows, torch.float32), dim=1).flatten(0, 1)
    return supported(plans.constraint_explicit, leaves)


def _flows(plan: Plan, zeros: Tensor, ones: Tensor) -> tuple[Tensor, Tensor]:
    """The share of each variable's zeros and ones; the plan mentions all variables in every branch."""
    leaves = torch.stack([zeros, ones], dim=1).flatten(0, 1)
    _, flows = posterior(plan, None, leaves)
    return flows[0 : 2 * len(zeros) : 2], flows[1 : 2 * len(zeros) : 2]
