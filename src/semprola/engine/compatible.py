"""A circuit q over the constraint's own vtree, and its product with the constraint.

At a node v of the vtree with parts l and r, q has `units` functions q_v^i = Σ_ab ω^v_iab q_l^a q_r^b (for a hidden
Markov model along a variable order, only a = b, the next hidden state); at a leaf, q_v^i is a Bernoulli. The product
with the constraint has one sum for each pair of a constraint node n and a vtree node v that covers it, and costs
O(|q| |c|).
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from semprola.circuit import LITERAL, PRODUCT, Circuit, Vtree
from semprola.circuit.fold import levels
from semprola.circuit.transforms import smooth
from semprola.engine.circuit_plans import CircuitPlans
from semprola.engine.plan import Plan
from semprola.engine.skeleton import Index, Skeleton, assemble, expand
from semprola.errors import PropertyError


class CompatiblePlans(CircuitPlans):
    """Plans of q, and of q times a structured circuit.

    Args:
        circuit: a circuit that respects a vtree (a linear one for `kind` "hmm").
        width: number of units of q per vtree node.
        kind: "hmm" or "vtree".

    Raises:
        PropertyError: if the circuit lacks the structure that `kind` needs.
    """

    def __init__(self, circuit: Circuit, width: int, kind: str) -> None:
        super().__init__(circuit)
        self.width, self.kind = width, kind
        if circuit.vtree is None or not circuit.is_structured:
            raise PropertyError(f"q={kind!r} needs a circuit that respects a vtree: compile it with backend='sdd'")
        rename = {v: v for v in range(circuit.num_labels)}
        vtree = circuit.vtree.restrict(rename)
        assert vtree is not None
        if kind == "hmm" and not vtree.is_right_linear:
            raise PropertyError(
                "q='hmm' needs a circuit over a linear variable order: compile it with backend='automata', or use "
                "q='vtree'"
            )
        self.vtree: Vtree = vtree
        self.parameter_blocks = self._blocks()
        """(first parameter, distributions, outcomes) of the two runs of parameters: Bernoullis, then mixtures."""

    def __reduce__(self) -> tuple[type[CompatiblePlans], tuple[Any, ...]]:
        return CompatiblePlans, (self.circuit, self.width, self.kind)

    def prepare_layer(self) -> None:
        """Make the plans of q, of its product and of the constraint now."""
        self.prepare_constraint()
        _ = self.product, self.alone, None if self.is_deterministic else self.bound

    @property
    def is_deterministic(self) -> bool:
        return self.width == 1

    # parameters of q ------------------------------------------------------------------------------------------------

    def _blocks(self) -> tuple[tuple[int, int, int], ...]:
        leaves = self.vtree.num_variables
        inner = self._unit_count[self.vtree.variable < 0]
        units = int(self._unit_count[self.vtree.variable >= 0].sum())
        blocks = [(0, units, 2)]
        if leaves > 1:
            blocks.append((2 * units, int(inner.sum()), self._outcomes))
        return tuple(blocks)

    @property
    def num_parameters(self) -> int:
        return sum(count * size for _, count, size in self.parameter_blocks)

    def normalize(self, logits: Tensor) -> Tensor:
        """Log-probabilities of q's local distributions from logits [parameters, columns]."""
        blocks = logits.split([count * size for _, count, size in self.parameter_blocks])
        parts = []
        for (_, count, size), block in zip(self.parameter_blocks, blocks, strict=True):
            local = torch.log_softmax(block.view(count, size, logits.shape[1]), 1)
            parts.append(local.flatten(0, 1))
        return torch.cat(parts)

    def independent(self, odds: Tensor) -> Tensor:
        """Parameters [parameters] of a q whose labels are independent, with these log-odds [labels]."""
        logits = odds.new_zeros(self.num_parameters)
        for node in np.flatnonzero(self.vtree.variable >= 0).tolist():
            first, units = int(self._first_parameter[node]), int(self._unit_count[node])
            logits[first + 1 : first + 2 * units : 2] = odds[int(self.vtree.variable[node])]
        return logits

    @property
    def _outcomes(self) -> int:
        return self.width if self.kind == "hmm" else self.width**2

    @cached_property
    def _unit_count(self) -> Index:
        """Units of q at each node of the vtree: one at the root."""
        units = np.full(len(self.vtree), self.width, dtype=np.int64)
        units[self.vtree.root] = 1
        return units

    @cached_property
    def _first_parameter(self) -> Index:
        """Where the parameters of each vtree node start: those of leaves first."""
        leaf = self.vtree.variable >= 0
        size = self._unit_count * np.where(leaf, 2, self._outcomes)
        order = np.argsort(~leaf, kind="stable")
        first = np.empty(len(self.vtree), dtype=np.int64)
        first[order] = np.cumsum(size[order]) - size[order]
        return first

    # plans ----------------------------------------------------------------------------------------------------------

    @cached_property
    def alone(self) -> tuple[Plan, Tensor]:
        """The plan of q itself and the parameter of each of its weights."""
        return self._plan_of(_Product(self.circuit, self.vtree, only_q=True))

    @cached_property
    def product(self) -> tuple[Plan, Tensor]:
        """The plan of q times the constraint and the parameter of each of its weights."""
        return self._plan_of(_Product(self.circuit, self.vtree, only_q=False))

    @property
    def layer(self) -> Plan:
        """The product, which answers the queries that a single-circuit layer asks of its own plan."""
        return self.product[0]

    @property
    def layer_explicit(self) -> Plan:
        return self.product[0]

    def _plan_of(self, pairs: _Product) -> tuple[Plan, Tensor]:
        base = pairs.skeleton()
        diagonal = self.kind == "hmm"
        shape = base if self.width == 1 else expand(base, self.width, diagonal=diagonal, split_single=True)
        plan = Plan(shape, weigh_all=True)
        owner = np.repeat(np.arange(shape.num_sums), np.diff(shape.edge_start))
        copied = shape.sum_copied
        home = np.asarray(pairs.home)[copied[owner]]
        first_copy = np.searchsorted(copied, copied[owner])
        unit = owner - first_copy
        leaf = self.vtree.variable[home] >= 0
        combination = 0 if shape.copies is None else shape.copies.combination
        outcome = np.where(leaf, np.asarray(pairs.sign)[shape.edge_copied], combination)
        size = np.where(leaf, 2, self._outcomes)
        parameter = self._first_parameter[home] + unit * size + outcome
        return plan, torch.from_numpy(parameter[plan.edge_order])


