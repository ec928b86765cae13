"""The k best paths through a circuit, by torch."""

from __future__ import annotations

import torch
from torch import Tensor

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan, Step

_MOST_NUMBERS = 2**25


def merge_lists(plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """See `Backend.rank`. Every row keeps a list of its k best values.

    A product merges the lists of its sums, two at a time; a sum merges the lists of its edges.

    Args:
        weights: [W, columns] or None.
        leaves: [2 variables, columns]
    """
    plan, carried = plan.binary
    if weights is not None:
        weights = weights[carried.to(weights.device)]
    step = max(1, _MOST_NUMBERS // max(1, plan.num_edges * k * k))
    parts = [
        _Lists(plan, None if weights is None else weights[:, i : i + step], leaves[:, i : i + step], k).run()
        for i in range(0, max(1, leaves.shape[1]), step)
    ]
    return torch.cat([part[0] for part in parts], dim=2), torch.cat([part[1] for part in parts], dim=1)


class _Lists:
    def __init__(self, plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> None:
        self.plan, self.weights, self.leaves, self.k = plan, weights, leaves, k
        self.columns = leaves.shape[1]
        self.lists = leaves.new_full((plan.num_rows, k, self.columns), NEGATIVE_INFINITY)
        self.edge_pick: dict[int, Tensor] = {}
        self.sum_pick: dict[int, Tensor] = {}

    def run(self) -> tuple[Tensor, Tensor]:
        steps = self.plan.on(self.leaves.device).steps
        for i, step in enumerate(steps):
            self._merge(i, step)
        return self._trace(steps), self.lists[self.plan.root_row]

    def _merge(self, i: int, step: Step) -> None:
        k, columns = self.k, self.columns
        first, second, literal_sum = self._factors(step)
        if self.weights is not None and step.edges.start >= self.plan.num_fixed:
            offset = self.plan.num_fixed
            literal_sum = literal_sum + self.weights[step.edges.start - offset : step.edges.stop - offset]
        pairs = (self._list(first)[:, :, None] + self._list(second)[:, None, :]).flatten(1, 2)
        best, pick = pairs.topk(k, dim=1)
        self.edge_pick[i] = pick
        edges = (best + literal_sum[:, None]).view(step.sums, step.fan_in * k, columns)
        best, pick = edges.topk(k, dim=1)
        self.sum_pick[i] = pick
        self.lists[step.rows] = best

    def _trace(self, steps: list[Step]) -> Tensor:
        """Follow, for each of the k results, which entry of each row's list it uses (-1: none)."""
        plan, k = self.plan, self.k
        rank = torch.full((plan.num_rows, k, self.columns), -1, dtype=torch.int64, device=self.leaves.device)
        rank[plan.root_row] = torch.arange(k, device=rank.device)[:, None]
        states = self.leaves.new_zeros((plan.shape.num_variables, k, self.columns))
        for i in range(len(steps) - 1, -1, -1):
            step = steps[i]
            used, result, column = torch.nonzero(rank[step.rows] >= 0, as_tuple=True)
            entry = self.sum_pick[i][used, rank[step.rows][used, result, column], column]
            edge = used * step.fan_in + entry // k
            pair = self.edge_pick[i][edge, entry % k, column]
            first, second, _ = self._factors(step)
            for factor, which in ((first, pair // k), (second, pair % k)):
                has = factor[edge] >= 0
                rank[factor[edge[has]], result[has], column[has]] = which[has]
            offsets, literals = self._literals(step)
            repeats = offsets.diff()[edge]
            within = torch.arange(int(repeats.sum()), device=rank.device)
            within -= torch.repeat_interleave(repeats.cumsum(0) - repeats, repeats)
            leaf = literals[torch.repeat_interleave(offsets[edge], repeats) + within]
            state = torch.repeat_interleave(result, repeats)
            where = torch.repeat_interleave(column, repeats)
            states[leaf // 2, state, where] = (leaf % 2).to(states.dtype)
        return states

    def _list(self, factor: Tensor) -> Tensor:
        """Lists of the given rows [edges, k, columns]; a missing factor is the list (1, 0, 0, …) in log space."""
        lists = self.lists[factor.clamp(min=0)]
        neutral = self.lists.new_full((self.k, 1), NEGATIVE_INFINITY)
        neutral[0] = 0.0
        return torch.where((factor >= 0)[:, None, None], lists, neutral)

    def _factors(self, step: Step) -> tuple[Tensor, Tensor, Tensor]:
        """The two sums of each edge (-1: none) and the sum of its literals' values [edges, columns]."""
        count = step.sums * step.fan_in
        edge = step.edge_of_factor()
        is_sum = step.factors >= self.plan.num_leaves
        sums, owner = step.factors[is_sum], edge[is_sum]
        rank = torch.arange(len(owner), device=owner.device) - torch.searchsorted(owner, owner)
        pair = torch.full((count, 2), -1, dtype=torch.int64, device=edge.device)
        pair[owner, rank] = sums
        literal_sum = self.leaves.new_zeros((count, self.columns))
        literal_sum.index_add_(0, edge[~is_sum], self.leaves[step.factors[~is_sum]])
        return pair[:, 0], pair[:, 1], literal_sum

    def _literals(self, step: Step) -> tuple[Tensor, Tensor]:
        count = step.sums * step.fan_in
        edge = step.edge_of_factor()
        is_literal = step.factors < self.plan.num_leaves
        counts = torch.bincount(edge[is_literal], minlength=count)
        return torch.cat([counts.new_zeros(1), counts.cumsum(0)]), step.factors[is_literal]
