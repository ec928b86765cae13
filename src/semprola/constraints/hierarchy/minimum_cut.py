"""The most probable set of independent labels under a hierarchy, found by a minimum cut without a circuit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
from networkx.algorithms.flow import boykov_kolmogorov

from semprola.constraints.hierarchy.family import Hierarchy, hierarchy
from semprola.constraints.hierarchy.order import peel
from semprola.errors import LabelError

Floats = npt.NDArray[np.float64]
_SOURCE, _SINK = "source", "sink"


def hierarchy_mode(logits: Any, source: Any, /, **reading: Any) -> Any:
    """The label set in a hierarchy with the greatest sum of logits: the exact mode of independent labels.

    Choosing a label brings in all its ancestors, so this is a maximum closure of the hierarchy. In a forest it is found
    from the leaves up, in a DAG by a minimum cut. It needs no circuit, however large that would be. Among several best
    sets, the smallest is returned.

    Args:
        logits: array or tensor [*batch, labels], the finite value ``log(p_j / (1 - p_j))`` of each label.
        source: a hierarchy, or whatever :func:`hierarchy` takes.
        reading: options of :func:`hierarchy`, if `source` is not yet a hierarchy.

    Returns:
        0/1 of the same shape; an array of dtype uint8, or a tensor of the dtype of the logits.

    Raises:
        LabelError: the numbers of logits and labels differ.
        ValueError: a logit is not finite, or the hierarchy has options other than ``nonempty``, which need a circuit.

    Example:
        >>> hierarchy_mode([[2.0, -3.0, 1.5], [2.0, -4.0, 1.5]], [("cat", "animal"), ("dog", "animal")])
        array([[1, 1, 1],
               [0, 0, 0]], dtype=uint8)
    """
    rule = source if isinstance(source, Hierarchy) and not reading else hierarchy(source, **reading)
    if rule.mandatory_leaf or rule.exclusive_siblings:
        raise ValueError("hierarchy_mode: only nonempty= is possible; for other options, compile a circuit")
    is_tensor = hasattr(logits, "new_tensor")
    values = np.asarray(logits.detach().cpu().numpy() if is_tensor else logits, np.float64)
    if values.ndim == 0 or values.shape[-1] != len(rule.names):
        raise LabelError(f"hierarchy_mode: logits have shape {list(values.shape)} for {len(rule.names)} labels")
    if not np.isfinite(values).all():
        row = int(np.argwhere(~np.isfinite(values.reshape(-1, values.shape[-1])))[0, 0])
        raise ValueError(f"hierarchy_mode: a logit of row {row} is not finite")
    chosen = _Closures(rule).best(values.reshape(-1, len(rule.names))).reshape(values.shape)
    return logits.new_tensor(chosen.tolist()) if is_tensor else chosen.astype(np.uint8)


class _Closures:
    """Best closures of many rows: trees by dynamic programming, the rest by one cut per row."""

    def __init__(self, rule: Hierarchy) -> None:
        self.rule = rule
        self.peeled = peel(rule.parents_of, rule.children_of)
        self.core = sorted(set(range(len(rule.names))) - set(self.peeled))

    def best(self, weights: Floats) -> npt.NDArray[np.bool_]:
        """Rows of truth values [rows, labels] from rows of weights."""
        gain = weights.copy()  # the gain of turning on a label, with the best choice in the trees below it
        for v in self.peeled:
            for parent in self.rule.parents_of[v]:
                gain[:, parent] += np.maximum(gain[:, v], 0)
        on = np.zeros(weights.shape, np.bool_)
        for row, values in enumerate(gain):
            for v in self._core_choice(values):
                on[row, v] = True
        if self.rule.nonempty:
            self._fill(gain, on)
        for v in reversed(self.peeled):
            parents = self.rule.parents_of[v]
            on[:, v] |= (gain[:, v] > 0) & (on[:, parents[0]] if parents else True)
        return on

    def _core_choice(self, gain: Floats, forced: int | None = None) -> list[int]:
        """The core labels that are on in the best closure, possibly with one label forced on."""
        seeds = [v for v in self.core if gain[v] > 0 or v == forced]
        wanted = dict.fromkeys(seeds)
        for v in seeds:
            for parent in self.rule.parents_of[v]:
                if parent not in wanted:
                    wanted[parent] = None
                    seeds.append(parent)
        number = {v: i for i, v in enumerate(wanted)}
        weights = [math.inf if v == forced else float(gain[v]) for v in wanted]
        parents = [[number[p] for p in self.rule.parents_of[v]] for v in wanted]
        kept = closure(weights, parents)
        return [v for v, keep in zip(wanted, kept, strict=True) if keep]

    def _fill(self, gain: Floats, on: npt.NDArray[np.bool_]) -> None:
        """In rows where no label is on, choose the best closure in which a root is on."""
        roots = [v for v, parents in enumerate(self.rule.parents_of) if not parents]
        trees = [v for v in roots if v in set(self.peeled)]
        empty = ~on.any(axis=1)
        if trees:
            empty &= ~(gain[:, trees] > 0).any(axis=1)
        for row in np.flatnonzero(empty):
            best, chosen = -math.inf, [roots[0]]
            for root in roots:
                found = [root] if root in trees else self._core_choice(gain[row], root)
                value = float(gain[row, found].sum())
                if value > best:
                    best, chosen = value, found
            on[row, chosen] = True


def closure(weights: Sequence[float], parents: Sequence[Sequence[int]]) -> list[bool]:
    """The set of greatest total weight that contains the parents of its members; the smallest one if there are several.

    Example:
        >>> closure([2.0, -3.0, 1.5], [[1], [], [1]])
        [True, True, True]
        >>> closure([2.0, -4.0, 1.5], [[1], [], [1]])
        [False, False, False]
    """
    # whole numbers, so that flows and ties are exact
    ratios = [(0, 1) if math.isinf(weight) else float(weight).as_integer_ratio() for weight in weights]
    scale = max((denominator for _, denominator in ratios), default=1)
    network = nx.DiGraph()
    network.add_nodes_from((_SOURCE, _SINK))
    for v, (weight, (numerator, denominator)) in enumerate(zip(weights, ratios, strict=True)):
        capacity = {} if math.isinf(weight) else {"capacity": abs(numerator) * (scale // denominator)}
        if weight > 0:
            network.add_edge(_SOURCE, v, **capacity)
        elif weight < 0:
            network.add_edge(v, _SINK, **capacity)
        network.add_edges_from((v, parent) for parent in parents[v])
    rest = boykov_kolmogorov(network, _SOURCE, _SINK)
    open_edges = nx.subgraph_view(rest, filter_edge=lambda a, b: rest[a][b]["flow"] < rest[a][b]["capacity"])
    reached = nx.descendants(open_edges, _SOURCE)
    return [v in reached for v in range(len(weights))]
