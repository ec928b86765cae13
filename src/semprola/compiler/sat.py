"""A small conflict-driven solver that says which of its assumptions contradict each other.

It is made for explanations: a few thousand clauses, most of them satisfied by propagation alone. It is deterministic,
stops after a given number of conflicts, and needs no native module.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence

_DECAY = 1 / 0.95
_RESTART = 64


class Solver:
    """Clauses of DIMACS literals, solved under assumptions.

    Args:
        num_vars: variables are 1 … num_vars.
        check: called from time to time; may raise an exception to stop.

    Attributes:
        model: after a satisfiable call, the value of each variable; entry 0 is not used.
        core: after an unsatisfiable call, assumptions that cannot hold together.

    Example:
        >>> solver = Solver(3)
        >>> for clause in ((-1, 2), (-2, 3)):
        ...     solver.add(clause)
        >>> solver.solve([1, -3]), sorted(solver.core)
        (False, [-3, 1])
    """

    def __init__(self, num_vars: int, check: Callable[[], None] | None = None) -> None:
        self.model: list[bool] = []
        self.core: list[int] = []
        self._check = check or (lambda: None)
        self._count = num_vars
        # literals are 2v and 2v + 1; `_value` is 1 for true, -1 for false
        self._value = [0] * (2 * num_vars + 2)
        self._watches: list[list[list[int]]] = [[] for _ in range(2 * num_vars + 2)]
        self._reason: list[list[int] | None] = [None] * (num_vars + 1)
        self._level = [0] * (num_vars + 1)
        self._phase = [1] * (num_vars + 1)
        self._activity = [0.0] * (num_vars + 1)
        self._bump = 1.0
        self._heap: list[tuple[float, int]] = []
        self._trail: list[int] = []
        self._starts: list[int] = []
        self._head = 0
        self._broken = False
        self._begun = False

    def add(self, literals: Iterable[int]) -> None:
        """Add a clause, but only between calls of `solve`."""
        self._back(0)
        clause = list(dict.fromkeys(_inner(literal) for literal in literals))
        if any(literal ^ 1 in clause for literal in clause) or any(self._value[literal] == 1 for literal in clause):
            return
        clause = [literal for literal in clause if self._value[literal] == 0]
        if not clause:
            self._broken = True
        elif len(clause) == 1:
            self._put(clause[0], None)
        else:
            self._watches[clause[0]].append(clause)
            self._watches[clause[1]].append(clause)
            for literal in clause:
                self._activity[literal >> 1] += 1e-3

    def solve(self, assumptions: Sequence[int] = (), max_conflicts: int = 2_000) -> bool | None:
        """Whether the clauses and the assumptions have a model; None if that takes too many conflicts."""
        self._back(0)
        self.core = []
        if self._broken or self._propagate() is not None:
            self._broken = True
            return False
        self._begin()
        wanted = [_inner(literal) for literal in assumptions]
        conflicts, restart = 0, _RESTART
        while True:
            conflict = self._propagate()
            if conflict is not None:
                if len(self._starts) < 2:
                    # level 1 holds the assumptions, level 0 the literals that are always true
                    self._broken = not self._starts
                    self.core = [_outer(found) for found in self._why(conflict)]
                    return False
                conflicts += 1
                if conflicts > max_conflicts:
                    return None
                if conflicts % 16 == 0:
                    self._check()
                self._learn(conflict)
                if conflicts >= restart:
                    restart = conflicts + _RESTART + conflicts // 4
                    self._back(1)
                continue
            if not self._starts:
                self._starts.append(len(self._trail))
                refused = self._assume(wanted)
                if refused is not None:
                    self.core = [_outer(found) for found in {refused, *self._why([refused])}]
                    return False
                continue
            literal = self._next()
            if literal is None:
                self.model = [False, *(self._value[2 * v] == 1 for v in range(1, self._count + 1))]
                return True
            self._starts.append(len(self._trail))
            self._put(literal, None)

    def _assume(self, wanted: Sequence[int]) -> int | None:
        """Put all assumptions on one level; return one that is already false, if any."""
        for literal in wanted:
            if self._value[literal] == -1:
                return literal
            if self._value[literal] == 0:
                self._put(literal, None)
        return None

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self._heap = [(-self._activity[v], v) for v in range(1, self._count + 1)]
            heapq.heapify(self._heap)

    def _next(self) -> int | None:
        """The next literal to decide: the variable with the most recent conflicts, with its last value."""
        while self._heap:
            v = heapq.heappop(self._heap)[1]
            if not self._value[2 * v]:
                return 2 * v + self._phase[v]
        return None

    def _put(self, literal: int, reason: list[int] | None) -> None:
        self._value[literal], self._value[literal ^ 1] = 1, -1
        v = literal >> 1
        self._reason[v], self._level[v] = reason, len(self._starts)
        self._trail.append(literal)

    def _propagate(self) -> list[int] | None:
        """Assign what follows; return a violated clause, if any."""
        value, watches, trail = self._value, self._watches, self._trail
        while self._head < len(trail):
            false = trail[self._head] ^ 1
            self._head += 1
            watching = watches[false]
            kept: list[list[int]] = []
            for position, clause in enumerate(watching):
                if clause[0] == false:
                    clause[0], clause[1] = clause[1], false
                first = clause[0]
                if value[first] == 1:
                    kept.append(clause)
                    continue
                for k in range(2, len(clause)):
                    if value[clause[k]] != -1:
                        clause[1], clause[k] = clause[k], false
                        watches[clause[1]].append(clause)
                        break
                else:
                    kept.append(clause)
                    if value[first] == -1:
                        kept.extend(watching[position + 1 :])
                        watches[false] = kept
                        return clause
                    self._put(first, clause)
            watches[false] = kept
        return None

    def _learn(self, conflict: list[int]) -> None:
        """Learn the clause of the first unique implication point, go back, and assert it."""
        seen: set[int] = set()
        learned: list[int] = []
        open_, place, now = 0, len(self._trail) - 1, len(self._starts)
        clause: list[int] | None = conflict
        literal = -1
        while True:
            for other in clause or ():
                v = other >> 1
                if other == literal or v in seen or not self._level[v]:
                    continue
                seen.add(v)
                self._touch(v)
                if self._level[v] == now:
                    open_ += 1
                else:
                    learned.append(other)
            while self._trail[place] >> 1 not in seen:
                place -= 1
            literal = self._trail[place]
            place -= 1
            open_ -= 1
            if not open_:
                break
            clause = self._reason[literal >> 1]
        self._bump *= _DECAY
        learned.sort(key=lambda other: -self._level[other >> 1])
        self._back(self._level[learned[0] >> 1] if learned else 0)
        clause = [literal ^ 1, *learned]
        if len(clause) > 1:
            self._watches[clause[0]].append(clause)
            self._watches[clause[1]].append(clause)
        self._put(clause[0], clause if len(clause) > 1 else None)

    def _touch(self, v: int) -> None:
        self._activity[v] += self._bump
        if self._activity[v] > 1e100:
            self._activity = [value * 1e-100 for value in self._activity]
            self._bump *= 1e-100
        heapq.heappush(self._heap, (-self._activity[v], v))

    def _why(self, clause: Sequence[int]) -> list[int]:
        """The assumptions that make all literals of a clause false."""
        found = []
        seen = {literal >> 1 for literal in clause}
        for position in range(len(self._trail) - 1, (self._starts[0] if self._starts else len(self._trail)) - 1, -1):
            literal = self._trail[position]
            if literal >> 1 not in seen:
                continue
            reason = self._reason[literal >> 1]
            if reason is None:
                found.append(literal)
            else:
                seen.update(part >> 1 for part in reason)
        return found

    def _back(self, level: int) -> None:
        if len(self._starts) <= level:
            return
        start = self._starts[level]
        for literal in self._trail[start:]:
            self._value[literal] = self._value[literal ^ 1] = 0
            v = literal >> 1
            self._phase[v] = literal & 1
            heapq.heappush(self._heap, (-self._activity[v], v))
        del self._trail[start:]
        del self._starts[level:]
        self._head = start


def _inner(literal: int) -> int:
    return 2 * literal if literal > 0 else -2 * literal + 1


def _outer(literal: int) -> int:
    return -(literal >> 1) if literal & 1 else literal >> 1
