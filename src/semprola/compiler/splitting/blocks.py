"""Groups the pieces of a constraint into blocks that compile within a budget, and blocks into few circuits.

Blocks without common variables become one circuit, because a circuit of independent parts costs no more than its parts.
There are two ways, and the one with fewer circuits is taken:

- Dense: a block grows from a piece that no block has yet. It takes next the piece that adds the fewest new variables:
  of a grid of one-hots, this closes a row, a column or a digit before it goes on, which is where a block becomes tight
  and stays cheap. The longest beginning of this sequence that compiles, up to where it is closed, is the block.
- Sparse: every piece is a block. Then circuits are merged as long as their conjunction compiles.

All decisions depend on numbers of nodes and variables only, so the same pieces and budget give the same circuits.
"""

from __future__ import annotations

import contextlib
import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from semprola.circuit import Circuit
from semprola.compiler.backends.topdown.backend import compile_topdown
from semprola.compiler.budget import Budget
from semprola.compiler.join import join_circuits
from semprola.compiler.parts import conjuncts_of
from semprola.compiler.parts import split as grouped
from semprola.compiler.splitting.pieces import Piece
from semprola.errors import CompilationBudgetError
from semprola.logic import And, Bool, Formula
from semprola.logic.rewrite import simplify

_STEPS = 20
"""Steps per node that a search may take."""
_LONGEST = 1000
"""The most pieces in a block."""
_PER_LABEL = 1000
"""By default, a block that a family chose may have so many nodes per label."""
_MERGED_NODES, _MOST_ATTEMPTS = 20_000, 60
"""By default, the most nodes of merged circuits; and how often merging is tried."""
_MOST_CIRCUITS = 100
"""With more circuits, rounds take longer than the rules of all further ones are worth; the search obeys these."""
_TIGHT = 2.0
"""If there would be more circuits than that, rules with so many times the variables of the smallest are left out."""
_MOST_COVERED = 3
"""A piece joins at most so many blocks."""


@dataclass(frozen=True)
class Block:
    """Pieces and the circuit of their conjunction, together with the facts about its variables."""

    pieces: tuple[int, ...]
    circuit: Circuit


