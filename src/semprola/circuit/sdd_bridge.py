"""Talks to PySDD in a process of its own: programs over Boolean functions go in, circuits come out."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola.circuit.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.sdd_process import request
from semprola.circuit.sdd_worker import AND, CONSTANT, ITE, NOT, OR
from semprola.circuit.sdd_worker import LITERAL as VARIABLE
from semprola.circuit.transforms import smooth
from semprola.circuit.vtree import Vtree
from semprola.errors import UnsatisfiableError

OnProgress = Callable[[int, float], None]


@dataclass(frozen=True)
class Limits:
    """What a run may use; None is no limit.

    Args:
        seconds: wall time, until the process is killed.
        max_nodes: decision nodes alive at any one time.
        memory: bytes.
    """

    seconds: float | None = None
    max_nodes: int | None = None
    memory: int | None = None


class Program:
    """A straight-line program over Boolean functions, built bottom-up; equal steps are shared, constants folded.

    Example:
        >>> program = Program()
        >>> program.conjoin(program.literal(1), program.negate(program.literal(1))) == program.false
        True
    """

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int]] = []
        self._known: dict[tuple[int, int, int, int], int] = {}
        self.false = self._step(CONSTANT, 0)
        self.true = self._step(CONSTANT, 1)

    def __len__(self) -> int:
        return len(self.steps)

    def literal(self, signed: int) -> int:
        """The function of a literal, +(v + 1) or -(v + 1)."""
        return self._step(VARIABLE, signed)

    def constant(self, value: bool) -> int:
        """True or false."""
        return self.true if value else self.false

    def conjoin(self, a: int, b: int) -> int:
        """Both."""
        if a == b or b == self.true:
            return a
        if a == self.true:
            return b
        if self.false in (a, b) or self._opposite(a, b):
            return self.false
        return self._step(AND, min(a, b), max(a, b))

    def disjoin(self, a: int, b: int) -> int:
        """At least one of the two."""
        if a == b or b == self.false:
            return a
        if a == self.false:
            return b
        if self.true in (a, b) or self._opposite(a, b):
            return self.true
        return self._step(OR, min(a, b), max(a, b))

    def negate(self, a: int) -> int:
        """Not a."""
        kind, value = self.steps[a][:2]
        if kind == CONSTANT:
            return self.constant(not value)
        if kind == VARIABLE:
            return self.literal(-value)
        return value if kind == NOT else self._step(NOT, a)

    def choose(self, test: int, yes: int, no: int) -> int:
        """If test then yes else no."""
        if yes == no:
            return yes
        if self.steps[test][0] == CONSTANT:
            return yes if test == self.true else no
        if yes in (self.true, self.false):
            return self.disjoin(test, no) if yes == self.true else self.conjoin(self.negate(test), no)
        if no in (self.true, self.false):
            return self.disjoin(self.negate(test), yes) if no == self.true else self.conjoin(test, yes)
        return self._step(ITE, test, yes, no)

    def add_circuit(self, circuit: Circuit, rename: npt.NDArray[np.int64]) -> int:
        """The function of a circuit, its variable v renamed to rename[v]."""
        if np.any(circuit.zero_suppressed):
            circuit = smooth(circuit, circuit.zero_suppressed)
        image: list[int] = []
        start, children = circuit.child_start.tolist(), circuit.children.tolist()
        for node, (kind, literal) in enumerate(zip(circuit.kind.tolist(), circuit.literal.tolist(), strict=True)):
            if kind == LITERAL:
                v = int(rename[abs(literal) - 1]) + 1
                image.append(self.literal(v if literal > 0 else -v))
                continue
            join = self.conjoin if kind == PRODUCT else self.disjoin
            result = self.constant(kind == PRODUCT)
            for child in reversed(children[start[node] : start[node + 1]]):
                result = join(result, image[child])
            image.append(result)
        return image[-1]

    def _opposite(self, a: int, b: int) -> bool:
        (kind_a, value_a), (kind_b, value_b) = self.steps[a][:2], self.steps[b][:2]
        if kind_a == kind_b == VARIABLE:
            return value_a == -value_b
        return (kind_a == NOT and value_a == b) or (kind_b == NOT and value_b == a)

    def _step(self, kind: int, a: int, b: int = 0, c: int = 0) -> int:
        key = (kind, a, b, c)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.steps)
            self.steps.append(key)
        return known


def run(
    program: Program,
    roots: list[int],
    vtree: Vtree,
    labels: tuple[str, ...],
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
) -> Circuit:
    """The circuit of the conjunction of some steps, which share no variable, as SDDs over a vtree.

    Args:
        program: the functions.
        roots: steps whose conjunction is wanted; no two may mention the same variable.
        vtree: over all variables.
        labels: names of the variables.
        limits: what the run may use.
        on_progress: called several times a second with the number of nodes alive and the seconds so far.

    Raises:
        UnsatisfiableError: a root is false.
        ExceededError: a limit was reached.
    """
    arrays = request_arrays(program, roots, vtree)
    limits = limits or Limits()
    answer = request({"max_nodes": limits.max_nodes}, arrays, limits.seconds, limits.memory, on_progress)
    return _circuit(answer, labels, vtree)


def write_sdd(circuit: Circuit, sdd_path: str | Path, vtree_path: str | Path, vtree: Vtree | None = None) -> None:
    """See :meth:`Circuit.write_sdd`."""
    if circuit.num_variables == 0:
        raise ValueError("a circuit without variables has no vtree, so it cannot be written as an SDD")
    chosen = vtree or circuit.vtree or Vtree.right_linear(appearance(circuit))
    if chosen.num_variables != circuit.num_variables:
        raise ValueError(f"the vtree has {chosen.num_variables} variables, the circuit {circuit.num_variables}")
    program = Program()
    root = program.add_circuit(circuit, np.arange(circuit.num_variables))
    arrays = request_arrays(program, [root], chosen)
    targets = [Path(sdd_path), Path(vtree_path)]
    drafts: list[str] = []
    try:
        for target in targets:
            handle, draft = tempfile.mkstemp(dir=target.parent, prefix=target.name + ".", suffix=".part")
            os.close(handle)
            drafts.append(os.path.abspath(draft))
        request({"max_nodes": None, "save": drafts}, arrays, None, None, None)
        for draft, target in zip(drafts, targets, strict=True):
            os.chmod(draft, 0o666 & ~_umask())
            os.replace(draft, target)
    finally:
        for draft in drafts:
            Path(draft).unlink(missing_ok=True)


def request_arrays(program: Program, roots: list[int], vtree: Vtree) -> dict[str, npt.NDArray[np.integer]]:
    """The program's steps that the roots need, and the vtree; checked, since a C library reads them."""
    table = np.array(program.steps, dtype=np.int32).reshape(-1, 4)
    op, a, b, c = (np.ascontiguousarray(column) for column in table.T)
    uses = [np.isin(op, kinds) for kinds in ((AND, OR, NOT, ITE), (AND, OR, ITE), (ITE,))]
    needed = np.zeros(len(op), dtype=bool)
    needed[roots] = True
    listed = needed.tolist()
    for i in range(len(op) - 1, -1, -1):
        if listed[i]:
            for column, used in zip((a, b, c), uses, strict=True):
                if used[i]:
                    listed[column[i]] = True
    kept = np.flatnonzero(np.array(listed))
    renumber = np.zeros(len(op), dtype=np.int32)
    renumber[kept] = np.arange(len(kept), dtype=np.int32)
    columns = [
        np.where(used, renumber[np.where(used, column, 0)], column)[kept]
        for column, used in zip((a, b, c), uses, strict=True)
    ]
    variable = np.abs(columns[0][op[kept] == VARIABLE])
    if np.any(variable < 1) or np.any(variable > vtree.num_variables):
        raise ValueError("a literal of the program is not a variable of the vtree")
    return {
        "left": vtree.left,
        "right": vtree.right,
        "variable": vtree.variable,
        "op": op[kept].astype(np.int8),
        "a": columns[0].astype(np.int32),
        "b": columns[1].astype(np.int32),
        "c": columns[2].astype(np.int32),
        "roots": renumber[np.asarray(roots, dtype=np.int64)],
    }


def appearance(circuit: Circuit) -> list[int]:
    """The variables in the order in which the circuit's literals name them, then the others."""
    mentioned = (np.abs(circuit.literal[circuit.literal != 0]) - 1).tolist()
    return list(dict.fromkeys([*mentioned, *range(circuit.num_variables)]))


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _circuit(answer: dict[str, npt.NDArray[np.integer]], labels: tuple[str, ...], vtree: Vtree) -> Circuit:
    """The conjunction of the answer's roots: a product for each pair (prime, sub), a sum for each decision.

    A decision of one element is its product, and an element whose sub is true is its prime. Nodes are numbered:
    literals, then for each decision the products that it is the first to need, then its sum.
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
    """Kind, literal, child_start and children from edges; a product used once, by a product, merges into it."""
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
