"""What all layers have: their size beside their text in notebooks, and the fingerprint of their constraint."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from semprola._notebook import shown, table, text
from semprola.errors import FormatError


class Shown:
    """What notebooks show of a layer, and what is saved beside its parameters."""

    circuit: Any
    _others = "another circuit: save and load the circuit along with them"
    """Whose parameters are refused."""

    @shown
    def _repr_html_(self) -> str | None:
        return html(self) if isinstance(self, nn.Module) else None

    def _digest(self) -> str:
        """The hash of what gives the parameters their meaning."""
        split = getattr(self, "split", None)
        digest: str = (self.circuit if split is None else split).digest
        return digest

    def get_extra_state(self) -> Tensor:
        """A fingerprint of the constraint, saved with the parameters."""
        return torch.tensor(list(bytes.fromhex(self._digest())[:16]), dtype=torch.uint8)

    def set_extra_state(self, state: Any) -> None:
        """Refuse parameters that were trained for another constraint; their meaning would silently change."""
        own = self.get_extra_state()
        if not isinstance(state, Tensor) or state.dtype != own.dtype or state.shape != own.shape:
            raise FormatError("the fingerprint of the circuit in this state dict is damaged: save the layer again")
        if not torch.equal(state.cpu(), own):
            raise FormatError(f"these parameters belong to {self._others}")


def html(layer: nn.Module) -> str:
    """The constraint, the circuit and the parameters of a layer."""
    numbers = sum(parameter.numel() for parameter in layer.parameters())
    trained = sum(parameter.numel() for parameter in layer.parameters() if parameter.requires_grad)
    frozen = f", of which {trained:,} are trained" if trained != numbers else ""
    rows = [["size", f"{numbers:,} parameters{frozen}"]]
    circuit = getattr(layer, "circuit", None)
    if getattr(layer, "split", None) is not None:
        rows.insert(0, ["constraint", text(layer.split)])
    elif circuit is not None:
        inputs = f" and {len(circuit.given):,} inputs" if circuit.given else ""
        rows.insert(0, ["constraint", f"{circuit.num_labels:,} labels{inputs}"])
        rows.insert(1, ["circuit", f"{circuit.num_nodes:,} nodes, {circuit.num_edges:,} edges"])
    rows.append(["module", f'<pre style="margin:0">{text(repr(layer), 3000)}</pre>'])
    return table([type(layer).__name__, ""], [[name, cell] for name, cell in rows])
