"""A circuit as data for the page to draw: every node of a small circuit, the layers of a large one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.circuit.circuit import LITERAL, PRODUCT, SUM
from semprola.circuit.drawing import MOST_DRAWN
from semprola.circuit.fold import heights, scopes
from semprola.circuit.placement import Layout, leaf_name
from semprola.compiler.splitting import Split

_MOST_ROWS = 24
_GAP, _MARGIN = 58.0, 24.0


def picture(circuit: Circuit) -> dict[str, Any]:
    """What the page draws.

    Returns:
        For a circuit of at most 200 nodes, ``{"kind": "graph", "width", "height", "nodes", "edges"}``: each node is
        [x, y, width, kind, text] and each edge [points, parent, child], in the order of ``circuit.children``. For a
        larger one, ``{"kind": "layers", "rows"}``: each row is [lowest layer, highest layer, sums, products, literals],
        starting at the root.
    """
    return _graph(circuit) if circuit.num_nodes <= MOST_DRAWN else _layers(circuit)


def pictures(split: Split) -> dict[str, Any]:
    """The circuits of a split as the rows of a table: labels with a rule, nodes, edges."""
    rows = [
        [int(mentioned.sum()), circuit.num_nodes, circuit.num_edges]
        for circuit, mentioned in zip(split.circuits, split.mentions, strict=True)
    ]
    return {"kind": "circuits", "rows": rows}


class Flow:
    """How much of the probability flows through each edge of a circuit.

    Args:
        circuit: a decomposable and deterministic circuit without given variables.
    """

    def __init__(self, circuit: Circuit) -> None:
        self._circuit = circuit
        self.is_drawn = circuit.num_nodes <= MOST_DRAWN and not circuit.given
        if self.is_drawn:
            scope = _scope_bits(circuit)
            parent = np.repeat(np.arange(circuit.num_nodes), np.diff(circuit.child_start))
            self._missing = scope[parent] & ~scope[circuit.children] & (circuit.kind[parent] == SUM)[:, None]

    def through_edges(self, weights: NDArray[np.float64]) -> list[float] | None:
        """Probabilities in the order of ``circuit.children``; None if the circuit is too large to draw.

        Args:
            weights: weights of label = 0 and label = 1 [labels, 2]; they must leave some model possible.
        """
        if not self.is_drawn:
            return None
        circuit = self._circuit
        # a label that a branch does not mention is free there, or 0 if it is zero-suppressed
        absent = np.where(circuit.zero_suppressed, weights[:, 0], weights.sum(axis=1))
        factor = np.where(self._missing, absent, 1.0).prod(axis=1).tolist()
        start, children = circuit.child_start.tolist(), circuit.children.tolist()
        kind, literal = circuit.kind.tolist(), circuit.literal.tolist()
        value = [1.0] * circuit.num_nodes
        for node in range(circuit.num_nodes):
            edges = range(start[node], start[node + 1])
            if literal[node]:
                value[node] = float(weights[abs(literal[node]) - 1, int(literal[node] > 0)])
            elif kind[node] == SUM:
                value[node] = sum(value[children[edge]] * factor[edge] for edge in edges)
            else:
                value[node] = math.prod(value[children[edge]] for edge in edges)
        flow = [0.0] * circuit.num_nodes
        flow[circuit.root] = 1.0
        through = [0.0] * circuit.num_edges
        for node in range(circuit.root, -1, -1):
            for edge in range(start[node], start[node + 1]):
                share = 1.0
                if kind[node] == SUM:
                    share = value[children[edge]] * factor[edge] / value[node] if value[node] else 0.0
                through[edge] = round(flow[node] * share, 6)
                flow[children[edge]] += flow[node] * share
        return through


def _graph(circuit: Circuit) -> dict[str, Any]:
    names = [leaf_name(circuit, node) for node in range(circuit.num_nodes)]
    widths = [26.0 if name is None else max(26.0, 16 + 7.2 * _columns(name)) for name in names]
    layout = Layout(circuit, widths)
    top = len(layout.layers) - 1
    right = max(x + width / 2 for x, width in zip(layout.x, layout.widths, strict=True))
    places = [
        [round(x + _MARGIN, 1), round(_MARGIN + (top - layer) * _GAP, 1)]
        for x, layer in zip(layout.x, layout.layer_of, strict=True)
    ]
    kinds = {SUM: "sum", PRODUCT: "product", LITERAL: "literal"}
    nodes: list[list[Any]] = []
    for node, name in enumerate(names):
        kind = kinds[int(circuit.kind[node])]
        if kind == "literal" and int(circuit.literal[node]) < 0:
            kind = "negative"
        nodes.append([*places[node], widths[node], kind if name != "true" else "true", name or ""])
    edges = [[[places[slot] for slot in chain], chain[0], chain[-1]] for chain in layout.chains]
    return {
        "kind": "graph",
        "width": round(right + 2 * _MARGIN, 1),
        "height": round(top * _GAP + 2 * _MARGIN, 1),
        "nodes": nodes,
        "edges": edges,
    }


def _layers(circuit: Circuit) -> dict[str, Any]:
    height = heights(circuit.child_start, circuit.children)
    layers = int(height.max()) + 1
    step = -(-layers // _MOST_ROWS)
    rows = -(-layers // step)
    counts = [
        np.bincount(height[circuit.kind == kind] // step, minlength=rows).tolist() for kind in (SUM, PRODUCT, LITERAL)
    ]
    shown = [
        [row * step, min(layers, (row + 1) * step) - 1, *(count[row] for count in counts)]
        for row in range(rows - 1, -1, -1)
    ]
    return {"kind": "layers", "rows": shown}


def _scope_bits(circuit: Circuit) -> NDArray[np.bool_]:
    """Which labels each node mentions, bool [nodes, labels]; the root counts as mentioning all."""
    label = np.arange(circuit.num_labels)
    words = scopes(circuit)[:, label // 64]
    bits: NDArray[np.bool_] = (words >> (label % 64).astype(np.uint64)) & np.uint64(1) > 0
    bits[circuit.root] = True
    return bits


def _columns(text: Sequence[str]) -> int:
    return sum(1 if ord(character) < 0x1100 else 2 for character in text)
