"""A back end in plain Python, one path at a time: slow, independent of the others, and their referee.

A path takes one edge of every sum that it reaches. The value of a circuit is the sum over all its paths, its maximum
the largest path, a sample one of them. There are exponentially many, so this is for small circuits.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cache

import torch
from torch import Generator, Tensor

from semprola.engine import Literals, Plan
from semprola.engine.backends.base import Backend

INF = float("inf")
Path = tuple[frozenset[int], frozenset[int]]
"""The weights (indices) and the literals of a path."""


class PlainBackend(Backend):
    """Takes what the native one takes; "auto" never chooses it, since it is not in the list."""

    name = "plain"

    def is_present(self) -> bool:
        return True

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        return all(t.is_cpu and t.is_floating_point() for t in tensors)

    def evaluate(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, *, flows: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        value = leaves.new_full((leaves.shape[1],), -INF)
        edge_flows = leaves.new_zeros((plan.num_weights, leaves.shape[1]))
        leaf_flows = torch.zeros_like(leaves)
        for column in range(leaves.shape[1]):
            scored = scores(plan, weights, leaves, column)
            top = max(score for score, _ in scored)
            if top == -INF:
                continue
            total = sum(math.exp(score - top) for score, _ in scored)
            value[column] = top + math.log(total)
            for score, (used, literals) in scored:
                share = math.exp(score - top) / total
                edge_flows[list(used), column] += share
                leaf_flows[list(literals), column] += share
        if not flows:
            return value, None, None
        return value, None if weights is None else edge_flows, leaf_flows

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        value, literals = leaves.new_empty(leaves.shape[1]), torch.zeros_like(leaves)
        for column in range(leaves.shape[1]):
            score, (_, best) = max(scores(plan, weights, leaves, column), key=lambda pair: pair[0])
            value[column] = score
            literals[list(best), column] = 1.0
        return value, literals

    def sample(
        self, plan: Plan, weights: Tensor | None, literals: Literals, column: Tensor, generator: Generator | None
    ) -> Tensor:
        states = literals.leaves.new_zeros((plan.shape.num_variables, len(column)))
        for i, c in enumerate(column.tolist()):
            scored = scores(plan, weights, literals.leaves, c)
            top = max(score for score, _ in scored)
            chances = torch.tensor([math.exp(score - top) for score, _ in scored], dtype=torch.float64)
            _, (_, chosen) = scored[int(torch.multinomial(chances, 1, generator=generator))]
            uniform = torch.rand(plan.shape.num_variables, generator=generator, dtype=states.dtype)
            for v in range(plan.shape.num_variables):
                free = 2 * v not in chosen and 2 * v + 1 not in chosen
                one = bool(uniform[v] < literals.default[v, c]) if free else 2 * v + 1 in chosen
                states[v, i] = float(one)
        return states

    def rank(self, plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
        states = leaves.new_zeros((plan.shape.num_variables, k, leaves.shape[1]))
        values = leaves.new_full((k, leaves.shape[1]), -INF)
        for column in range(leaves.shape[1]):
            ordered = sorted(scores(plan, weights, leaves, column), key=lambda pair: -pair[0])
            for i, (score, (_, literals)) in enumerate(ordered[:k]):
                values[i, column] = score
                states[[literal // 2 for literal in literals if literal % 2], i, column] = 1.0
        return states, values

    def likelihood(
        self,
        plan: Plan,
        logits: Tensor,
        rows: Tensor,
        codes: Tensor | None,
        labels: int,
        cotangent: Tensor | None = None,
        *,
        value: bool = True,
        gradient: bool = False,
    ) -> tuple[Tensor | None, Tensor | None]:
        samples, (_, components, batch) = rows.shape[1], logits.shape
        values = logits.new_full((samples, components, batch), -INF)
        slopes = torch.zeros_like(logits)
        for s, c, b in itertools.product(range(samples), range(components), range(batch)):
            used = self._used(plan, rows[:, s, b] if codes is None else None, None if codes is None else codes[s, b])
            if used is None:
                continue
            outer = 1.0 if cotangent is None else float(cotangent[s, c, b])
            given = [float("nan")] * labels + rows[labels:, s, b].tolist()
            alive = self._possible(plan, given)
            values[s, c, b] = 0.0
            for group in groups(plan):
                mine = [w for w in group if w in used]
                if not mine:
                    continue
                open_ = [w for w in group if w in alive]
                numbers = {w: logit_of(plan, logits[:, c, b], w) for w in open_}
                top = max(numbers.values())
                total = sum(math.exp(x - top) for x in numbers.values())
                values[s, c, b] += numbers[mine[0]] - top - math.log(total)
                for w in open_:
                    row = row_of(plan, w)
                    if row is not None:
                        slopes[row, c, b] += outer * ((w == mine[0]) - math.exp(numbers[w] - top) / total)
        return values if value else None, slopes if gradient else None

    def support(self, plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
        some = torch.zeros(leaves.shape[1], dtype=torch.bool)
        flags = torch.zeros((plan.num_weights if edges else 0, leaves.shape[1]), dtype=torch.bool)
        for column in range(leaves.shape[1]):
            alive = {i for i in range(len(leaves)) if float(leaves[i, column]) > -INF}
            real = [used for used, literals in paths(plan) if literals <= alive]
            some[column] = bool(real)
            if edges == "active" and real:
                flags[list(real[0]), column] = True
            if edges == "possible":
                flags[sorted(possible_weights(plan, frozenset(alive))), column] = True
        return flags, some

    def encode(self, plan: Plan, rows: Tensor) -> Tensor:
        found = [self._used(plan, rows[:, column], None) for column in range(rows.shape[1])]
        most = max([1, *(len(used) for used in found if used is not None)])
        lists = [[-2] * most if used is None else sorted(used) + [-1] * (most - len(used)) for used in found]
        return torch.tensor(lists, dtype=torch.int32).reshape(len(lists), most)

    def _used(self, plan: Plan, row: Tensor | None, code: Tensor | None) -> frozenset[int] | None:
        """The weights of the path of a state, or None."""
        if code is not None:
            return None if -2 in code.tolist() else frozenset(w for w in code.tolist() if w >= 0)
        state = {2 * v + int(x) for v, x in enumerate(row.tolist())}
        return next((used for used, literals in paths(plan) if literals <= state), None)

    def _possible(self, plan: Plan, row: list[float]) -> frozenset[int]:
        alive = {2 * v + bit for v, x in enumerate(row) for bit in (0, 1) if math.isnan(x) or x == bit}
        return possible_weights(plan, frozenset(alive))


def scores(plan: Plan, weights: Tensor | None, leaves: Tensor, column: int) -> list[tuple[float, Path]]:
    """The log-value of every path."""
    leaf = leaves[:, column].tolist()
    weight = [0.0] * plan.num_weights if weights is None else weights[:, column].tolist()
    return [
        (sum(weight[w] for w in used) + sum(leaf[i] for i in literals), (used, literals))
        for used, literals in paths(plan)
    ]


@cache
def paths(plan: Plan) -> list[Path]:
    """All paths from the root."""
    return list(_paths_below(plan, plan.shape.root))


def _paths_below(plan: Plan, s: int) -> Iterator[Path]:
    for e in range(int(plan.shape.edge_start[s]), int(plan.shape.edge_start[s + 1])):
        weight = int(plan.edge_position[e]) - plan.num_fixed
        own = frozenset([weight]) if weight >= 0 else frozenset()
        for used, literals in _products(plan, _factors(plan, e)):
            yield own | used, literals


def _products(plan: Plan, factors: list[int]) -> Iterator[Path]:
    below: list[list[Path]] = [
        [(frozenset(), frozenset([f]))] if f < plan.num_leaves else list(_paths_below(plan, f - plan.num_leaves))
        for f in factors
    ]
    for parts in itertools.product(*below):
        yield frozenset().union(*(p[0] for p in parts)), frozenset().union(*(p[1] for p in parts))


def _factors(plan: Plan, e: int) -> list[int]:
    return plan.shape.factors[plan.shape.factor_start[e] : plan.shape.factor_start[e + 1]].tolist()


@cache
def possible_weights(plan: Plan, alive: frozenset[int]) -> frozenset[int]:
    """Weights of edges with a value above zero."""

    @cache
    def lives(s: int) -> bool:
        return any(edge_lives(e) for e in range(int(plan.shape.edge_start[s]), int(plan.shape.edge_start[s + 1])))

    def edge_lives(e: int) -> bool:
        return all(f in alive if f < plan.num_leaves else lives(f - plan.num_leaves) for f in _factors(plan, e))

    positions = ((e, int(plan.edge_position[e]) - plan.num_fixed) for e in range(plan.num_edges))
    return frozenset(w for e, w in positions if w >= 0 and edge_lives(e))


@cache
def groups(plan: Plan) -> list[list[int]]:
    """The weights of each sum that has some."""
    spans = itertools.pairwise(plan.shape.edge_start.tolist())
    found = [[int(plan.edge_position[e]) - plan.num_fixed for e in range(*span)] for span in spans]
    return [group for group in found if group and group[0] >= 0]


def row_of(plan: Plan, weight: int) -> int | None:
    """The logit of a weight, or None for the first of a pair."""
    group = next(group for group in groups(plan) if weight in group)
    pairs = sorted(pair for pair in groups(plan) if len(pair) == 2)
    if len(group) == 2:
        return None if weight == group[0] else pairs.index(group)
    return weight - len(pairs)


def logit_of(plan: Plan, logits: Tensor, weight: int) -> float:
    row = row_of(plan, weight)
    return 0.0 if row is None else float(logits[row])
