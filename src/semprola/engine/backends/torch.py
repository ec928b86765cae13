"""The torch back end: evaluates circuits on any device, as many columns at once as the memory budget allows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from semprola.engine.backends import torch_passes as passes
from semprola.engine.backends.base import Backend
from semprola.engine.backends.torch_chunks import by_columns, columns_at_once
from semprola.engine.backends.torch_likelihood import dense, dense_both, leaves_of
from semprola.engine.backends.torch_ranking import merge_lists
from semprola.engine.literals import Literals
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan, Step
from semprola.engine.softmax import log_softmax, softmax_slopes


class TorchBackend(Backend):
    """Takes tensors of any kind; see :class:`Backend` for what the functions do."""

    name = "torch"

    def is_present(self) -> bool:
        return True

    def takes(self, tensors: Sequence[Tensor]) -> bool:
        return True

    def evaluate(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, *, flows: bool
    ) -> tuple[Tensor, Tensor | None, Tensor | None]:
        def value_alone(leaves: Tensor, weights: Tensor | None) -> Tensor:
            return passes.upward(plan, weights, leaves, passes.total)[plan.root_row].clone()

        def value_and_flows(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
            value, shares = _shares(plan, weights, leaves, passes.total)
            edge_flows, leaf_flows = passes.downward(plan, shares, value > NEGATIVE_INFINITY)
            return value, weighted(plan, weights, edge_flows), leaf_flows

        if not flows:
            return by_columns(plan, value_alone, leaves, weights), None, None
        value, edges, literals = by_columns(plan, value_and_flows, leaves, weights)
        return value, None if weights is None else edges, literals

    def tangent(
        self, plan: Plan, weights: Tensor | None, leaves: Tensor, d_weights: Tensor | None, d_leaves: Tensor
    ) -> tuple[Tensor | None, Tensor]:
        def part(
            leaves: Tensor, weights: Tensor | None, d_leaves: Tensor, d_weights: Tensor | None
        ) -> tuple[Tensor, Tensor]:
            value, shares = _shares(plan, weights, leaves, passes.total)
            root = (value > NEGATIVE_INFINITY).to(shares.dtype)
            flows, _ = passes.downward(plan, shares.clone(), root)
            d_flows, d_leaf_flows = passes.tangent(plan, shares, flows, d_weights, d_leaves, root)
            return weighted(plan, weights, d_flows), d_leaf_flows

        edges, literals = by_columns(plan, part, leaves, weights, d_leaves, d_weights)
        return None if weights is None else edges, literals

    def maximize(self, plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
        def part(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
            value, shares = _shares(plan, weights, leaves, passes.best)
            return value, passes.downward(plan, shares)[1]

        result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves, weights)
        return result

    def sample(
        self, plan: Plan, weights: Tensor | None, literals: Literals, column: Tensor, generator: Generator | None
    ) -> Tensor:
        # takes `step` columns at a time, and draws at most `step` of their samples at a time
        leaves, step = literals.leaves, columns_at_once(plan, literals.leaves)
        leaf_flows = leaves.new_empty((plan.num_leaves, len(column)))
        for first in range(0, leaves.shape[1], step):
            some = slice(first, first + step)
            own = None if weights is None else weights[:, some]
            _, shares = _shares(plan, own, leaves[:, some], passes.total)
            wanted = torch.nonzero((column >= first) & (column < first + step))[:, 0]
            for part in wanted.split(step):
                leaf_flows[:, part] = _draw(plan, shares, column[part] - first, generator)
        return fill(leaf_flows, literals, column, generator)

    def rank(self, plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
        return merge_lists(plan, weights, leaves, k)

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
        shape = (rows.shape[1], *logits.shape[1:])
        if codes is None:
            codes = torch.empty((shape[0], shape[2], 0), dtype=torch.int32, device=logits.device)
        with torch.no_grad():
            if not gradient:
                return dense(plan, logits, rows, codes, labels, self.support) if value else None, None
            outer = logits.new_ones(shape) if cotangent is None else cotangent
            values, slopes = dense_both(plan, logits, rows, codes, outer, labels, self.support)
            return values if value else None, slopes

    def support(self, plan: Plan, leaves: Tensor, edges: str | None) -> tuple[Tensor, Tensor]:
        def part(leaves: Tensor) -> tuple[Tensor, Tensor]:
            rows, alive = passes.support(plan, leaves, keep=edges is not None)
            some = rows[plan.root_row] == 0
            if alive is None:
                return torch.empty_like(rows[:0], dtype=torch.bool), some
            if edges == "active":
                # for a full state, at most one edge of a deterministic sum is possible, so these are shares
                alive, _ = passes.downward(plan, alive, some)
            return alive[plan.num_fixed :] > 0, some

        result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves)
        return result

    def marginal(self, plan: Plan, logits: Tensor, observed: Tensor, *, gradient: bool) -> tuple[Tensor, Tensor | None]:
        # as in the base class, without what nobody asks for: the flow into literals
        def part(logits: Tensor, leaves: Tensor) -> tuple[Tensor, Tensor]:
            shape, flat = logits.shape[1:], logits.flatten(1)
            weights = log_softmax(plan, flat, differentiable=False)
            columns = weights.shape[1]
            if not gradient:
                values = leaves.new_empty((plan.num_rows, columns))
                value = passes.upward(plan, weights, leaves, passes.total, values=values)[plan.root_row]
                return value.clone().view(shape), logits[:0]
            # one piece of memory for both: glibc keeps twice the largest piece that it has freed, and gives the rest
            # back to the system, so that a step with many smaller pieces pays for fresh pages every time
            sizes = [plan.num_rows, plan.num_edges]
            values, shares = leaves.new_empty((sum(sizes), columns)).split(sizes)
            passes.upward(plan, weights, leaves, passes.total, values=values, shares=shares)
            value = values[plan.root_row].clone()
            flows = passes.through_edges(plan, shares, value > NEGATIVE_INFINITY)
            slopes = softmax_slopes(plan, flat, flows[plan.num_fixed :])
            return value.view(shape), slopes.unflatten(1, shape)

        leaves = Literals.of_observed(plan, observed, logits.dtype).leaves
        value, slopes = by_columns(plan, part, logits, leaves, copies=logits.shape[1])
        return value, slopes if gradient else None

    def encode(self, plan: Plan, rows: Tensor) -> Tensor:
        used, some = self.support(plan, leaves_of(rows), "active")
        column, weight = torch.nonzero(used.T, as_tuple=True)
        counts = torch.bincount(column, minlength=rows.shape[1])
        most = max(1, int(counts.max())) if len(counts) else 1
        codes = torch.full((rows.shape[1], most), -1, dtype=torch.int32, device=rows.device)
        first = counts.cumsum(0) - counts
        codes[column, torch.arange(len(column), device=rows.device) - first[column]] = weight.to(torch.int32)
        codes[~some] = -2
        return codes


# used with all back ends ----------------------------------------------------------------------------------------------


def choose_branches(plan: Plan, weights: Tensor | None, leaves: Tensor) -> tuple[Tensor, Tensor]:
    """Bounds [columns] and the flow into each literal, for a plan with choices; all copies of a sum choose alike."""

    def part(leaves: Tensor, weights: Tensor | None) -> tuple[Tensor, Tensor]:
        value, shares = _shares(plan, weights, leaves, passes.total)
        return value, passes.downward_choosing(plan, shares)

    result: tuple[Tensor, Tensor] = by_columns(plan, part, leaves, weights)
    return result


def choose_locally(plan: Plan, weights: Tensor, leaves: Tensor) -> Tensor:
    """Flow into each literal [2 variables, columns] when every sum takes its edge of largest weight."""
    offset = plan.num_fixed

    def part(leaves: Tensor, weights: Tensor) -> Tensor:
        def local(step: Step, edges: Tensor, sums: Tensor, shares: Tensor | None) -> None:
            assert shares is not None
            own = weights[step.edges.start - offset : step.edges.stop - offset].view_as(edges)
            passes.best(step, edges, sums, None)
            shares.copy_(passes.one_hot_max(torch.where(edges == NEGATIVE_INFINITY, edges, own)))

        shares = leaves.new_empty((plan.num_edges, leaves.shape[1]))
        passes.upward(plan, weights, leaves, local, shares=shares)
        return passes.downward(plan, shares)[1]

    result: Tensor = by_columns(plan, part, leaves, weights)
    return result


def differentiable(plan: Plan, weights: Tensor | None, leaves: Tensor) -> Tensor:
    """Log-values [columns] by operations that can be differentiated any number of times.

    Slower than `evaluate`; used for derivatives of third and higher order.
    """
    values = torch.cat([leaves, leaves.new_zeros((plan.num_rows - plan.num_leaves, leaves.shape[1]))])
    for step in plan.on(leaves.device).steps:
        factors = values.index_select(0, step.factors)
        edges = leaves.new_zeros((step.sums * step.fan_in, leaves.shape[1]))
        edges = edges.index_add(0, step.edge_of_factor(), factors)
        if weights is not None and step.edges.start >= plan.num_fixed:
            own = weights[step.edges.start - plan.num_fixed : step.edges.stop - plan.num_fixed]
            edges = edges + own
        edges = edges.unflatten(0, (step.sums, step.fan_in))
        # the derivative of logsumexp is NaN where everything is -inf, so impossible edges are masked
        dead = edges.detach() == NEGATIVE_INFINITY
        sums = edges.masked_fill(dead, torch.finfo(edges.dtype).min).logsumexp(1)
        sums = sums.masked_fill(dead.all(1), NEGATIVE_INFINITY)
        values = values.slice_scatter(sums, 0, step.rows.start, step.rows.stop)
    return values[plan.root_row]


def _shares(plan: Plan, weights: Tensor | None, leaves: Tensor, rule: passes.Rule) -> tuple[Tensor, Tensor]:
    """Log-values [columns] and shares of all edges [E, columns]."""
    shares = leaves.new_empty((plan.num_edges, leaves.shape[1]))
    values = passes.upward(plan, weights, leaves, rule, shares=shares)
    return values[plan.root_row].clone(), shares


def weighted(plan: Plan, weights: Tensor | None, flows: Tensor) -> Tensor:
    if weights is None:
        return torch.empty_like(flows[:0])
    # an operator's result must own its memory, so a slice of another tensor is copied
    return flows[plan.num_fixed :].clone() if plan.num_fixed else flows


def _draw(plan: Plan, shares: Tensor, column: Tensor, generator: Generator | None) -> Tensor:
    """0/1 for the literals of a sample of each listed column [2 variables, samples]."""
    drawn = shares.new_empty((plan.num_edges, len(column)))
    for step in plan.on(shares.device).steps:
        part = shares[step.edges].index_select(1, column).unflatten(0, (step.sums, step.fan_in))
        if step.fan_in > 1:
            part = passes.draw(part, _uniform((step.sums, 1, len(column)), part, generator))
        drawn[step.edges] = part.flatten(0, 1)
    return passes.downward(plan, drawn)[1]


def fill(leaf_flows: Tensor, literals: Literals, column: Tensor, generator: Generator | None) -> Tensor:
    """States [variables, samples] from their literals, with values drawn for the labels that are missing."""
    zero, one = leaf_flows[0::2], leaf_flows[1::2]
    absent = (zero + one) < 0.5
    default = literals.default.index_select(1, column)
    filled = (_uniform(tuple(default.shape), default, generator) < default).to(one.dtype)
    return torch.where(absent, filled, one)


def _uniform(shape: tuple[int, ...], like: Tensor, generator: Generator | None) -> Tensor:
    return torch.rand(shape, dtype=like.dtype, device=like.device, generator=generator)
