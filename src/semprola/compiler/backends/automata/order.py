"""Chooses an order of the variables in which few joint states of all rules are possible at any position.

Candidates are the order in which the constraint is written, an elimination order, orders that move every variable to
the middle of its rules, and blocks: variables that stay connected without the longest rules are read in one go.
The search knows a rule only by the number of states it can have after some of its variables; an order is judged by the
sum of their logarithms over all open rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from networkx.utils import UnionFind

from semprola.compiler.decomposition import narrow_order
from semprola.compiler.parts import counted_literals
from semprola.logic import Formula, Kind

_ROUNDS = 30
_MOST_BITS = 6.0
"""The assumed limit on the states of a rule of no special kind, as a logarithm to base 2."""
_MOST_ELIMINATED, _WIDEST = 800, 64
"""With more variables, there is no search for an elimination order; and it ends at a bag with more neighbours."""
_MOST_SPLITS = 4
_SHORT = 12
"""A longer rule is a path of the primal graph, not a clique."""


@dataclass(frozen=True)
class Scope:
    """A rule as the search for an order sees it.

    Attributes:
        variables: the variables that it mentions.
        bits: the logarithm of the number of states after reading 0, 1, … of them.
    """

    variables: tuple[int, ...]
    bits: tuple[float, ...]


def scope_of(rule: Formula, variables: Sequence[int]) -> Scope:
    """What the search for an order needs to know about a rule over these variables."""
    count = len(variables)
    counted = counted_literals(rule)
    if counted is not None:
        lo, hi = rule.bounds
        last = hi + 1 if hi < count else lo
        states = [
            max(1, min(read, last, hi) - max(0, lo - (count - read)) + 1) if 0 < read < count else 1
            for read in range(count + 1)
        ]
        return Scope(tuple(variables), tuple(np.log2(states).tolist()))
    most = 1.0 if rule.kind in (Kind.OR, Kind.XOR, Kind.IMPLIES) else _MOST_BITS
    return Scope(tuple(variables), tuple(min(read, count - read, most) for read in map(float, range(count + 1))))


def candidate_orders(
    num_vars: int, scopes: Sequence[Scope], check: Callable[[], None]
) -> list[tuple[float, list[int]]]:
    """Orders worth trying, the most promising first, each with its cost.

    The cost is the logarithm (base 2) of the total number of joint states if the rules were independent.

    Args:
        num_vars: variables are 0 … num_vars - 1, in the order in which they are written.
    """
    rules = _Rules(num_vars, scopes)
    written = list(range(num_vars))
    found = [written]
    if num_vars <= _MOST_ELIMINATED:
        order = narrow_order(num_vars, _cliques(scopes), _WIDEST, check)
        found += [] if order is None else [order[::-1]]
    found += [rules.centred(start, check) for start in list(found)]
    for blocks in _blocks(num_vars, scopes, check):
        found += _block_orders(blocks, scopes, check)
    judged: dict[tuple[int, ...], float] = {}
    for order in found:
        check()
        if tuple(order) not in judged:
            judged[tuple(order)] = rules.cost(order)
    return [(judged[order], list(order)) for order in sorted(judged, key=judged.__getitem__)]


class _Rules:
    """The rules in flat arrays, to judge many orders quickly."""

    def __init__(self, num_vars: int, scopes: Sequence[Scope]) -> None:
        self.num_vars = num_vars
        self.sizes = np.array([len(scope.variables) for scope in scopes], np.int64)
        self.members = np.array([v for scope in scopes for v in scope.variables], np.int64)
        self.rule = np.repeat(np.arange(len(scopes)), self.sizes)
        self.starts = np.cumsum(self.sizes) - self.sizes
        self.gains = np.array([after - before for scope in scopes for before, after in pairwise(scope.bits)])

    def cost(self, order: Sequence[int]) -> float:
        """The logarithm of the sum, over all positions, of the product of all rules' states there."""
        if not len(self.members):
            return 0.0
        at = self._place(order)[self.members]
        at = at[np.lexsort((at, self.rule))]
        bits = np.cumsum(np.bincount(at, weights=self.gains, minlength=self.num_vars))
        top = float(bits.max())
        return top + float(np.log2(np.exp2(bits - top).sum()))

    def centred(self, order: Sequence[int], check: Callable[[], None]) -> list[int]:
        """Move every variable to the middle of its rules, repeatedly, as long as rules get shorter (FORCE)."""
        best, best_span = np.array(order, np.int64), np.inf
        if not len(self.members):
            return [int(v) for v in best]
        uses = np.bincount(self.members, minlength=self.num_vars)
        current = best
        for _ in range(_ROUNDS):
            check()
            place = self._place(current)
            at = place[self.members]
            span = float((np.maximum.reduceat(at, self.starts) - np.minimum.reduceat(at, self.starts)).sum())
            if span >= best_span:
                break
            best, best_span = current, span
            middle = np.add.reduceat(at, self.starts) / self.sizes
            wanted = np.bincount(self.members, weights=middle[self.rule], minlength=self.num_vars)
            wanted = np.where(uses > 0, wanted / np.maximum(uses, 1), place)
            current = np.argsort(wanted, kind="stable")
        return [int(v) for v in best]

    def _place(self, order: Sequence[int] | npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        place = np.empty(self.num_vars, np.int64)
        place[np.asarray(order)] = np.arange(self.num_vars)
        return place


def _cliques(scopes: Iterable[Scope]) -> list[tuple[int, ...]]:
    cliques: dict[tuple[int, ...], None] = {}
    for scope in scopes:
        if len(scope.variables) <= _SHORT:
            cliques[scope.variables] = None
        else:
            cliques.update(dict.fromkeys(pairwise(scope.variables)))
    return list(cliques)


def _blocks(num_vars: int, scopes: Sequence[Scope], check: Callable[[], None]) -> list[list[list[int]]]:
    """Partitions into blocks that rules of bounded length connect: from a few large blocks to many small ones."""
    found: list[list[list[int]]] = []
    for size in sorted({len(scope.variables) for scope in scopes})[:-1][::-1]:
        check()
        sets = UnionFind(range(num_vars))
        for scope in scopes:
            if len(scope.variables) <= size:
                sets.union(*scope.variables)
        members: dict[int, list[int]] = {}
        for v in range(num_vars):
            members.setdefault(sets[v], []).append(v)
        if len(members) > 1 and (not found or len(members) > len(found[-1])):
            found.append(list(members.values()))
    return found[:_MOST_SPLITS]


def _block_orders(
    blocks: Sequence[Sequence[int]], scopes: Sequence[Scope], check: Callable[[], None]
) -> list[list[int]]:
    """The blocks one after another, each in its own best order: as written, and in an order that suits the rules."""
    number = {v: i for i, block in enumerate(blocks) for v in block}
    local = {v: i for block in blocks for i, v in enumerate(block)}
    inside: list[list[Scope]] = [[] for _ in blocks]
    outside: list[Scope] = []
    for scope in scopes:
        touched = tuple(dict.fromkeys(number[v] for v in scope.variables))
        if len(touched) == 1:
            inside[touched[0]].append(Scope(tuple(local[v] for v in scope.variables), scope.bits))
        else:
            outside.append(Scope(touched, (0.0,) * (len(touched) + 1)))
    inner = []
    for block, own in zip(blocks, inside, strict=True):
        rules = _Rules(len(block), own)
        choices = [list(range(len(block))), rules.centred(range(len(block)), check)]
        inner.append([block[i] for i in min(choices, key=rules.cost)])
    arrangements = [list(range(len(blocks))), _Rules(len(blocks), outside).centred(range(len(blocks)), check)]
    return [[v for b in arrangement for v in inner[b]] for arrangement in arrangements]
