"""The builder of decision diagrams: from a state machine over the variables to a reduced diagram and a circuit.

A family says how a state changes when the next variable gets a value; equal states at the same position are one node.
The diagram is then reduced from the last variable up and written as a circuit. A node of a zero-suppressed variable
becomes ``low or (v and high)``, any other node ``(not v and low) or (v and high)``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit, Vtree
from semprola.compiler.budget import Budget
from semprola.compiler.emission import FALSE_ID, TRUE_ID, Emitter, distinct
from semprola.errors import UnsatisfiableError

Ids = npt.NDArray[np.int64]
State = TypeVar("State", bound=Hashable)

_CHUNK = 4096
"""The budget is checked once per this many states."""


def decision_diagram(
    labels: Sequence[str],
    start: State,
    transition: Callable[[State, int, int], State | None],
    accept: Callable[[State], bool],
    *,
    given: Sequence[str] = (),
    order: Sequence[int] | None = None,
    zero_suppressed: bool = True,
    budget: Budget | None = None,
) -> Circuit:
    """Build the circuit of a state machine that reads the variables in a fixed order.

    Args:
        start: the state before the first variable; states are hashable, and equal ones behave the same.
        transition: ``transition(state, position, value)`` is the state after the variable at this position of the order
            has taken the value 0 or 1, or None if no model is left.
        accept: whether a state after the last variable is accepted as a model.
        order: the variables (indices into labels, then given) in the order of reading; by default as listed.
        zero_suppressed: whether a label that a branch does not mention is false there (otherwise it is free).

    Returns:
        A deterministic, decomposable circuit structured by the right-linear vtree of the order.
    """
    names = (*labels, *given)
    chosen = range(len(names)) if order is None else order
    limits = Budget().part("the constraint") if budget is None else budget
    levels = Expansion(start, transition, accept, [names[v] for v in chosen], limits).levels()
    return reduce_levels(levels, labels, chosen, given=given, zero_suppressed=zero_suppressed, budget=limits)


@dataclass(frozen=True)
class Levels:
    """An unreduced diagram, one entry per level: the index of each node's successor in the next level, or -1."""

    low: list[npt.NDArray[np.int32]]
    high: list[npt.NDArray[np.int32]]
    accepted: npt.NDArray[np.bool_]


class Expansion(Generic[State]):
    """The reachable states of a state machine, level by level; several expansions can take turns.

    Args:
        budget: limits; the error names the variable after which there are the most states.
    """

    def __init__(
        self,
        start: State,
        transition: Callable[[State, int, int], State | None],
        accept: Callable[[State], bool],
        names: Sequence[str],
        budget: Budget,
    ) -> None:
        self.transition, self.accept, self.names, self.budget = transition, accept, names, budget
        self.num_nodes = 0
        self._current: list[State] = [start]
        self._low: list[npt.NDArray[np.int32]] = []
        self._high: list[npt.NDArray[np.int32]] = []
        self._widest = (0, 0)

    @property
    def finished(self) -> bool:
        """Whether all variables are read."""
        return len(self._low) == len(self.names)

    def advance(self) -> None:
        """Read one more variable."""
        position, transition, current = len(self._low), self.transition, self._current
        successors: dict[State, int] = {}
        place = successors.setdefault
        ends: tuple[list[int], list[int]] = ([], [])
        for first in range(0, len(current), _CHUNK):
            part = current[first : first + _CHUNK]
            for value, end in enumerate(ends):
                for state in part:
                    after = transition(state, position, value)
                    end.append(-1 if after is None else place(after, len(successors)))
            self.budget.check(self._where(), self.num_nodes + len(current) + len(successors))
        self._widest = max(self._widest, (len(successors), position))
        self.num_nodes += len(current)
        self._low.append(np.array(ends[0], np.int32))
        self._high.append(np.array(ends[1], np.int32))
        self._current = list(successors)

    def levels(self) -> Levels:
        """All levels, after reading the remaining variables."""
        while not self.finished:
            self.advance()
        accepted = np.fromiter((self.accept(state) for state in self._current), np.bool_, len(self._current))
        return Levels(self._low, self._high, accepted)

    def _where(self) -> str:
        width, position = self._widest
        name = self.names[position]
        return f"after label {name!r}, number {position + 1} of {len(self.names)} in the order ({width:,} states)"


