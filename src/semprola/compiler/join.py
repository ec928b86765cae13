"""Conjoins circuits over disjoint variables under new labels, without recompiling or looping over nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.circuit import LITERAL, PRODUCT, Circuit, Vtree
from semprola.circuit.transforms import smooth
from semprola.circuit.vtree import VtreeBuilder


def join_circuits(
    parts: Sequence[Circuit],
    facts: Mapping[str, bool],
    labels: Sequence[str],
    given: Sequence[str] = (),
    info: Mapping[str, Any] | None = None,
) -> Circuit:
    """The conjunction of circuits that share no variable; variables that none of them mentions are free.

    Args:
        parts: the circuits; their variables are found by name among labels and given.

    Example:
        >>> from semprola.circuit import CircuitBuilder
        >>> builder = CircuitBuilder(["a"])
        >>> part = builder.build(builder.literal(0, True))
        >>> join_circuits([part], {"b": False}, ["c", "b", "a"]).enumerate().tolist()
        [[0, 0, 1], [1, 0, 1]]
    """
    index = {name: v for v, name in enumerate((*labels, *given))}
    parts = [_without_suppressed(part, frozenset(given)) for part in parts]
    renames = [np.array([index[name] for name in part.variables], dtype=np.int64) for part in parts]
    suppressed = np.zeros(len(index), dtype=bool)
    for part, rename in zip(parts, renames, strict=True):
        suppressed[rename] = part.zero_suppressed
    fixed = {index[name]: value for name, value in facts.items()}
    return Circuit(
        labels,
        given,
        *_arrays(parts, renames, fixed),
        zero_suppressed=suppressed,
        vtree=_vtree(parts, renames, len(index)),
        info=info,
    )


def join_vtrees(parts: Sequence[tuple[Vtree, npt.NDArray[np.int64]]], others: Sequence[int]) -> Vtree | None:
    """One vtree over all variables, with the parts side by side and the other variables above them.

    Returns:
        The vtree; None if there is no variable.
    """
    tree = VtreeBuilder()
    top = tree.balanced([tree.add(vtree, rename) for vtree, rename in parts])
    for v in reversed(others):
        leaf = tree.leaf(v)
        top = tree.pair(leaf, top) if top >= 0 else leaf
    return tree.build(top) if len(tree) else None


def _without_suppressed(part: Circuit, given: frozenset[str]) -> Circuit:
    """Inputs are never zero-suppressed."""
    becomes_given = np.array([name in given for name in part.variables], dtype=bool) & part.zero_suppressed
    return smooth(part, becomes_given) if np.any(becomes_given) else part


def _arrays(
    parts: Sequence[Circuit], renames: Sequence[npt.NDArray[np.int64]], fixed: Mapping[int, bool]
) -> tuple[npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any]]:
    """Kind, literal, child_start and children: first the parts, then the facts, then a product of all."""
    kinds, literals, counts, children = [], [], [], []
    top: list[int] = []
    size = 0
    for part, rename in zip(parts, renames, strict=True):
        # a part whose root is a product gives its children to the new root
        opened = part.kind[-1] == PRODUCT
        nodes = part.num_nodes - int(opened)
        edges = int(part.child_start[nodes])
        literal = part.literal[:nodes]
        kinds.append(part.kind[:nodes])
        literals.append(np.where(literal == 0, 0, np.sign(literal) * (rename[np.abs(literal) - 1] + 1)))
        counts.append(np.diff(part.child_start[: nodes + 1]))
        children.append(part.children[:edges].astype(np.int64) + size)
        top.extend((part.children[edges:] + size).tolist() if opened else [size + nodes - 1])
        size += nodes
    values = [v + 1 if value else -v - 1 for v, value in fixed.items()]
    top.extend(range(size, size + len(values)))
    kinds.append(np.full(len(values), LITERAL, dtype=np.int8))
    literals.append(np.array(values, dtype=np.int64))
    counts.append(np.zeros(len(values), dtype=np.int64))
    last = size + len(values) - 1
    if top != [last]:  # a single child need not be the last node, which is the root
        kinds.append(np.array([PRODUCT], dtype=np.int8))
        literals.append(np.zeros(1, dtype=np.int64))
        counts.append(np.array([len(top)], dtype=np.int64))
        children.append(np.array(top, dtype=np.int64))
    start = np.concatenate([[0], np.cumsum(np.concatenate(counts))])
    flat = np.concatenate([np.zeros(0, np.int64), *children])
    return np.concatenate(kinds), np.concatenate(literals), start, flat


def _vtree(parts: Sequence[Circuit], renames: Sequence[npt.NDArray[np.int64]], count: int) -> Vtree | None:
    pairs: list[tuple[Vtree, npt.NDArray[np.int64]]] = []
    covered = np.zeros(count, dtype=bool)
    for part, rename in zip(parts, renames, strict=True):
        covered[rename] = True
        if part.vtree is not None:
            pairs.append((part.vtree, rename))
        elif part.num_variables > 1:
            return None
        else:
            covered[rename] = False
    return join_vtrees(pairs, np.flatnonzero(~covered).tolist())