class _Product:
    """One sum for each pair (group of constraint nodes, vtree node). A group is a conjunction of nodes.

    The empty group is true, so its sums are q itself.
    """

    def __init__(self, circuit: Circuit, vtree: Vtree, *, only_q: bool) -> None:
        # spell out zero-suppressed literals first, so that every unmentioned variable is free
        self.circuit = smooth(circuit, circuit.zero_suppressed) if circuit.zero_suppressed.any() else circuit
        self.vtree = vtree
        self.first, self.last = self._label_intervals()
        self.number: dict[tuple[tuple[int, ...], int], int] = {}
        self.home: list[int] = []
        self.sign: list[int] = []
        self.edge_count: list[int] = []
        self.edges: list[list[tuple[tuple[int, ...], int] | int]] = []
        self._build(() if only_q else (self.circuit.root,))
        self.mentioned = np.arange(circuit.num_variables) < circuit.num_labels

    def skeleton(self) -> Skeleton:
        """The skeleton before units are multiplied; sums in order of first need, root first."""
        leaves = 2 * self.circuit.num_variables
        factors: list[int] = []
        owner: list[int] = []
        for edge, parts in enumerate(self.edges):
            for part in parts:
                owner.append(edge)
                factors.append(part if isinstance(part, int) else leaves + self.number[part])
        piece = (np.array(owner, dtype=np.int64), np.array(factors, dtype=np.int64))
        nothing = np.zeros_like(self.mentioned)
        return assemble(self.mentioned, nothing, np.array(self.edge_count), len(self.edges), [piece], 0)

    def _build(self, group: tuple[int, ...]) -> None:
        pending = [(group, self.vtree.root)]
        self.number[pending[0]] = 0
        done = 0
        while done < len(pending):
            key = pending[done]
            done += 1
            self.home.append(key[1])
            edges = self._edges_of(*key)
            self.edge_count.append(len(edges))
            for sign, parts in edges:
                self.sign.append(sign)
                self.edges.append(parts)
                for part in parts:
                    if not isinstance(part, int) and part not in self.number:
                        self.number[part] = len(pending)
                        pending.append(part)

    def _edges_of(self, group: tuple[int, ...], v: int) -> list[tuple[int, list[Any]]]:
        """(sign at a leaf, factors) of each branch of a pair."""
        terms = self._terms(group, v)
        edges: list[tuple[int, list[Any]]] = []
        if self.vtree.variable[v] >= 0:
            variable = int(self.vtree.variable[v])
            for nodes, literals in terms:
                own = [x for x in literals if x // 2 == variable]
                others = [x for x in literals if x // 2 != variable]
                assert not nodes
                edges.extend((x % 2, [x, *others]) for x in (own or [2 * variable, 2 * variable + 1]))
            return edges
        left, right = int(self.vtree.left[v]), int(self.vtree.right[v])
        for nodes, literals in terms:
            cut = self.vtree.last[left]
            below: tuple[list[int], list[int]] = ([], [])
            inputs = [x for x in literals if x // 2 >= self.circuit.num_labels]
            for node in nodes:
                below[int(self.first[node] > cut)].append(node)
            edges.append((0, [(tuple(below[0]), left), (tuple(below[1]), right), *inputs]))
        return edges

    def _terms(self, group: tuple[int, ...], v: int) -> list[tuple[list[int], list[int]]]:
        """A group as alternatives: each is a conjunction of nodes that lie on one side of v, and literals of inputs.

        At a leaf, only literals remain; above the leaves, literals of labels stay nodes.
        """
        at_leaf = self.vtree.variable[v] >= 0
        open_terms: list[tuple[list[int], list[int], list[int]]] = [(list(group), [], [])]
        closed: list[tuple[list[int], list[int]]] = []
        while open_terms:
            todo, nodes, literals = open_terms.pop()
            if not todo:
                closed.append((sorted(nodes), literals))
                continue
            node, rest = todo[0], todo[1:]
            if self.circuit.kind[node] == LITERAL:
                signed = int(self.circuit.literal[node])
                leaf = 2 * (abs(signed) - 1) + (signed > 0)
                if at_leaf or leaf // 2 >= self.circuit.num_labels:
                    open_terms.append((rest, nodes, [*literals, leaf]))
                else:
                    open_terms.append((rest, [*nodes, node], literals))
            elif not at_leaf and self._one_side(node, v):
                open_terms.append((rest, [*nodes, node], literals))
            elif self.circuit.kind[node] == PRODUCT:
                open_terms.append((self.circuit.children_of(node).tolist() + rest, nodes, literals))
            else:
                children = self.circuit.children_of(node).tolist()
                open_terms.extend(([child, *rest], nodes, literals) for child in reversed(children))
        return closed

    def _one_side(self, node: int, v: int) -> bool:
        """Whether a node mentions labels, all of them on one side of v."""
        if self.last[node] < 0:
            return False
        cut = self.vtree.last[self.vtree.left[v]]
        return bool(self.last[node] <= cut or self.first[node] > cut)

    def _label_intervals(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First and last position in the labels' vtree of the labels below each node (first > last: none)."""
        circuit = self.circuit
        first = np.full(circuit.num_nodes, circuit.num_labels, dtype=np.int64)
        last = np.full(circuit.num_nodes, -1, dtype=np.int64)
        variable = np.abs(circuit.literal.astype(np.int64)) - 1
        labels = np.flatnonzero((circuit.literal != 0) & (variable < circuit.num_labels))
        first[labels] = last[labels] = self.vtree.position[variable[labels]]
        for level in levels(circuit):
            first[level.nodes] = np.minimum.reduceat(first[level.children], level.starts)
            last[level.nodes] = np.maximum.reduceat(last[level.children], level.starts)
        return first, last
