"""Deterministic automata over tags, as arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.errors import CompilationBudgetError, LabelError, UnsatisfiableError

MOST_STATES = 20_000
"""Automata with more states are refused."""


class TagMachine:
    """A deterministic automaton that reads tag numbers; it starts in state 0.

    Args:
        table: the next state for each state and tag, -1 if the sequence is rejected [states, tags].
        accepting: whether a sequence may end in each state [states].
    """

    def __init__(self, table: Any, accepting: Any) -> None:
        self.table: NDArray[np.int64] = np.array(table, np.int64)
        self.accepting: NDArray[np.bool_] = np.array(accepting, bool)
        if self.table.ndim != 2 or self.accepting.shape != self.table.shape[:1] or not self.table.size:
            raise LabelError("an automaton needs a table [states, tags] and accepting states [states]")
        if self.table.min() < -1 or self.table.max() >= len(self.table):
            raise LabelError(f"the automaton has {len(self.table)} states, but its table names others")
        self.table.setflags(write=False)
        self.accepting.setflags(write=False)

    @classmethod
    def free(cls, tags: int) -> TagMachine:
        """The automaton that accepts every sequence."""
        return cls(np.zeros((1, tags)), [True])

    @classmethod
    def determinized(
        cls, table: Sequence[Sequence[frozenset[int]]], start: frozenset[int], final: frozenset[int]
    ) -> TagMachine:
        """The deterministic version of a nondeterministic automaton: its states are the reachable sets of states.

        Args:
            table: ``table[state][tag]`` are the next states.
        """

        def step(states: frozenset[int], tag: int) -> frozenset[int]:
            return frozenset().union(*(table[q][tag] for q in states))

        return cls.explored(start, step, lambda states: not final.isdisjoint(states), len(table[0]))

    @classmethod
    def explored(cls, start: Any, step: Any, accepts: Any, tags: int) -> TagMachine:
        """The automaton of all reachable states; None, or an empty set, rejects."""
        number, queue, rows = {start: 0}, [start], []
        for state in queue:
            row = []
            for tag in range(tags):
                after = step(state, tag)
                if after and after not in number:
                    number[after] = len(number)
                    queue.append(after)
                row.append(number[after] if after else -1)
            rows.append(row)
            if len(number) > MOST_STATES:
                raise CompilationBudgetError(
                    f"the automaton of the rules has more than {MOST_STATES:,} states: use simpler rules",
                    resource="nodes",
                    limit=MOST_STATES,
                )
        return cls(rows, [accepts(state) for state in queue])

    @property
    def num_states(self) -> int:
        """How many states there are."""
        return len(self.table)

    @property
    def num_tags(self) -> int:
        """How many tags it reads."""
        return int(self.table.shape[1])

    @property
    def digest(self) -> str:
        """A hash of the automaton."""
        content = repr((self.table.tolist(), self.accepting.tolist()))
        return hashlib.sha256(content.encode()).hexdigest()

    def accepts(self, tags: Sequence[int]) -> bool:
        """Whether the automaton accepts a sequence of tag numbers."""
        return self.fault(tags) is None

    def fault(self, tags: Sequence[int]) -> int | None:
        """The first position that makes a sequence wrong, its length if it must not end there; None if accepted."""
        state = 0
        for position, tag in enumerate(tags):
            state = int(self.table[state, tag])
            if state < 0:
                return position
        return None if self.accepting[state] else len(tags)

    def __and__(self, other: TagMachine) -> TagMachine:
        """The automaton of sequences that both accept."""

        def step(pair: tuple[int, int], tag: int) -> tuple[int, int] | None:
            after = int(self.table[pair[0], tag]), int(other.table[pair[1], tag])
            return None if min(after) < 0 else after

        def accepts(pair: tuple[int, int]) -> bool:
            return bool(self.accepting[pair[0]] and other.accepting[pair[1]])

        return self.explored((0, 0), step, accepts, self.num_tags)

    def reduced(self) -> TagMachine:
        """The smallest automaton that accepts the same sequences of one or more tags."""
        table, accepting = self._trimmed()
        if not (table[0] >= 0).any():
            raise UnsatisfiableError("the rules allow no sequence of tags of any length")
        # Moore's refinement: states are equal until acceptance, or the blocks they lead to, distinguish them
        blocks = np.unique(accepting, return_inverse=True)[1]
        while True:
            after = np.where(table >= 0, blocks[table], -1)
            finer = np.unique(np.column_stack([blocks, after]), axis=0, return_inverse=True)[1].reshape(-1)
            if finer.max() == blocks.max():
                break
            blocks = finer
        return TagMachine(*_merged(table, accepting, blocks))._renumbered()

    def _renumbered(self) -> TagMachine:
        """The automaton with states numbered as they are reached, so equal automata have equal arrays."""

        def step(state: tuple[int], tag: int) -> tuple[int] | None:
            after = int(self.table[state[0], tag])
            return None if after < 0 else (after,)

        return self.explored((0,), step, lambda state: bool(self.accepting[state[0]]), self.num_tags)

    def _trimmed(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """The arrays of the states that lie on a way from the start to an accepting state."""
        table = self.table.copy()
        useful = self.accepting.copy()
        while True:
            more = useful | ((table >= 0) & useful[table]).any(1)
            if (more == useful).all():
                break
            useful = more
        table[~useful[table]] = -1
        reached = np.zeros(len(table), bool)
        reached[0] = True
        frontier = reached
        while frontier.any():
            after = np.zeros_like(reached)
            after[table[frontier][table[frontier] >= 0]] = True
            frontier = after & ~reached
            reached = reached | after
        number = np.cumsum(reached) - 1
        return np.where(table >= 0, number[table], -1)[reached], self.accepting[reached]


def _merged(
    table: NDArray[np.int64], accepting: NDArray[np.bool_], blocks: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """One state per block of equal states; the block of the initial state comes first."""
    blocks = np.where(blocks == blocks[0], -1, blocks)
    one_each, number = np.unique(blocks, return_index=True, return_inverse=True)[1:]
    return np.where(table >= 0, number[table], -1)[one_each], accepting[one_each]
