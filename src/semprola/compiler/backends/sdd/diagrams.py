"""Sentential decision diagrams by PySDD: from programs over Boolean functions to circuits."""

from __future__ import annotations

import os
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.circuit import LITERAL, PRODUCT, SUM, Circuit, Vtree
from semprola.compiler.backends.sdd.process import request
from semprola.compiler.backends.sdd.program import Program, request_arrays
from semprola.compiler.budget import Budget
from semprola.errors import UnsatisfiableError

_PHASE = "compiling with PySDD"


def run(
    program: Program, roots: list[int], vtree: Vtree, labels: tuple[str, ...], budget: Budget | None = None
) -> Circuit:
    """The circuit of a conjunction of steps that share no variable, made of SDDs over a vtree.

    Args:
        roots: steps whose conjunction is wanted; no two may mention the same variable.
    """
    arrays = request_arrays(program, roots, vtree)
    return _circuit(request("PySDD", {}, arrays, budget or Budget(), _PHASE), labels, vtree)


def decisions(
    program: Program, root: int, vtree: Vtree, budget: Budget
) -> tuple[int, dict[int, tuple[int, int | None, int | None]]]:
    """The diagram of one step over a variable order, as a table.

    Returns:
        The root, and for each decision node its variable and the nodes after a 0 and a 1 (None if no model is left).
        Node 0 is true.
    """
    answer = request("PySDD", {}, request_arrays(program, [root], vtree), budget, _PHASE)
    start, prime, sub = (answer[name].tolist() for name in ("start", "prime", "sub"))
    table: dict[int, tuple[int, int | None, int | None]] = {}
    for v in range(vtree.num_variables):
        table[2 * v + 1], table[2 * v + 2] = (v, None, 0), (v, 0, None)
    for k, (first, last) in enumerate(pairwise(start)):
        ends: list[int | None] = [None, None]
        for p, s in zip(prime[first:last], sub[first:last], strict=True):
            ends[p % 2] = s
        table[2 * vtree.num_variables + 1 + k] = ((prime[first] - 1) // 2, *ends)
    found = int(answer["roots"][0])
    if found < 0:
        raise UnsatisfiableError("the constraint has no model")
    return found, table


def save_sdd(circuit: Circuit, sdd_path: Path, vtree_path: Path, vtree: Vtree) -> None:
    """Write a circuit as a sentential decision diagram over a vtree; see :meth:`Circuit.write_sdd`."""
    program = Program()
    root = program.add_circuit(circuit, np.arange(circuit.num_variables))
    arrays = request_arrays(program, [root], vtree)
    drafts: list[str] = []
    try:
        for target in (sdd_path, vtree_path):
            handle, draft = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".", suffix=".part")
            os.close(handle)
            drafts.append(os.path.abspath(draft))
        request("PySDD", {"save": drafts}, arrays, Budget(), _PHASE)
        for draft, target in zip(drafts, (sdd_path, vtree_path), strict=True):
            os.chmod(draft, 0o666 & ~_umask())
            os.replace(draft, target)
    finally:
        for draft in drafts:
            Path(draft).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _circuit(answer: dict[str, npt.NDArray[np.integer]], labels: tuple[str, ...], vtree: Vtree) -> Circuit:
    """The conjunction of the answer's roots: a product per pair (prime, sub), and a sum per decision.

    A decision with one element is just its product, and an element whose sub is true is just its prime. Nodes are
    numbered in this order: literals; then for each decision the products that it is the first to need, and its sum.
    """
    roots = np.unique(answer["roots"].astype(np.int64))
    if np.any(roots < 0):
        raise UnsatisfiableError("the constraint has no model")
    roots = roots[roots > 0]
    start = answer["start"].astype(np.int64)
    counts = np.diff(start)
    owner = np.repeat(np.arange(len(counts)), counts)
    pairs = np.sort(np.stack([answer["prime"], answer["sub"]], axis=1).astype(np.int64), axis=1)
    width = 2 * len(labels) + 1 + len(counts)
    _, seen_at, pair = np.unique(pairs[:, 0] * width + pairs[:, 1], return_index=True, return_inverse=True)
    pairs = pairs[seen_at]
    proper = np.flatnonzero(pairs[:, 0] > 0)
    sums = np.flatnonzero(counts > 1)
    first_decision = 2 * len(labels) + 1
    used = np.unique(np.concatenate([pairs.ravel(), roots]))
    literals = used[(used > 0) & (used < first_decision)]

    place = np.empty(len(proper) + len(sums), dtype=np.int64)
    place[np.argsort(np.concatenate([2 * owner[seen_at[proper]], 2 * sums + 1]), kind="stable")] = np.arange(len(place))
    place += len(literals)
    node = np.full(width, -1, dtype=np.int64)
    node[literals] = np.arange(len(literals))
    node[first_decision + sums] = place[len(proper) :]
    node_of_pair = np.full(len(pairs), -1, dtype=np.int64)
    node_of_pair[proper] = place[: len(proper)]
    single = np.flatnonzero(counts == 1)
    node[first_decision + single] = node_of_pair[pair[start[single]]]
    lone_primes = np.flatnonzero(pairs[:, 0] == 0)
    node_of_pair[lone_primes] = node[pairs[lone_primes, 1]]

    size = len(literals) + len(place)
    in_sum = counts[owner] > 1
    parent = [np.repeat(node_of_pair[proper], 2), node[first_decision + owner[in_sum]]]
    child = [node[pairs[proper]].ravel(), node_of_pair[pair[in_sum]]]
    if len(roots) != 1:
        parent.append(np.full(len(roots), size))
        child.append(node[roots])
        size += 1
    kind = np.full(size, PRODUCT, dtype=np.int8)
    kind[: len(literals)] = LITERAL
    kind[node[first_decision + sums]] = SUM
    literal = np.zeros(size, dtype=np.int32)
    literal[: len(literals)] = np.where(literals % 2 == 1, (literals + 1) // 2, -(literals // 2))
    return Circuit(labels, (), *_merged(kind, literal, np.concatenate(parent), np.concatenate(child)), vtree=vtree)


def _merged(
    kind: npt.NDArray[np.int8],
    literal: npt.NDArray[np.int32],
    parent: npt.NDArray[np.int64],
    child: npt.NDArray[np.int64],
) -> tuple[npt.NDArray[Any], ...]:
    """Kind, literal, child_start and children from edges; a product whose only parent is a product merges into it."""
    count = len(kind)
    user = np.arange(count)
    user[child] = parent
    into_product = (kind[user] == PRODUCT) & (user != np.arange(count))
    merged = (kind == PRODUCT) & into_product & (np.bincount(child, minlength=count) == 1)
    top = np.where(merged, user, np.arange(count))
    while not np.array_equal(higher := top[top], top):
        top = higher
    kept = np.flatnonzero(~merged)
    number = np.zeros(count, dtype=np.int64)
    number[kept] = np.arange(len(kept))
    stays = ~merged[child]
    parent, child = number[top[parent[stays]]], number[child[stays]]
    child_start = np.concatenate([[0], np.cumsum(np.bincount(parent, minlength=len(kept)))])
    return kind[kept], literal[kept], child_start, child[np.argsort(parent, kind="stable")]
