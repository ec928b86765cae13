"""Label vectors together with the circuit's weights that they use, computed once and used in every epoch."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from semprola.distributions.arguments import check_labels, flat_sizes
from semprola.distributions.names import as_rows
from semprola.engine import CircuitPlans, encode
from semprola.errors import LabelError


class EncodedStates:
    """Label vectors and the weights of a circuit that each of them uses. `log_prob` accepts it instead of the vectors.

    It is indexed like a tensor [*batch]: ``index[rows]`` is a batch of label vectors.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.SPL(4, sp.one_hot(["a", "b", "c"]))
        >>> index = layer.encode(torch.eye(3))
        >>> z = torch.randn(2, 4)
        >>> torch.equal(layer(z).log_prob(index[[2, 0]]), layer(z).log_prob(torch.eye(3)[[2, 0]]))
        True
    """

    def __init__(self, plans: CircuitPlans, states: Tensor, codes: Tensor | None) -> None:
        self._plans, self.states, self.codes = plans, states, codes

    @classmethod
    def of(cls, plans: CircuitPlans, y: Any) -> EncodedStates:
        """Encode label vectors ([*batch, labels], or by name) for a layer's circuit.

        Raises:
            ValueError: if the number of labels is wrong, or a value is neither 0 nor 1.
            LabelError: if a column is unknown or missing.
        """
        circuit = plans.circuit
        y = as_rows(y, circuit.labels, "y", torch.zeros(0))
        if y.dim() == 0 or y.shape[-1] != circuit.num_labels:
            raise ValueError(f"expected rows of {circuit.num_labels} labels, got a tensor of shape {tuple(y.shape)}")
        check_labels(y)
        states = y.detach().to(torch.uint8)
        # which branches a state uses depends on the given inputs, and with several units there is more than one
        if circuit.given or not plans.is_deterministic:
            return cls(plans, states, None)
        rows = y.detach().to(torch.float32).reshape(-1, circuit.num_labels).T
        codes = encode(plans.layer_explicit, rows)
        return cls(plans, states, codes.reshape(*y.shape[:-1], codes.shape[-1]))

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, index: Any) -> EncodedStates:
        if isinstance(index, tuple):
            index = (*index, slice(None))
        codes = None if self.codes is None else self.codes[index]
        return EncodedStates(self._plans, self.states[index], codes)

    def to(self, device: torch.device | str) -> EncodedStates:
        """A copy on another device."""
        codes = None if self.codes is None else self.codes.to(device)
        return EncodedStates(self._plans, self.states.to(device), codes)

    def __repr__(self) -> str:
        return f"EncodedStates(batch_shape={tuple(self.states.shape[:-1])}, labels={self.states.shape[-1]})"

    def is_of(self, plans: CircuitPlans) -> bool:
        """Whether they were encoded for this circuit."""
        own = self._plans
        return own is plans or (
            own.circuit == plans.circuit and own.units == plans.units and own.mixing == plans.mixing
        )

    def unpack(self, plans: CircuitPlans, batch_shape: torch.Size) -> tuple[Tensor, Tensor | None]:
        """The label vectors [*sample, *batch, labels] and their codes [samples, batch, most].

        Raises:
            LabelError: if they were encoded for another circuit.
            ValueError: if they do not fit the batch.
        """
        if not self.is_of(plans):
            raise LabelError("these label vectors were encoded for another circuit: use this layer's own encode")
        if self.codes is None:
            return self.states, None
        shape, samples, batch = flat_sizes(self.states.shape, batch_shape)
        codes = self.codes.expand(*shape, -1).reshape(samples, batch, self.codes.shape[-1])
        return self.states, codes