def reduce_levels(
    levels: Levels,
    labels: Sequence[str],
    order: Sequence[int],
    *,
    given: Sequence[str] = (),
    zero_suppressed: bool = True,
    budget: Budget | None = None,
) -> Circuit:
    """The circuit of an unreduced diagram; arguments as for `decision_diagram`."""
    limits = Budget().part("the constraint") if budget is None else budget
    diagram, root = _reduced(levels, Diagram(labels, given, zero_suppressed, limits), order)
    return diagram.circuit(root, order)


def smallest_diagram(levels: Levels, names: Sequence[str], budget: Budget, inputs: Collection[str] = ()) -> Circuit:
    """The circuit of an unreduced diagram, binary or zero-suppressed, whichever is smaller.

    Args:
        inputs: the variables that are given variables of the circuit; they are never zero-suppressed.
    """
    labels = [name for name in names if name not in inputs]
    given = [name for name in names if name in inputs]
    index = {name: v for v, name in enumerate([*labels, *given])}
    order = [index[name] for name in names]
    made = [_reduced(levels, Diagram(labels, given, suppressed, budget), order) for suppressed in (True, False)]
    # in a circuit, a node of a zero-suppressed diagram is a sum and a product, any other node a sum and two products
    diagram, root = made[0] if 2 * made[0][0].num_nodes <= 3 * made[1][0].num_nodes else made[1]
    return diagram.circuit(root, order)


def _reduced(levels: Levels, diagram: Diagram, order: Sequence[int]) -> tuple[Diagram, int]:
    """Fill an empty diagram; return it and the id of its root."""
    ids = np.where(levels.accepted, TRUE_ID, FALSE_ID)
    for position in range(len(order) - 1, -1, -1):
        below = np.append(ids, FALSE_ID)  # index -1 means no state
        ids = diagram.add(order[position], below[levels.low[position]], below[levels.high[position]])
        diagram.budget.check("the reduction", diagram.num_nodes)
    return diagram, int(ids[0]) if len(ids) else FALSE_ID


class Diagram:
    """A reduced decision diagram, built from the last variable up; ids 0 and 1 are false and true."""

    def __init__(self, labels: Sequence[str], given: Sequence[str], zero_suppressed: bool, budget: Budget) -> None:
        self.labels, self.given, self.budget = tuple(labels), tuple(given), budget
        self.suppressed = [zero_suppressed] * len(self.labels) + [False] * len(self.given)
        self.num_nodes = 0
        self._variable: list[Ids] = []
        self._low: list[Ids] = []
        self._high: list[Ids] = []

    def add(self, variable: int, low: Ids, high: Ids) -> Ids:
        """Add all nodes of one variable at once, after those of every later variable.

        Returns:
            The id of each node: equal nodes get equal ids, and a redundant node gets the id of its successor.
        """
        needless = high == FALSE_ID if self.suppressed[variable] else low == high
        ids = low.astype(np.int64)
        kept = np.flatnonzero(~needless)
        pairs, inverse, _ = distinct((low[kept].astype(np.int64) << 32) | high[kept], self._check)
        ids[kept] = self.num_nodes + 2 + inverse
        self.num_nodes += len(pairs)
        self._variable.append(np.full(len(pairs), variable, np.int64))
        self._low.append(pairs >> 32)
        self._high.append(pairs & 0xFFFFFFFF)
        return ids

    def circuit(self, root: int, order: Sequence[int]) -> Circuit:
        """The circuit of the node with this id.

        Args:
            root: an id from the last call of `add`, so that every node lies below it.
        """
        if root == FALSE_ID:
            raise UnsatisfiableError(f"{self.budget.what} has no model")
        empty = np.zeros(2, np.int64)
        variable, low, high = (np.concatenate([empty, *parts]) for parts in (self._variable, self._low, self._high))
        emitter = Emitter(variable, low, high, np.array(self.suppressed, bool))
        emitter.run(root, self._check)
        self._check()
        return Circuit(
            self.labels,
            self.given,
            np.asarray(emitter.kind),
            np.asarray(emitter.literal),
            np.concatenate([[0], np.cumsum(np.asarray(emitter.arity), dtype=np.int64)]),
            np.asarray(emitter.children),
            zero_suppressed=self.suppressed,
            vtree=Vtree.right_linear(order) if len(order) else None,
            info={"diagram_nodes": self.num_nodes},
        )

    def _check(self) -> None:
        self.budget.check("the finished diagram", self.num_nodes)
