"""Chooses the vtree for compiling a formula; its quality decides the size of the result.

Variables that occur together should be close. The primal graph joins them, an elimination order of small width
untangles it, and the bucket tree of this order is the vtree. Counting constraints are small along a line, so they enter
the graph as a path instead of a clique.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

from semprola.circuit import Circuit, Vtree
from semprola.circuit.builder import watched
from semprola.circuit.vtree import VtreeBuilder
from semprola.compiler.decomposition import bucket_tree, elimination_order, primal_graph
from semprola.logic import Formula, Kind

_SMALL = 12
"""A part with at most this many variables is a clique of the primal graph; a larger one contributes its parts."""
_LONG = 64
"""A counting constraint over more variables needs a linear order: on a tree, its states multiply."""
_MIN_FILL = 600
"""Up to this many variables are eliminated by fill-in; more of them by degree."""


def choose_vtree(
    conjuncts: Sequence[Formula],
    names: Sequence[str],
    circuits: Mapping[Formula, Circuit] | None = None,
    check: Callable[[], None] | None = None,
) -> Vtree:
    """A vtree for a conjunction.

    Args:
        names: all variables of the conjuncts; the vtree's leaves are their indices.
        circuits: circuits of the families inside the conjuncts; the vtree of the largest one is kept, and the other
            variables are placed next to those that they occur with.
    """
    index = {name: v for v, name in enumerate(names)}
    cliques = [[index[name] for name in clique] for clique in primal_cliques(conjuncts, check)]
    largest = max((circuits or {}).values(), key=lambda circuit: circuit.num_nodes, default=None)
    if largest is not None:
        return _around(largest, index, cliques)
    order = elimination_order(len(names), cliques, "min-fill" if len(names) <= _MIN_FILL else "min-degree", check)
    if has_long_count(conjuncts):
        return Vtree.right_linear(reversed(order))
    return Vtree.from_forest(bucket_tree(order, cliques, check).tolist())


def has_long_count(conjuncts: Iterable[Formula]) -> bool:
    """Whether a counting constraint inside the conjuncts is so long that a linear order is best."""
    return any(_is_long(node) for conjunct in conjuncts for node in _counting_parts(conjunct))


def primal_cliques(conjuncts: Iterable[Formula], check: Callable[[], None] | None = None) -> list[tuple[str, ...]]:
    """Sets of variables that should be close to each other; `check` may raise an exception to stop."""
    cliques: dict[tuple[str, ...], None] = {}
    for conjunct in watched(conjuncts, check):
        for clique in _cliques(conjunct):
            cliques[clique] = None
    return list(cliques)


def _cliques(conjunct: Formula) -> Iterable[tuple[str, ...]]:
    """A small formula is one clique; a large one gives its small parts and a path from part to part."""
    small: dict[Formula, tuple[str, ...] | None] = {}
    first: dict[Formula, str | None] = {}
    for node in conjunct.nodes():
        names = _own_labels(node)
        if node.args:
            parts = [small[arg] for arg in node.args]
            union = dict.fromkeys(name for part in parts if part is not None for name in part)
            names = None if None in parts or len(union) > _SMALL else tuple(union)
        small[node] = names if names is not None and len(names) <= _SMALL else None
        candidates = [first[arg] for arg in node.args] if node.args else list(names or ())
        first[node] = next((name for name in candidates if name is not None), None)
        if small[node] is not None:
            continue
        steps = list(names or ()) if not node.args else candidates
        path = [name for name in steps if name is not None]
        yield from (pair for pair in pairwise(path) if pair[0] != pair[1])
        yield from (part for arg in node.args if (part := small[arg]) and len(part) > 1)
    whole = small[conjunct]
    if whole:
        yield whole


def _own_labels(node: Formula) -> tuple[str, ...] | None:
    if node.kind is Kind.ATOM:
        return (node.name,)
    return node.labels if node.kind is Kind.CUSTOM else ()


def _counting_parts(conjunct: Formula) -> Iterable[Formula]:
    return (node for node in conjunct.nodes() if node.kind is Kind.CARDINALITY)


def _is_long(node: Formula) -> bool:
    lo, hi = node.bounds
    states = min(max(lo, hi if hi < len(node.args) else 0), len(node.args) - lo)
    return len(node.args) > _LONG and states > 2


def _around(circuit: Circuit, index: Mapping[str, int], cliques: Sequence[Sequence[int]]) -> Vtree:
    """The circuit's own vtree; every other variable comes right after the last variable that it occurs with."""
    base = circuit.vtree or Vtree.right_linear(range(circuit.num_variables))
    own = [index[name] for name in circuit.variables]
    after: dict[int, list[int]] = {}
    placed = {own[v]: position for position, v in enumerate(base.order.tolist())}
    near = primal_graph(len(index), cliques)
    waiting = [v for v in range(len(index)) if v not in placed]
    while waiting:
        # variables that occur with placed ones go behind the last of these; if none do, the first goes to the end
        ready = [v for v in waiting if near[v] & placed.keys()] or waiting[:1]
        found = {v: max(near[v] & placed.keys() or placed.keys(), key=placed.__getitem__) for v in ready}
        for v, anchor in found.items():
            after.setdefault(anchor, []).append(v)
            placed[v] = placed[anchor]
        waiting = [v for v in waiting if v not in placed]
    return _with_inserted(base, own, after)


def _with_inserted(base: Vtree, own: Sequence[int], after: Mapping[int, Sequence[int]]) -> Vtree:
    def block(v: int) -> list[int]:
        block, pending = [], [v]
        while pending:
            head = pending.pop()
            block.append(head)
            pending.extend(reversed(after.get(head, ())))
        return block

    if base.is_right_linear:
        return Vtree.right_linear([v for leaf in base.order.tolist() for v in block(own[leaf])])
    tree = VtreeBuilder()
    image: list[int] = []
    for node, v in enumerate(base.variable.tolist()):
        if v < 0:
            image.append(tree.pair(image[base.left[node]], image[base.right[node]]))
        else:
            image.append(tree.chain([tree.leaf(u) for u in block(own[v])]))
    return tree.build(image[-1])
