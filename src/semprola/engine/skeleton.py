"""The shape of a computation: sums of products of literals and sums, as flat arrays that know no logic and no torch.

A circuit is turned into a skeleton once. What a layer adds is done by transforms of the skeleton: a Bernoulli for each
label that a branch leaves free, and `units` copies of each sum. One executor therefore evaluates every layer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.fold import spans
from semprola.circuit.transforms import gaps, mentions_all

Index = npt.NDArray[np.int64]

_MOST_EDGES = 2**28
"""`expand` refuses to make more edges than this: they would not fit into memory."""
_WIDE = 4
"""A product with at least this many children and several parents is evaluated once, not repeated in each parent."""


@dataclass(frozen=True)
class Copies:
    """Which edges and sums of the original skeleton the edges and sums of a derived one are copies of.

    Attributes:
        edge: for each edge, the edge that it copies; -1 for none.
        sum: for each sum, the sum that it copies; -1 for none.
        combination: for each edge, which combination of units below it multiplies.
    """

    edge: Index
    sum: Index
    combination: Index


@dataclass(frozen=True)
class Skeleton:
    """Sums over edges; each edge is a product of factors.

    A factor below ``2 * num_variables`` is a literal (``2 v`` for not v, ``2 v + 1`` for v); from there on it is a sum.

    Attributes:
        num_variables: number of variables of the circuit.
        edge_start: the edges of sum s are edge_start[s] … edge_start[s + 1] - 1, shape [sums + 1].
        factor_start, factors: the factors of each edge, in the same form.
        root: the sum whose value is the circuit's.
        mentioned: which variables have a literal in every state, one bool each; the others may be absent.
        suppressed: which variables are zero where they are absent, one bool each; the others are free there.
        copies: what the edges and sums are copies of; None if they are originals.
    """

    num_variables: int
    edge_start: Index
    factor_start: Index
    factors: Index
    root: int
    mentioned: npt.NDArray[np.bool_]
    suppressed: npt.NDArray[np.bool_]
    copies: Copies | None = None

    @property
    def num_sums(self) -> int:
        return len(self.edge_start) - 1

    @property
    def num_edges(self) -> int:
        return len(self.factor_start) - 1

    @property
    def num_leaves(self) -> int:
        return 2 * self.num_variables

    @property
    def edge_copied(self) -> Index:
        """For each edge, the edge that it copies, or its own number."""
        return np.arange(self.num_edges, dtype=self.factors.dtype) if self.copies is None else self.copies.edge

    @property
    def sum_copied(self) -> Index:
        """For each sum, the sum that it copies, or its own number."""
        return np.arange(self.num_sums, dtype=self.factors.dtype) if self.copies is None else self.copies.sum

    def compact(self) -> Skeleton:
        """The same with 32-bit indices, if they suffice: circuits may have many millions of edges."""
        if len(self.factors) + self.num_leaves >= 2**31:
            return self
        return self._with_type(np.dtype(np.int32))

    def wide(self) -> Skeleton:
        """The same with 64-bit indices, for computations."""
        return self._with_type(np.dtype(np.int64))

    def _with_type(self, kind: np.dtype[Any]) -> Skeleton:
        changed: dict[str, Any] = {
            name: getattr(self, name).astype(kind, copy=False) for name in ("edge_start", "factor_start", "factors")
        }
        if self.copies is not None:
            parts = self.copies.edge, self.copies.sum, self.copies.combination
            changed["copies"] = Copies(*(part.astype(kind, copy=False) for part in parts))
        return replace(self, **changed)


def skeleton(circuit: Circuit, *, fill_free: bool, fill_suppressed: bool) -> Skeleton:
    """The skeleton of a circuit.

    Args:
        fill_free: give each branch a two-way sum for each label that it leaves free.
        fill_suppressed: spell out the negative literals that zero-suppressed labels leave implicit.
    """
    is_label = np.arange(circuit.num_variables) < circuit.num_labels
    wanted = is_label & np.where(circuit.zero_suppressed, fill_suppressed, fill_free)
    gap_start, gap_variable, root_gap = gaps(circuit, wanted)
    start, kind, children = circuit.child_start, circuit.kind, circuit.children.astype(np.int64)
    counts = np.diff(start)
    parent = np.repeat(np.arange(circuit.num_nodes), counts)
    is_sum = kind == SUM
    own = _own_products(circuit, parent)
    rows_of_node = np.flatnonzero(is_sum | own)
    # depends on all labels, filled or not, so that every skeleton of a circuit has the same sums
    needs_top = not is_sum[circuit.root] or not mentions_all(circuit, is_label)
    row = np.full(circuit.num_nodes, -1, dtype=np.int64)
    row[rows_of_node] = np.arange(len(rows_of_node))

    # one edge for each child of a sum, one for each product with its own row, one for the top
    sum_edges = np.flatnonzero(is_sum[parent])
    owners = [row[parent[sum_edges]], row[np.flatnonzero(own)]]
    targets = [children[sum_edges], np.flatnonzero(own)]
    gap_of = [sum_edges, np.full(int(own.sum()), -1)]
    if needs_top:
        owners.append(np.array([len(rows_of_node)]))
        targets.append(np.array([circuit.root]))
        gap_of.append(np.array([-2]))
    owner, target, gap = np.concatenate(owners), np.concatenate(targets), np.concatenate(gap_of)
    order = np.argsort(owner, kind="stable")
    owner, target, gap = owner[order], target[order], gap[order]
    opens = own[target] & (row[target] == owner)
    opens |= (kind[target] == PRODUCT) & ~own[target]

    leaf = 2 * (np.abs(circuit.literal.astype(np.int64)) - 1) + (circuit.literal > 0)
    factor_of_node = np.where(kind == LITERAL, leaf, 2 * circuit.num_variables + row)
    pieces: list[tuple[Index, Index]] = []
    closed = np.flatnonzero(~opens)
    pieces.append((closed, factor_of_node[target[closed]]))
    opened = np.flatnonzero(opens)
    pieces.append((np.repeat(opened, counts[target[opened]]), factor_of_node[children[spans(start, target[opened])]]))

    gap_edge, gap_var = _edge_gaps(gap, gap_start, gap_variable, root_gap)
    suppressed = circuit.zero_suppressed[gap_var]
    pieces.append((gap_edge[suppressed], 2 * gap_var[suppressed]))
    free_edge, free_var = gap_edge[~suppressed], gap_var[~suppressed]
    num_sums = len(rows_of_node) + needs_top
    pieces.append((free_edge, 2 * circuit.num_variables + num_sums + np.arange(len(free_edge))))

    # the two-way sums of free labels come last
    base_edges = len(owner)
    gadget_edge = base_edges + np.arange(2 * len(free_var))
    pieces.append((gadget_edge, np.stack([2 * free_var, 2 * free_var + 1], axis=1).reshape(-1)))
    edge_count = np.concatenate([np.bincount(owner, minlength=num_sums), np.full(len(free_var), 2)])
    root = num_sums - 1 if needs_top else int(row[circuit.root])
    return assemble(wanted, circuit.zero_suppressed, edge_count, base_edges + 2 * len(free_var), pieces, root)


def binarize(shape: Skeleton) -> Skeleton:
    """An equivalent skeleton in which no edge has more than two sums among its factors.

    Longer products become balanced trees of sums with one edge each, so that with `units` > 1 every pair of factors
    is mixed (the alternating layers that Algorithm 1 of the paper presupposes).
    """
    shape = shape.wide()
    leaves = shape.num_leaves
    edge_of_factor = np.repeat(np.arange(shape.num_edges), np.diff(shape.factor_start))
    sums_in_edge = np.bincount(edge_of_factor[shape.factors >= leaves], minlength=shape.num_edges)
    wide = np.flatnonzero(sums_in_edge > 2)
    if not len(wide):
        return shape
    keep = np.ones(len(shape.factors), dtype=bool)
    known: dict[tuple[int, int], int] = {}
    extra_edges: list[int] = []
    extra_factors: list[int] = []
    next_row = leaves + shape.num_sums

    def pair(a: int, b: int) -> int:
        if (a, b) not in known:
            known[a, b] = next_row + len(known)
        return known[a, b]

    for edge in wide.tolist():
        here = np.arange(shape.factor_start[edge], shape.factor_start[edge + 1])
        here = here[shape.factors[here] >= leaves]
        keep[here] = False
        level = shape.factors[here].tolist()
        while len(level) > 2:
            paired = [pair(level[i], level[i + 1]) for i in range(0, len(level) - 1, 2)]
            level = paired + ([level[-1]] if len(level) % 2 else [])
        extra_edges.extend([edge] * len(level))
        extra_factors.extend(level)
    new = np.array(list(known), dtype=np.int64).reshape(-1)
    pieces = [
        (edge_of_factor[keep], shape.factors[keep]),
        (np.array(extra_edges, dtype=np.int64), np.array(extra_factors, dtype=np.int64)),
        (np.repeat(shape.num_edges + np.arange(len(known)), 2), new),
    ]
    edge_count = np.concatenate([np.diff(shape.edge_start), np.ones(len(known), dtype=np.int64)])
    return assemble(shape.mentioned, shape.suppressed, edge_count, shape.num_edges + len(known), pieces, shape.root)


def expand(shape: Skeleton, units: int, *, diagonal: bool = False, split_single: bool = False) -> Skeleton:
    """Mixture multiplication (Algorithm 1): `units` copies of each sum, over the cross product of their inputs.

    The root keeps one unit: a mixture of sums over the same inputs is one such sum.

    Args:
        diagonal: pair unit i only with unit i, instead of taking the cross product.
        split_single: also copy sums with a single edge of literals (the copies are equal unless edges carry weights).
    """
    shape = shape.wide()
    leaves, sums = shape.num_leaves, shape.num_sums
    is_sum = shape.factors >= leaves
    edge_of_factor = np.repeat(np.arange(shape.num_edges), np.diff(shape.factor_start))
    owner = np.repeat(np.arange(sums), np.diff(shape.edge_start))
    below = np.zeros((shape.num_edges, 2), dtype=np.int64) - 1
    where = np.flatnonzero(is_sum)
    rank = np.arange(len(where)) - np.searchsorted(edge_of_factor[where], edge_of_factor[where])
    below[edge_of_factor[where], rank] = shape.factors[where] - leaves

    copies = np.full(sums, units, dtype=np.int64)
    copies[shape.root] = 1
    trivial = (np.diff(shape.edge_start) == 1) & (below[shape.edge_start[:-1], 0] < 0)
    if not split_single:
        copies[trivial] = 1
    unit_start = np.concatenate([[0], np.cumsum(copies)])
    width = np.where(below >= 0, copies[below], 1)
    tied = np.full(shape.num_edges, diagonal) & (width > 1).all(axis=1)
    combos = np.where(tied, width[:, 0], width[:, 0] * width[:, 1])

    wanted = float((copies[owner].astype(np.float64) * combos).sum())
    if wanted > _MOST_EDGES:
        raise ValueError(f"units={units} would make {wanted:.0e} weights: use fewer units, or components= instead")

    # one edge for each unit of the owner, each original edge and each pair of units below
    per_edge = copies[owner] * combos
    source = np.repeat(np.arange(shape.num_edges), per_edge)
    within = np.arange(len(source)) - np.repeat(np.cumsum(per_edge) - per_edge, per_edge)
    unit, combo = within // combos[source], within % combos[source]
    new_owner = unit_start[owner[source]] + unit
    order = np.lexsort((combo, source, new_owner))
    source, combo, new_owner = source[order], combo[order], new_owner[order]

    pieces: list[tuple[Index, Index]] = []
    first = np.where(tied[source], combo, combo // width[source, 1])
    second = np.where(tied[source], combo, combo % width[source, 1])
    for column, chosen_unit in ((0, first), (1, second)):
        has = np.flatnonzero(below[source, column] >= 0)
        pieces.append((has, leaves + unit_start[below[source[has], column]] + chosen_unit[has]))
    literal_start = np.concatenate([[0], np.cumsum(np.bincount(edge_of_factor[~is_sum], minlength=shape.num_edges))])
    literal_count = np.diff(literal_start)[source]
    pieces.append(
        (np.repeat(np.arange(len(source)), literal_count), shape.factors[~is_sum][spans(literal_start, source)])
    )
    edge_count = np.bincount(new_owner, minlength=int(unit_start[-1]))
    made = Copies(source, np.repeat(np.arange(sums), copies), combo)
    root = int(unit_start[shape.root])
    return assemble(shape.mentioned, shape.suppressed, edge_count, len(source), pieces, root, made)


def group_branches(shape: Skeleton) -> tuple[Skeleton, npt.NDArray[np.bool_]]:
    """Split every sum of an expanded skeleton in two: a choice between branches, each a sum over the branch's units.

    Branches exclude each other, units do not: maximising over branches and adding up units bounds the mode.

    Returns:
        The skeleton, and which of its sums are choices. Its edges are copies of those of `shape`, except that the edges
        of choices copy none. Its first sums are those of `shape`, in order.
    """
    shape = shape.wide()
    owner = np.repeat(np.arange(shape.num_sums), np.diff(shape.edge_start))
    new_branch, copied = np.ones(shape.num_edges, dtype=bool), shape.edge_copied
    new_branch[1:] = (owner[1:] != owner[:-1]) | (copied[1:] != copied[:-1])
    branch = np.cumsum(new_branch) - 1
    branches = int(branch[-1]) + 1
    branch_owner = owner[new_branch]
    edge_of_factor = np.repeat(np.arange(shape.num_edges), np.diff(shape.factor_start))
    rows = shape.num_leaves + shape.num_sums + np.arange(branches)
    pieces = [(np.arange(branches), rows), (branches + edge_of_factor, shape.factors)]
    edge_count = np.concatenate([np.bincount(branch_owner, minlength=shape.num_sums), np.bincount(branch)])
    num_edges = branches + shape.num_edges
    made = Copies(
        np.concatenate([np.full(branches, -1), np.arange(shape.num_edges)]),
        np.concatenate([shape.sum_copied, np.full(branches, -1)]),
        np.zeros(num_edges, dtype=np.int64),
    )
    grouped = assemble(shape.mentioned, shape.suppressed, edge_count, num_edges, pieces, shape.root, made)
    return grouped, np.arange(shape.num_sums + branches) < shape.num_sums


def _own_products(circuit: Circuit, parent: Index) -> npt.NDArray[np.bool_]:
    """Products that get a row of their own: those below products, and wide ones with several parents."""
    is_product = circuit.kind == PRODUCT
    below_product = np.zeros(circuit.num_nodes, dtype=bool)
    below_product[circuit.children[is_product[parent]]] = True
    parents = np.bincount(circuit.children, minlength=circuit.num_nodes)
    shared = (parents > 1) & (np.diff(circuit.child_start) >= _WIDE)
    own: npt.NDArray[np.bool_] = is_product & (below_product | shared)
    return own


def _edge_gaps(gap: Index, gap_start: Index, gap_variable: Index, root_gap: Index) -> tuple[Index, Index]:
    """(edge, variable) pairs for the labels that the branch of each edge does not mention."""
    edges = np.flatnonzero(gap >= 0)
    counts = gap_start[gap[edges] + 1] - gap_start[gap[edges]]
    pair_edge = [np.repeat(edges, counts)]
    pair_variable = [gap_variable[spans(gap_start, gap[edges])]]
    top = np.flatnonzero(gap == -2)
    pair_edge.append(np.repeat(top, len(root_gap)))
    pair_variable.append(np.tile(root_gap, len(top)))
    return np.concatenate(pair_edge), np.concatenate(pair_variable)


def assemble(
    mentioned: npt.NDArray[np.bool_],
    suppressed: npt.NDArray[np.bool_],
    edge_count: Index,
    num_edges: int,
    pieces: list[tuple[Index, Index]],
    root: int,
    copies: Copies | None = None,
) -> Skeleton:
    """A skeleton made from the number of edges per sum and (edge, factor) pairs in any order."""
    edge = np.concatenate([piece[0] for piece in pieces]).astype(np.int64)
    factor = np.concatenate([piece[1] for piece in pieces]).astype(np.int64)
    order = np.argsort(edge, kind="stable")
    return Skeleton(
        len(mentioned),
        np.concatenate([[0], np.cumsum(edge_count)]).astype(np.int64),
        np.concatenate([[0], np.cumsum(np.bincount(edge, minlength=num_edges))]).astype(np.int64),
        factor[order],
        root,
        mentioned,
        suppressed & ~mentioned,
        copies,
    )
