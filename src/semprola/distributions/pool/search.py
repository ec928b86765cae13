"""Branch and bound: the most probable states of a pool where the circuits do not agree by themselves.

A node fixes some labels. What follows from them under all rules is fixed, too; then a few rounds of dual decomposition
give its bound. It is done when the bound falls below the best known state, when the circuits agree on a state that
satisfies all rules, or when nothing is left to fix; otherwise it branches on the label about which they disagree most.
"""

from __future__ import annotations

import heapq
import itertools
import time
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from semprola.distributions.pool.diving import dive
from semprola.distributions.pool.finisher import Finisher
from semprola.distributions.pool.oracles import Oracles
from semprola.distributions.pool.propagation import Propagation
from semprola.distributions.pool.rounds import run_rounds
from semprola.engine.numbers import NEGATIVE_INFINITY

_NODES_AT_ONCE = 64
_ROUNDS_PER_NODE = 12
_WARM, _COLD = 0.05, 0.005
"""Temperatures, relative to the size of the scores: at which the rounds of a node begin, since its bonuses come from
its parent, and at which labels are fixed by their bounds."""
_DIVE_SHARE, _MOST_DIVES = 0.3, 4
"""Diving takes at most this share of the time; so many dives of a row go on side by side."""
_OWN_SHARE = 0.5
"""The share of the time after which a solver goes on, if one is asked for."""
_TOLERANCE = 1e-9


@dataclass(frozen=True)
class Limits:
    """What the search for a mode may use.

    Attributes:
        rounds: of dual decomposition at the root of each row.
        nodes: of branch and bound per row.
        seconds: per row of the batch, on average.
        solver: "cp-sat" for OR-Tools' solver on rows of independent labels that are not settled within a share of the
            time; None for none.
    """

    rounds: int = 100
    nodes: int = 2000
    seconds: float = 30.0
    solver: str | None = None

    def __post_init__(self) -> None:
        if self.solver not in (None, "cp-sat"):
            raise ValueError(f"solver must be 'cp-sat' or None, not {self.solver!r}")


@dataclass(frozen=True)
class Found:
    """The best states of each row.

    Attributes:
        states: best first [labels, k, batch]; rows past `count` are of no meaning.
        scores: Σ_j w_j log p_j(y) [k, batch], -inf past the last state found.
        bound: no other state has a larger score [batch].
        empty: where the search proved that no state satisfies all rules [batch].
    """

    states: Tensor
    scores: Tensor
    bound: Tensor
    empty: Tensor

    @property
    def is_exact(self) -> Tensor:
        """Whether the states are proven to be the best, and in this order [batch]."""
        least = self.scores[-1]
        return (self.bound <= least + _slack(least)) | self.empty


@dataclass
class _Row:
    """The search of one row: the best states so far and the open nodes."""

    k: int
    best: list[tuple[float, Tensor]] = field(default_factory=list)
    open: list[_Node] = field(default_factory=list)
    nodes: int = 0
    began: float = 0.0

    @property
    def floor(self) -> float:
        """A state must have a larger score to matter."""
        return self.best[self.k - 1][0] if len(self.best) >= self.k else NEGATIVE_INFINITY

    @property
    def unsettled(self) -> list[_Node]:
        """The open nodes that may have a better state."""
        return [node for node in self.open if node.bound > self.floor + _slack_of(node.bound)]

    def add(self, score: float, state: Tensor) -> None:
        if any(torch.equal(state, known) for _, known in self.best):
            return
        self.best = sorted([*self.best, (score, state)], key=lambda pair: -pair[0])[: self.k]


@dataclass(order=True)
class _Node:
    key: tuple[float, float, int]
    bound: float = field(compare=False)
    fixed: Tensor = field(compare=False)
    bonus: Tensor = field(compare=False)
    depth: int = field(compare=False)

    def at_most(self, bound: float) -> _Node:
        return replace(self, bound=min(self.bound, bound))


