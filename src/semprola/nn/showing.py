"""Layers in notebooks: their size beside their text."""

from __future__ import annotations

from torch import nn

from semprola._notebook import shown, table, text


class Shown:
    """What notebooks show of a layer."""

    @shown
    def _repr_html_(self) -> str | None:
        return html(self) if isinstance(self, nn.Module) else None


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
