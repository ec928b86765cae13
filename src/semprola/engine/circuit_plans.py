"""The plans of one circuit, each made when a query first needs it."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import torch

from semprola.circuit import Circuit
from semprola.engine.backends import torch_passes as passes
from semprola.engine.plan import Plan, Step
from semprola.engine.skeleton import Index, Skeleton, binarize, expand, group_branches, skeleton

_SMALL = 4096
"""If a circuit has at most this many nodes, its models are counted beforehand, and listed if there are as few."""


class CircuitPlans:
    """A circuit and the plans that evaluate it, for a layer with `units` copies of each sum.

    Args:
        circuit: a decomposable, deterministic circuit.
        units: k of the paper; 1 for a plain circuit.
        mixing: which units of a product's two inputs are multiplied: all pairs ("cross") or unit i with unit i
            ("elementwise").
    """

    def __init__(self, circuit: Circuit, units: int = 1, mixing: str = "cross") -> None:
        if mixing not in ("cross", "elementwise"):
            raise ValueError(f"mixing must be 'cross' or 'elementwise', not {mixing!r}")
        self.circuit = circuit
        self.units, self.mixing = units, mixing

    def __reduce__(self) -> tuple[type[CircuitPlans], tuple[Any, ...]]:
        return CircuitPlans, (self.circuit, self.units, self.mixing)

    def __deepcopy__(self, memo: dict[int, Any]) -> CircuitPlans:
        return self

    def prepare_constraint(self) -> None:
        """Make the plans of the constraint alone now, because tracing compilers cannot follow their construction."""
        _ = self.constraint, self.constraint_explicit
        self._prepare_states()

    def prepare_layer(self) -> None:
        """The same for the plans of a single-circuit layer."""
        _ = self.layer, self.layer_explicit, None if self.is_deterministic else self.bound
        self._prepare_states()

    def _prepare_states(self) -> None:
        if self.circuit.num_nodes <= _SMALL and self.model_count <= _SMALL:
            _ = self.few_states

    @property
    def is_deterministic(self) -> bool:
        return self.units == 1

    @cached_property
    def few_states(self) -> torch.Tensor:
        """Every label vector that is a model for some input [states, labels], uint8; for circuits with few models."""
        rows = torch.from_numpy(self.circuit.enumerate()[:, : self.circuit.num_labels].copy())
        return torch.unique(rows, dim=0) if self.circuit.given else rows

    @cached_property
    def model_count(self) -> int:
        """Number of models of the circuit, over labels and given variables."""
        return self.circuit.model_count()

    # the constraint alone -------------------------------------------------------------------------------------------

    @cached_property
    def constraint(self) -> Plan:
        """The circuit as it is; the caller accounts for labels that a branch does not mention."""
        return Plan(skeleton(self.circuit, fill_free=False, fill_suppressed=False))

    @cached_property
    def constraint_explicit(self) -> Plan:
        """The circuit with its zero-suppressed literals spelled out, so that labels can be observed to be one."""
        if not self.circuit.zero_suppressed.any():
            return self.constraint
        return Plan(skeleton(self.circuit, fill_free=False, fill_suppressed=True))

    # the single-circuit layer ---------------------------------------------------------------------------------------

    @cached_property
    def layer(self) -> Plan:
        """Every label that a branch leaves free has a sum of its own; zero-suppressed ones stay implicit."""
        return Plan(self._layer_shape(explicit=False))

    @cached_property
    def layer_explicit(self) -> Plan:
        """The same weights as `layer`, with all literals spelled out."""
        if not self.circuit.zero_suppressed.any():
            return self.layer
        return Plan(self._layer_shape(explicit=True))

    @cached_property
    def bound(self) -> tuple[Plan, torch.Tensor]:
        """A plan that maximises over branches and sums over units, and the weight of `layer` per weight (-1: none)."""
        # with all literals spelled out, since labels may have been observed
        base = self.layer_explicit
        shape, is_choice = group_branches(base.shape)
        plan = Plan(shape, is_choice, weigh_all=True)
        return plan, plan.weights_of(base, shape.edge_copied)

    @cached_property
    def log_counts(self) -> torch.Tensor:
        """Log of the number of states below each weight of `layer`, shared out evenly among units; float64 [W]."""
        base = Plan(self._base_shape(explicit=False))
        counts = torch.zeros(base.num_edges, dtype=torch.float64)

        def keep(step: Step, edges: torch.Tensor, sums: torch.Tensor) -> None:
            counts[step.edges] = edges.reshape(-1)

        passes.upward(base, None, torch.zeros((base.num_leaves, 1), dtype=torch.float64), passes.total, visit=keep)
        copied = self.layer.shape.edge_copied
        origin = copied[self.layer.edge_order[self.layer.num_fixed :]]
        copies = np.bincount(copied, minlength=base.num_edges)
        per_unit = copies / np.maximum(1, self._units_of_owner(base))
        return counts[base.edge_position[origin]] - torch.from_numpy(np.log(per_unit))[origin]

    def _units_of_owner(self, base: Plan) -> Index:
        owner = np.repeat(np.arange(base.shape.num_sums), np.diff(base.shape.edge_start))
        units = np.bincount(self.layer.shape.sum_copied, minlength=base.shape.num_sums)
        return units[owner]

    def _base_shape(self, explicit: bool) -> Skeleton:
        shape = skeleton(self.circuit, fill_free=True, fill_suppressed=explicit)
        return shape if self.units == 1 else binarize(shape)

    def _layer_shape(self, explicit: bool) -> Skeleton:
        shape = self._base_shape(explicit)
        return shape if self.units == 1 else expand(shape, self.units, diagonal=self.mixing == "elementwise")