class Search:
    """The k best states of every row of a pool.

    Args:
        fixed: labels known beforehand [labels, batch], NaN where free.
    """

    def __init__(
        self,
        oracles: Oracles,
        propagation: Propagation,
        limits: Limits,
        k: int,
        fixed: Tensor,
        finisher: Finisher | None = None,
    ) -> None:
        self.oracles, self.propagation, self.limits, self.k = oracles, propagation, limits, k
        self.finisher = finisher if k == 1 and oracles.as_sum is not None else None
        self.fixed = fixed.double()
        self.size = oracles.size_of_scores().clamp(min=1e-6)
        self.rows = [_Row(k) for _ in range(oracles.batch)]
        self._numbers = itertools.count()

    @torch.no_grad()
    def run(self) -> Found:
        """Search until every row is settled or its budget is used up."""
        seconds = self.limits.seconds * max(1, self.oracles.batch)
        end = time.monotonic() + seconds
        self.until = end - (0.0 if self.finisher is None else (1 - _OWN_SHARE) * seconds)
        index = torch.arange(self.oracles.batch, device=self.fixed.device)
        # the circuits alone settle most rows, without any propagation
        self._visit(index, self.fixed, self.oracles.starting_bonus(), torch.zeros_like(index), root=True)
        self._dive(self.bonus)
        while time.monotonic() < self.until:
            chosen = self._chosen()
            if not chosen:
                break
            row = torch.tensor([r for r, _ in chosen], device=self.fixed.device)
            fixed = torch.stack([node.fixed for _, node in chosen], dim=1)
            bonus = torch.stack([node.bonus for _, node in chosen], dim=2)
            depth = torch.tensor([node.depth for _, node in chosen], device=self.fixed.device)
            self._visit(row, fixed, bonus, depth, root=False)
        if self.finisher is not None:
            self._finish(self.finisher, end)
        return self._result()

    def _finish(self, finisher: Finisher, until: float) -> None:
        """Let a solver look for the states of rows that are not settled, as long as there is time."""
        left = [r for r, row in enumerate(self.rows) if row.unsettled]
        for place, r in enumerate(left):
            seconds = (until - time.monotonic()) / (len(left) - place)
            if seconds <= 0:
                return
            row, index = self.rows[r], torch.tensor([r])
            own = self.oracles.select(index)
            fixed, hopeless = self._by_bounds(own, self.bonus[:, :, index], index, self.fixed[:, index])
            if hopeless[0]:
                row.open = []
                continue
            assert own.as_sum is not None
            odds, of_zeros = (each[..., 0] for each in own.as_sum)
            found = finisher.finish(odds, fixed[:, 0], row.best[0][1] if row.best else None, seconds)
            if found.state is not None:
                self._add(index, found.state[:, None].to(fixed))
            row.open = [node.at_most(found.bound + float(of_zeros)) for node in row.unsettled]

    def _dive(self, bonus: Tensor) -> None:
        """Look for a state of rows that have none; every row makes several attempts side by side."""
        rows = [r for r, row in enumerate(self.rows) if row.open and not row.best]
        if not rows:
            return
        each = max(1, min(_MOST_DIVES, _NODES_AT_ONCE // len(rows)))
        row = torch.tensor(rows).repeat_interleave(each)
        until = min(self.until, time.monotonic() + _DIVE_SHARE * self.limits.seconds * len(rows))
        known = self.oracles, self.propagation, row, self.fixed[:, row], bonus[:, :, row], self.size[row]
        dive(*known, until, self._add, lambda r: bool(self.rows[r].best))

    def _visit(self, row: Tensor, fixed: Tensor, bonus: Tensor, depth: Tensor, *, root: bool) -> None:
        """Bound some nodes, keep what states they lead to, and open their children."""
        if not root:
            fixed, dead = self.propagation.extend(fixed)
            alive = torch.nonzero(~dead)[:, 0]
            row, fixed, bonus, depth = row[alive], fixed[:, alive], bonus[:, :, alive], depth[alive]
        if not len(row):
            return
        floor = torch.tensor([self.rows[r].floor for r in row.tolist()], dtype=torch.float64, device=fixed.device)
        own = self.oracles.select(row, fixed if not root or bool((~fixed.isnan()).any()) else None)
        rounds = self.limits.rounds if root else _ROUNDS_PER_NODE
        heat = {} if root else {"hot": _WARM}
        made = run_rounds(own, bonus, rounds, self.size[row], floor, **heat, until=self.until)
        if root:
            self.bonus = made.bonus
        whole = made.agreed | ~fixed.isnan().any(0)
        states = torch.where(fixed.isnan(), made.states, fixed)
        scores = torch.full_like(made.bound, NEGATIVE_INFINITY)
        scores[whole] = self._add(row[whole], states[:, whole])
        fixed, hopeless = self._by_bounds(own, made.bonus, row, fixed)
        free = fixed.isnan()
        for i, r in enumerate(row.tolist()):
            bound, mine = float(made.bound[i]), self.rows[r]
            settled = self.k == 1 and bound <= float(scores[i]) + _slack_of(bound)
            done = settled or hopeless[i] or not bool(free[:, i].any())
            if done or bound <= mine.floor + _slack_of(bound):
                continue
            label = self._branching(made.doubt[:, i], made.leaning[:, i], free[:, i])
            likelier = float(made.leaning[label, i] >= 0.5)
            for value in (1 - likelier, likelier):
                child = fixed[:, i].clone()
                child[label] = value
                key = self._key(mine, bound, int(depth[i]) + 1)
                node = _Node((*key, -next(self._numbers)), bound, child, made.bonus[:, :, i].clone(), int(depth[i]) + 1)
                heapq.heappush(mine.open, node)

    def _by_bounds(self, own: Oracles, bonus: Tensor, row: Tensor, fixed: Tensor) -> tuple[Tensor, list[bool]]:
        """Fixed labels, and those whose other value no better state has; and which nodes have no better state."""
        floor = torch.tensor([self.rows[r].floor for r in row.tolist()], dtype=torch.float64, device=fixed.device)
        bounds = own.literal_bounds(bonus, _COLD * self.size[row]) if bool((floor > NEGATIVE_INFINITY).any()) else None
        if bounds is None:
            return fixed, [False] * len(row)
        no_zero, no_one = (bound < floor - _slack(floor) for bound in bounds)
        found = torch.where(fixed.isnan() & (no_zero | no_one), no_zero.double(), fixed)
        return found, (no_zero & no_one).any(0).tolist()

    def _add(self, row: Tensor, states: Tensor) -> Tensor:
        """Keep the states [labels, n] of some rows that satisfy all rules; their scores [n], -inf for the others."""
        inside = self.propagation.satisfied(states)
        scores = torch.full(inside.shape, NEGATIVE_INFINITY, dtype=torch.float64, device=states.device)
        if bool(inside.any()):
            row, states = row[inside], states[:, inside]
            scores[inside] = self.oracles.select(row).scores(states[:, None])[0]
            for r, score, state in zip(row.tolist(), scores[inside].tolist(), states.unbind(1), strict=True):
                self.rows[r].add(score, state.clone())
        return scores

    def _branching(self, doubt: Tensor, leaning: Tensor, free: Tensor) -> int:
        """The free label about which the circuits disagree most; of several, the one that is likeliest to be one."""
        score = torch.where(free, doubt + leaning, -1.0)
        return int(score.argmax())

    @staticmethod
    def _key(row: _Row, bound: float, depth: int) -> tuple[float, float]:
        """Deepest first until there is a state, then the best bound first."""
        return (-float(depth), -bound) if not row.best else (-bound, -float(depth))

    def _chosen(self) -> list[tuple[int, _Node]]:
        """The next nodes, shared out among the rows that are not settled."""
        active = []
        for r, row in enumerate(self.rows):
            kept = row.unsettled
            if len(kept) < len(row.open) or (row.best and kept and kept[0].key[0] == -kept[0].depth):
                for node in kept:
                    node.key = (*self._key(row, node.bound, node.depth), node.key[2])
                heapq.heapify(kept)
                row.open = kept
            if row.open and row.nodes < self.limits.nodes:
                active.append(r)
        chosen: list[tuple[int, _Node]] = []
        each = max(1, _NODES_AT_ONCE // max(1, len(active)))
        for r in active[:_NODES_AT_ONCE]:
            row = self.rows[r]
            for _ in range(min(each, len(row.open), self.limits.nodes - row.nodes)):
                chosen.append((r, heapq.heappop(row.open)))
                row.nodes += 1
        return chosen

    def _result(self) -> Found:
        labels, batch = self.fixed.shape
        states = torch.zeros((labels, self.k, batch), dtype=torch.float64, device=self.fixed.device)
        scores = torch.full((self.k, batch), NEGATIVE_INFINITY, dtype=torch.float64, device=self.fixed.device)
        bound = torch.full((batch,), NEGATIVE_INFINITY, dtype=torch.float64, device=self.fixed.device)
        empty = torch.zeros(batch, dtype=torch.bool, device=self.fixed.device)
        for r, row in enumerate(self.rows):
            for i, (score, state) in enumerate(row.best):
                states[:, i, r], scores[i, r] = state, score
            left = max((node.bound for node in row.open), default=NEGATIVE_INFINITY)
            bound[r] = max(left, row.floor)
            empty[r] = not row.best and not row.open
        return Found(states, scores, bound, empty)


def _slack(scores: Tensor) -> Tensor:
    return _TOLERANCE * (1 + scores.abs().nan_to_num(0.0, 0.0, 0.0))


def _slack_of(score: float) -> float:
    return _TOLERANCE * (1 + abs(score)) if abs(score) != float("inf") else 0.0
