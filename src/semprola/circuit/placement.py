"""Where to draw the nodes of a small circuit, and what to write in their boxes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from semprola.circuit.circuit import Circuit
from semprola.circuit.fold import heights

_NAME_LENGTH = 24


def leaf_name(circuit: Circuit, node: int) -> str | None:
    """The text in the box of a node; None for sums and products, which have a sign instead."""
    literal = int(circuit.literal[node])
    if not literal:
        return None if circuit.child_start[node + 1] > circuit.child_start[node] else "true"
    name = "".join(c if c.isprintable() else "�" for c in circuit.variables[abs(literal) - 1])
    name = name if len(name) <= _NAME_LENGTH else name[: _NAME_LENGTH - 1] + "…"
    return name if literal > 0 else f"¬{name}"


class Layout:
    """A layered layout: each node is above its children, and a long edge bends at a slot on every layer it crosses.

    Attributes:
        layers: the slots of each layer from left to right; slots below `num_nodes` are nodes, the others bends.
        layer_of, x, widths: the layer, position and width of every slot.
        chains: the slots of each edge, from parent to child.
    """

    def __init__(self, circuit: Circuit, widths: Sequence[float]) -> None:
        self.layer_of: list[int] = heights(circuit.child_start, circuit.children).tolist()
        self.widths = list(widths)
        self.chains: list[list[int]] = []
        for parent in range(circuit.num_nodes):
            for child in circuit.children_of(parent).tolist():
                bends = range(self.layer_of[parent] - 1, self.layer_of[child], -1)
                slots = range(len(self.widths), len(self.widths) + len(bends))
                self.layer_of += bends
                self.widths += [4.0] * len(bends)
                self.chains.append([parent, *slots, child])
        self.above: list[list[int]] = [[] for _ in self.widths]
        self.below: list[list[int]] = [[] for _ in self.widths]
        for chain in self.chains:
            for upper, lower in pairwise(chain):
                self.below[upper].append(lower)
                self.above[lower].append(upper)
        self.layers = self._depth_first(circuit.root)
        self._uncross()
        self.x = self._positions()

    def _depth_first(self, root: int) -> list[list[int]]:
        """An initial order: slots as a walk from the root meets them, then those that it does not reach."""
        layers: list[list[int]] = [[] for _ in range(max(self.layer_of) + 1)]
        seen: set[int] = set()
        stack = [*(slot for slot in range(len(self.widths)) if not self.above[slot] and slot != root), root]
        while stack:
            slot = stack.pop()
            if slot not in seen:
                seen.add(slot)
                layers[self.layer_of[slot]].append(slot)
                stack += reversed(self.below[slot])
        return layers

    def _uncross(self) -> None:
        """Sort each layer by the mean position of the slots' neighbours, alternately downwards and upwards."""
        place = [0.0] * len(self.widths)
        for layer in self.layers:
            for i, slot in enumerate(layer):
                place[slot] = float(i)
        for turn in range(12):
            near = self.below if turn % 2 else self.above
            for layer in self.layers if turn % 2 else reversed(self.layers):
                goal = {s: sum(place[n] for n in near[s]) / len(near[s]) if near[s] else place[s] for s in layer}
                layer.sort(key=goal.__getitem__)
                for i, slot in enumerate(layer):
                    place[slot] = float(i)

    def _positions(self) -> list[float]:
        """Place every slot near the mean of its neighbours, in the order of its layer and with room around it."""
        x = [0.0] * len(self.widths)
        for layer in self.layers:
            for i, slot in enumerate(layer):
                x[slot] = 40.0 * (i - len(layer) / 2)
        for turn in range(24):
            for layer in self.layers if turn % 2 else reversed(self.layers):
                goals = []
                for slot in layer:
                    near = (self.below if turn % 2 else self.above)[slot]
                    if turn >= 20:
                        near = [*self.below[slot], *self.above[slot]]
                    goals.append(sum(x[n] for n in near) / len(near) if near else x[slot])
                for slot, place in zip(layer, self._spread(layer, goals), strict=True):
                    x[slot] = place
        left = min(place - width / 2 for place, width in zip(x, self.widths, strict=True))
        return [place - left for place in x]

    def _spread(self, layer: Sequence[int], goals: Sequence[float]) -> list[float]:
        """The positions closest to the goals (least squares) that keep order and distance; slots move in pools."""
        offsets = [0.0]
        for one, other in pairwise(layer):
            offsets.append(offsets[-1] + (self.widths[one] + self.widths[other]) / 2 + 14)
        pools: list[tuple[float, int]] = []
        for goal, offset in zip(goals, offsets, strict=True):
            total, size = goal - offset, 1
            while pools and pools[-1][0] / pools[-1][1] > total / size:
                before = pools.pop()
                total, size = total + before[0], size + before[1]
            pools.append((total, size))
        bases = [total / size for total, size in pools for _ in range(size)]
        return [base + offset for base, offset in zip(bases, offsets, strict=True)]
