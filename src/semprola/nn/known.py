"""The table of label vectors that a layer knows."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from semprola.distributions.tables import StateTable
from semprola.engine import CircuitPlans
from semprola.nn.starting import label_rows, refuse_violations


class KnownTable(nn.Module):
    """Distinct label vectors and how often each appears, saved with the layer.

    Args:
        y: label vectors [rows, labels], with repetitions.
    """

    states: Tensor
    counts: Tensor

    def __init__(self, plans: CircuitPlans, y: Any, device: Any = None) -> None:
        super().__init__()
        rows = label_rows(plans.circuit, y, "known_states")
        if not plans.circuit.given:
            refuse_violations(plans, rows, None, "known_states")
        states, counts = torch.unique(rows.to(torch.uint8), dim=0, return_counts=True)
        self.register_buffer("states", states.to(device))
        self.register_buffer("counts", counts.to(device))
        # made now, because tracing compilers cannot follow its construction
        self._kept: StateTable | None = StateTable(self.states)

    @property
    def table(self) -> StateTable:
        """The states as a searchable table; rebuilt after the states have been moved or loaded."""
        if self._kept is None or self._kept.states is not self.states:
            self._kept = StateTable(self.states)
        return self._kept

    @property
    def bias(self) -> Tensor:
        """Logarithms of the frequencies [states], float64."""
        return (self.counts.double() / self.counts.sum()).log()

    def resize(self, count: int) -> None:
        """Make room for states that a state dict will fill in; distributions that were made keep the old ones."""
        self.states = self.states.new_zeros((count, self.states.shape[1]))
        self.counts = self.counts.new_ones(count)
        self._kept = None

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"{len(self.states)} states"

    def _load_from_state_dict(self, state_dict: Any, prefix: str, *args: Any) -> None:
        # loading writes into the existing tensors, but the saved layer may know another number of states
        loaded = state_dict.get(prefix + "states")
        self.resize(len(loaded) if isinstance(loaded, Tensor) and loaded.dim() else len(self.states))
        super()._load_from_state_dict(state_dict, prefix, *args)
