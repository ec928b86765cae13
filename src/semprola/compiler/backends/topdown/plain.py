"""The top-down compiler in plain Python, for small inputs and machines without the native module.

It is an exhaustive DPLL on residual clause sets, with unit propagation, connected components, a component cache keyed
by the residual clauses, and branching on the most frequent variable. There is no clause learning and no recursion.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from semprola.compiler.budget import Budget

_Clause = tuple[int, ...]
_Component = tuple[_Clause, ...]  # sorted, each clause sorted: equal components are equal tuples
_Arrays = tuple[npt.NDArray[np.int8], npt.NDArray[np.int32], npt.NDArray[np.int64], npt.NDArray[np.int32]]
_FALSE = -1


class NotDetermined(Exception):
    """A hidden variable is not determined by the visible ones."""


def compile_arrays(
    clauses: Sequence[Sequence[int]],
    hidden: Set[int],
    determined: bool,
    budget: Budget,
    memory: int,
) -> _Arrays | None:
    """Compile clauses of DIMACS literals; see `search.compile_cnf` for the form of the result.

    Returns:
        The arrays kind, literal, child_start and children; None if the clauses have no model.
    """
    held = _Held(budget, memory)
    nodes = _Nodes(frozenset(hidden), determined, held)
    residual = {tuple(sorted(set(c))) for c in clauses}
    root = _search([c for c in residual if not any(-x in c for x in c)], nodes, held)
    return None if root == _FALSE else nodes.arrays(root)


class _Held:
    """An estimate of the bytes in use, checked against the budget."""

    def __init__(self, budget: Budget, memory: int) -> None:
        self.budget, self.memory = budget, memory
        self.used = self.decisions = 0

    def check(self, nodes: int) -> None:
        self.budget.check("compiling top-down (search)", nodes, self.decisions)
        if self.used > self.memory:
            raise self.budget.error("memory", nodes, self.decisions)


class _Nodes:
    """Hash-consed nodes, children first."""

    def __init__(self, hidden: frozenset[int], determined: bool, held: _Held) -> None:
        self.hidden, self.determined, self._held = hidden, determined, held
        self._ids: dict[tuple[int, ...], int] = {}  # (kind, literal) or (kind, *children)
        self._keys: list[tuple[int, ...]] = []

    def __len__(self) -> int:
        return len(self._keys)

    def product(self, literals: Set[int], parts: Sequence[int]) -> int:
        factors = {self._intern((0, x)) for x in literals if abs(x) not in self.hidden}
        factors.update(part for part in parts if self._keys[part] != (1,))
        return factors.pop() if len(factors) == 1 else self._intern((1, *sorted(factors)))

    def sum(self, variable: int, first: int, second: int) -> int:
        if first == second or (1,) in (self._keys[first], self._keys[second]):
            if self.determined:
                raise NotDetermined
            return first  # only hidden variables are left here: both sides are true
        decision = {self._ids[key] for key in ((0, variable), (0, -variable)) if key in self._ids}
        rest = [self._factors(node) - decision for node in (first, second)]
        if decision and rest[0] == rest[1]:
            return self.product(set(), sorted(rest[0]))  # the variable has no influence
        return self._intern((2, *sorted((first, second))))

    def arrays(self, root: int) -> _Arrays:
        """The nodes that the root reaches, renumbered; branches without a model have left unused nodes."""
        alive = {root}
        for node in range(root, -1, -1):
            if node in alive and self._keys[node][0] != 0:
                alive.update(self._keys[node][1:])
        order = sorted(alive)
        number = {old: new for new, old in enumerate(order)}
        keys = [self._keys[old] for old in order]
        child_lists = [[number[c] for c in key[1:]] if key[0] else [] for key in keys]
        return (
            np.array([key[0] for key in keys], np.int8),
            np.array([0 if key[0] else key[1] for key in keys], np.int32),
            np.cumsum([0, *map(len, child_lists)], dtype=np.int64),
            np.array([c for children in child_lists for c in children], np.int32),
        )

    def _factors(self, node: int) -> set[int]:
        return set(self._keys[node][1:]) if self._keys[node][0] == 1 else {node}

    def _intern(self, key: tuple[int, ...]) -> int:
        node = self._ids.get(key)
        if node is None:
            node = self._ids[key] = len(self._keys)
            self._keys.append(key)
            self._held.used += 200 + 8 * len(key)
        return node


@dataclass
class _Frame:
    """A component in progress: the branches still to try and the branch being built."""

    component: _Component | None  # None: the whole formula, without a decision
    branches: list[int]  # literals still to be tried
    variable: int = 0
    done: list[int] = field(default_factory=list)  # nodes of satisfiable branches
    literals: set[int] = field(default_factory=set)
    pending: list[_Component] = field(default_factory=list)
    parts: list[int] = field(default_factory=list)
    failed: bool = False


def _search(clauses: list[_Clause], nodes: _Nodes, held: _Held) -> int:
    cache: dict[_Component, int] = {}
    top = _Frame(None, [])
    _enter(top, clauses, None, nodes)
    stack = [top]
    result = _FALSE
    while stack:
        held.check(len(nodes))
        frame = stack[-1]
        if frame.pending and not frame.failed:
            component = frame.pending[-1]
            if component in cache:
                frame.pending.pop()
                _add_part(frame, cache[component])
            else:
                variable = _most_frequent(component, frozenset() if nodes.determined else nodes.hidden)
                child = _Frame(component, [-variable], variable)
                held.decisions += 1
                _enter(child, component, variable, nodes)
                stack.append(child)
            continue
        if not frame.failed:
            frame.done.append(nodes.product(frame.literals, frame.parts))
        if frame.branches:
            _enter(frame, frame.component or (), frame.branches.pop(), nodes)
            continue
        stack.pop()
        result = _FALSE
        if len(frame.done) == 2:
            result = nodes.sum(frame.variable, *frame.done)
        elif frame.done:
            result = frame.done[0]
        if frame.component is not None:
            cache[frame.component] = result
            held.used += 150 + sum(60 + 8 * len(c) for c in frame.component)
    return result


def _enter(frame: _Frame, clauses: Sequence[_Clause], literal: int | None, nodes: _Nodes) -> None:
    """Start a branch of the frame: propagate the literal and split the rest into components."""
    frame.literals, frame.pending, frame.parts = set(), [], []
    residual = _propagate(clauses, [] if literal is None else [literal], frame.literals)
    frame.failed = residual is None
    if residual is None:
        return
    frame.pending = _components(residual)
    if nodes.determined and nodes.hidden:
        left = _variables(residual) | {abs(x) for x in frame.literals}
        if (_variables(clauses) - left) & nodes.hidden:
            raise NotDetermined  # the value of the variable no longer matters


def _add_part(frame: _Frame, node: int) -> None:
    if node == _FALSE:
        frame.failed = True
    else:
        frame.parts.append(node)


def _propagate(clauses: Sequence[_Clause], start: list[int], assigned: set[int]) -> list[_Clause] | None:
    """Assign literals and all that follow by unit propagation; return the open clauses, or None on a conflict."""
    occurrences: dict[int, list[int]] = defaultdict(list)
    open_literals = [len(c) for c in clauses]
    queue = list(start)
    for i, clause in enumerate(clauses):
        if not clause:
            return None
        if len(clause) == 1:
            queue.append(clause[0])
        for literal in clause:
            occurrences[-literal].append(i)
    while queue:
        literal = queue.pop()
        if literal in assigned:
            continue
        if -literal in assigned:
            return None
        assigned.add(literal)
        for i in occurrences[literal]:
            open_literals[i] -= 1
            if open_literals[i] == 1 and not any(x in assigned for x in clauses[i]):
                queue.append(next(x for x in clauses[i] if -x not in assigned))
            elif open_literals[i] == 0:
                return None
    left = [c for c in clauses if not any(x in assigned for x in c)]
    return [tuple(x for x in c if -x not in assigned) for c in left]


def _components(clauses: Sequence[_Clause]) -> list[_Component]:
    """Groups of clauses that share variables."""
    occurrences: dict[int, list[int]] = defaultdict(list)
    for i, clause in enumerate(clauses):
        for literal in clause:
            occurrences[abs(literal)].append(i)
    found: list[_Component] = []
    clause_seen: set[int] = set()
    variable_seen: set[int] = set()
    for first in range(len(clauses)):
        if first in clause_seen:
            continue
        clause_seen.add(first)
        group = [first]
        for i in group:  # grows while it is read
            for literal in clauses[i]:
                if abs(literal) in variable_seen:
                    continue
                variable_seen.add(abs(literal))
                fresh = [j for j in occurrences[abs(literal)] if j not in clause_seen]
                clause_seen.update(fresh)
                group.extend(fresh)
        found.append(tuple(sorted({clauses[i] for i in group})))
    return found


def _variables(clauses: Sequence[_Clause]) -> set[int]:
    return {abs(literal) for clause in clauses for literal in clause}


def _most_frequent(component: _Component, avoid: frozenset[int]) -> int:
    counts = Counter(abs(literal) for clause in component for literal in clause)
    return max(counts, key=lambda v: (v not in avoid, counts[v], -v))