class Blocks:
    """Finds blocks for pieces.

    Args:
        pieces: parts of the constraint.
        facts: labels with a known value; they are part of every circuit.
        budget: its time and memory are those of all blocks together.
        most: the most nodes of a block.
    """

    def __init__(self, pieces: Sequence[Piece], facts: Mapping[str, bool], budget: Budget, most: int) -> None:
        self.pieces, self.facts, self.budget, self.most = pieces, facts, budget, most
        self.scope = [[name for name in piece.formula.labels if name not in facts] for piece in pieces]
        self.touching: dict[str, list[int]] = {}
        for number, names in enumerate(self.scope):
            for name in names:
                self.touching.setdefault(name, []).append(number)
        self.times = [0] * len(pieces)

    def find(self) -> tuple[list[list[Block]], list[int]]:
        """Groups of blocks without common variables, and the pieces that do not compile alone or within the time."""
        alone, hard = self._alone()
        sparse = packed(alone, self.budget.max_nodes)
        dense = self._dense(alone, min(len(sparse), _MOST_CIRCUITS))
        if dense is None and len(sparse) > _MOST_CIRCUITS:  # some rules are left out anyway
            tight = self._tight(alone)
            sparse = packed(tight, self.budget.max_nodes)
            dense = self._dense(tight, len(sparse))
        groups = dense if dense is not None else self._merged(sparse)
        # rules with the most variables bound the least
        groups = sorted(groups, key=lambda group: min(self._width(block) for block in group))
        kept = groups[:_MOST_CIRCUITS]
        covered = {number for group in kept for block in group for number in block.pieces}
        dropped = {number for block in alone for number in block.pieces} - covered
        return kept, sorted({*hard, *dropped})

    def _tight(self, blocks: Sequence[Block]) -> list[Block]:
        """The blocks with few variables; a circuit for each of the others costs more time than it saves."""
        least = min(self._width(block) for block in blocks)
        return [block for block in blocks if self._width(block) <= _TIGHT * least]

    def _width(self, block: Block) -> float:
        """The variables per rule of a block."""
        return len(block.circuit.variables) / len(block.pieces)

    def _alone(self) -> tuple[list[Block], list[int]]:
        """Every piece as a block, and the pieces that do not compile alone or for which there was no time."""
        blocks: list[Block] = []
        hard: list[int] = []
        for seed in range(len(self.pieces)):
            circuit = None
            with contextlib.suppress(CompilationBudgetError):
                self.budget.check("splitting the constraint", len(blocks))
                circuit = self._compiled([seed])
            if circuit is None:
                hard.append(seed)
            else:
                blocks.append(Block((seed,), circuit))
        return blocks, hard

    def _dense(self, alone: Sequence[Block], most: int) -> list[list[Block]] | None:
        """Groups of blocks that have grown; None if there would be more groups than `most`, or no time."""
        seeds = [block.pieces[0] for block in alone]
        groups: list[list[Block]] = []
        blocks: list[Block] = []
        self.times = [0 if number in set(seeds) else _MOST_COVERED for number in range(len(self.pieces))]
        try:
            for seed in seeds:
                if self.times[seed]:
                    continue
                block = self._block(seed)
                if block is None:
                    return None
                blocks.append(block)
                groups = packed(blocks, self.budget.max_nodes)
                if len(groups) > most:
                    return None
                for number in block.pieces:
                    self.times[number] += 1
        except CompilationBudgetError:
            return None
        return groups

    def _merged(self, groups: list[list[Block]]) -> list[list[Block]]:
        """Groups whose conjunction compiles become one, as long as that works and there is time."""
        attempts = _MOST_ATTEMPTS
        with contextlib.suppress(CompilationBudgetError):
            first = 0
            while first < len(groups) - 1:
                for second in range(first + 1, len(groups)):
                    if not attempts:
                        return groups
                    attempts -= 1
                    chosen = [number for block in (*groups[first], *groups[second]) for number in block.pieces]
                    circuit = self._compiled(chosen, self._most_merged)
                    if circuit is not None:
                        merged = [Block(tuple(chosen), circuit)]
                        groups = [*groups[:first], merged, *groups[first + 1 : second], *groups[second + 1 :]]
                        break
                else:
                    first += 1
        return groups

    @property
    def _most_merged(self) -> int:
        return _MERGED_NODES if self.budget.max_nodes is None else self.budget.max_nodes

    def _block(self, seed: int) -> Block | None:
        """The longest beginning of the sequence from a seed that compiles, up to where it is closed.

        It is searched for by doubling. It is closed where at least two of its pieces speak of each of its variables.
        """
        circuit = self._compiled([seed])
        if circuit is None:
            return None
        best = Block((seed,), circuit)
        if self.pieces[seed].closed:
            return best
        grown, order = self._order(seed), [seed]
        low, high = 1, None
        while high is None or high - low > 1:
            wanted = 2 * low if high is None else (low + high) // 2
            while len(order) < wanted and (following := next(grown, None)) is not None:
                order.append(following)
            wanted = min(wanted, len(order))
            if wanted <= low:
                break
            circuit = self._compiled(order[:wanted])
            if circuit is None:
                high = wanted
            else:
                low, best = wanted, Block(tuple(order[:wanted]), circuit)
        closed = max(self._closures(order[:low]), default=low)
        circuit = best.circuit if closed == low else self._compiled(order[:closed])
        return best if circuit is None else Block(tuple(order[:closed]), circuit)

    def _closures(self, order: Sequence[int]) -> Iterator[int]:
        """The lengths at which the beginning of a sequence of pieces is closed."""
        times: dict[str, int] = {}
        once = 0
        for length, number in enumerate(order, start=1):
            for name in self.scope[number]:
                times[name] = times.get(name, 0) + 1
                once += {1: 1, 2: -1}.get(times[name], 0)
            if not once:
                yield length

    def _order(self, seed: int) -> Iterator[int]:
        """Pieces in the order in which a block takes them: fewest new variables, then new to blocks, most shared."""
        inside, taken = set(self.scope[seed]), {seed}
        new = {}
        waiting: list[tuple[int, bool, int, int]] = []

        def reach(names: Sequence[str]) -> None:
            for number in dict.fromkeys(number for name in names for number in self.touching[name]):
                if number in taken or self.pieces[number].closed or self.times[number] >= _MOST_COVERED:
                    continue
                new[number] = sum(name not in inside for name in self.scope[number])
                shared = len(self.scope[number]) - new[number]
                heapq.heappush(waiting, (new[number], self.times[number] > 0, -shared, number))

        reach(self.scope[seed])
        while waiting and len(taken) < _LONGEST:
            count, _, _, number = heapq.heappop(waiting)
            if number in taken or count != new[number]:
                continue
            taken.add(number)
            yield number
            added = [name for name in self.scope[number] if name not in inside]
            inside.update(added)
            reach(added)

    def _compiled(self, chosen: Sequence[int], most: int | None = None) -> Circuit | None:
        """The circuit of some pieces; None if it needs more nodes."""
        names = dict.fromkeys(name for number in chosen for name in self.pieces[number].formula.labels)
        known = [Bool(name) if self.facts[name] else ~Bool(name) for name in names if name in self.facts]
        formula = And([*(self.pieces[number].formula for number in chosen), *known])
        most = self.most if most is None else most
        if len(chosen) == 1 and self.pieces[chosen[0]].closed and self.budget.max_nodes is None:
            most = max(most, _PER_LABEL * len(names))
        try:
            circuit = conjoined(formula, self.budget.limited(most, _STEPS * most))
        except CompilationBudgetError as error:
            if error.resource != "nodes":
                raise
            return None
        return circuit if circuit.num_nodes <= most else None


def conjoined(formula: Formula, budget: Budget) -> Circuit:
    """The circuit of a conjunction: families and counts directly, the rest by the top-down compiler.

    Raises:
        UnsatisfiableError: it has no model.
        CompilationBudgetError: the budget ran out.
    """
    names = formula.labels
    check = budget.checker("splitting the constraint")
    work = grouped(conjuncts_of(simplify(formula, check), check), budget, direct=True)
    parts = [*work.circuits, *(compile_topdown([component], budget) for component in work.components)]
    return join_circuits(parts, work.facts, names)


def packed(blocks: Sequence[Block], most: int | None) -> list[list[Block]]:
    """Groups of blocks that have no variable in common, with at most so many nodes; first come, first served."""
    groups: list[tuple[list[Block], set[str]]] = []
    for block in blocks:
        names, size = set(block.circuit.variables), block.circuit.num_nodes
        for chosen, used in groups:
            if not used & names and (most is None or size + sum(b.circuit.num_nodes for b in chosen) <= most):
                chosen.append(block)
                used |= names
                break
        else:
            groups.append(([block], names))
    return [chosen for chosen, _ in groups]


def joined(group: Sequence[Block], facts: Mapping[str, bool], labels: Sequence[str]) -> Circuit:
    """The circuit of blocks that share no variable, and of all facts, over all labels."""
    circuits = [block.circuit for block in group]
    used = {name for circuit in circuits for name in circuit.variables}
    return join_circuits(circuits, {name: value for name, value in facts.items() if name not in used}, labels)
