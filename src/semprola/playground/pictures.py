"""A circuit as data that the page can draw: every node of a small one, the layers of a large one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.circuit.circuit import LITERAL, PRODUCT, SUM
from semprola.circuit.drawing import MOST_DRAWN
from semprola.circuit.levels import heights
from semprola.circuit.placement import Layout, leaf_name
from semprola.circuit.scopes import scopes

_MOST_ROWS = 24
_GAP, _MARGIN = 58.0, 24.0


def picture(circuit: Circuit) -> dict[str, Any]:
    """What the page draws.

    Returns:
        Of a circuit of at most 200 nodes, ``{"kind": "graph", "width", "height", "nodes", "edges"}``: each node is
        [x, y, width, kind, text] and each edge [points, parent, child], in the order of ``circuit.children``. Of a
        larger one ``{"kind": "layers", "rows"}``: each row is [lowest layer, highest layer, sums, products, literals],
        the root's first.

    Example:
        >>> import semprola as sp
        >>> picture(sp.compile("a -> b"))["kind"]
        'graph'
    """
    return _graph(circuit) if circuit.num_nodes <= MOST_DRAWN else _layers(circuit)


def flows(circuit: Circuit, weights: NDArray[np.float64]) -> list[float] | None:
    """The share of the probability that runs through each edge, in the order of ``circuit.children``.

    Args:
        circuit: a decomposable and deterministic circuit without given variables, small enough to draw.
        weights: of label = 0 and label = 1, [labels, 2].

    Returns:
        Probabilities; None if the circuit is too large to draw or nothing is possible.

    Example:
        >>> import semprola as sp
        >>> flows(sp.compile("a & b"), np.full((2, 2), 0.5))
        [1.0, 1.0]
    """
    if circuit.num_nodes > MOST_DRAWN or circuit.given:
        return None
    scope = _scope_bits(circuit)
    # A label that a branch leaves out is free there, or 0 if the circuit says so.
    absent = np.where(circuit.zero_suppressed, weights[:, 0], weights.sum(axis=1))
    value = np.zeros(circuit.num_nodes)
    edge_value = np.ones(circuit.num_edges)
    for node in range(circuit.num_nodes):
        edges = slice(circuit.child_start[node], circuit.child_start[node + 1])
        children = circuit.children[edges]
        literal = int(circuit.literal[node])
        if literal:
            value[node] = weights[abs(literal) - 1, int(literal > 0)]
        elif circuit.kind[node] == SUM:
            missing = scope[node] & ~scope[children]
            edge_value[edges] = value[children] * np.where(missing, absent, 1.0).prod(axis=1)
            value[node] = edge_value[edges].sum()
        else:
            value[node] = value[children].prod()
    if not value[circuit.root] > 0:
        return None
    flow = np.zeros(circuit.num_nodes)
    flow[circuit.root] = 1.0
    edge_flow = np.zeros(circuit.num_edges)
    for node in range(circuit.num_nodes - 1, -1, -1):
        edges = slice(circuit.child_start[node], circuit.child_start[node + 1])
        share = flow[node]
        if circuit.kind[node] == SUM:
            edge_flow[edges] = share * edge_value[edges] / value[node] if value[node] > 0 else 0.0
        else:
            edge_flow[edges] = share
        np.add.at(flow, circuit.children[edges], edge_flow[edges])
    rounded: list[float] = np.round(edge_flow, 6).tolist()
    return rounded


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
    """Which labels each node mentions, bool [nodes, labels]; of the root all, so that it misses none."""
    label = np.arange(circuit.num_labels)
    words = scopes(circuit)[:, label // 64]
    bits: NDArray[np.bool_] = (words >> (label % 64).astype(np.uint64)) & np.uint64(1) > 0
    bits[circuit.root] = True
    return bits


def _columns(text: Sequence[str]) -> int:
    return sum(1 if ord(character) < 0x1100 else 2 for character in text)
