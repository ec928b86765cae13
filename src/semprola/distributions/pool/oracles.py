"""Maximises each circuit of a pool with a bonus on its literals: what dual decomposition asks again and again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.distributions.domain import Domain
from semprola.distributions.evaluator import Components, Evaluator
from semprola.distributions.independent import IndependentLabels
from semprola.distributions.numeric import log_sum_exp
from semprola.distributions.pool.side_by_side import Copies, all_satisfied
from semprola.distributions.spl import WeightedBranches
from semprola.engine import CircuitPlans, Literals, indicators, log_value, posterior
from semprola.engine.numbers import NEGATIVE_INFINITY


class Oracles:
    """The members of a pool over a flat batch, in double precision and without derivatives.

    Args:
        weights: their weights w_j in the pool [circuits].
        mentions: whether a circuit says anything about a label [circuits, labels].
        log_partitions: log Z_j [circuits, batch], before anything is fixed by a search.
    """

    def __init__(
        self, evaluators: Sequence[Evaluator], weights: Tensor, mentions: Tensor, log_partitions: Tensor
    ) -> None:
        self.evaluators, self.weights, self.mentions = list(evaluators), weights, mentions
        self.log_partitions = log_partitions

    @staticmethod
    def of(evaluators: Sequence[Evaluator], weights: Tensor, mentions: Tensor, plans: CircuitPlans) -> Oracles:
        """Oracles of the members as they are; labels that only their own scores decide count as mentioned."""
        with torch.no_grad():
            double = [doubled(evaluator) for evaluator in evaluators]
            log_z = torch.stack([evaluator.log_partition for evaluator in double])
            said = mentions.clone()
            for row, evaluator in zip(said, double, strict=True):
                if not isinstance(evaluator.components, IndependentLabels):
                    row[:] = True
            said[0, ~said.any(0)] = True
            known = double, weights.detach().double(), said, log_z
            parts = [evaluator.components for evaluator in double]
            if all(isinstance(part, IndependentLabels) and part.count == 1 and not part._is_extreme for part in parts):
                return IndependentOracles(*known, plans)
            return Oracles(*known)

    @property
    def batch(self) -> int:
        """Number of rows."""
        return self.log_partitions.shape[1]

    def select(self, index: Tensor, fixed: Tensor | None = None) -> Oracles:
        """The same for some rows, by flat index, with labels fixed to 0 or 1 (NaN: free) [labels, rows]."""
        chosen = [evaluator.select(index) for evaluator in self.evaluators]
        if fixed is not None:
            chosen = [evaluator.within(evaluator.domain.observe(fixed)[0]) for evaluator in chosen]
        return Oracles(chosen, self.weights, self.mentions, self.log_partitions[:, index])

    @property
    def as_sum(self) -> tuple[Tensor, Tensor] | None:
        """Log-odds θ [labels, batch] and c [batch] if the score of every y is c + Σ θ_l y_l; None otherwise."""
        return None

    def starting_bonus(self) -> Tensor:
        """A bonus [circuits, labels, batch] that sums to zero and moves log-odds to the circuits that mention a label.

        A circuit in which a label is free can only loosen the bound.
        """
        rows = []
        for evaluator in self.evaluators:
            parts = evaluator.components
            odds = parts.odds[:, : self.batch] if isinstance(parts, IndependentLabels) and parts.count == 1 else None
            rows.append(torch.zeros(self.mentions.shape[1], self.batch).double() if odds is None else odds)
        return self._gathered(self.weights[:, None, None].to(rows[0].device) * torch.stack(rows))

    def _gathered(self, pooled: Tensor) -> Tensor:
        """The bonus that gathers log-odds [circuits, labels, batch] in the circuits that mention the label."""
        weights, said = (each.to(pooled.device) for each in (self.weights[:, None, None], self.mentions[:, :, None]))
        free = (pooled * ~said).sum(0)
        share = weights * said / (weights * said).sum(0)
        return torch.where(said, free * share, -pooled)

    def best(self, bonus: Tensor) -> tuple[Tensor, Tensor]:
        """Each circuit's best state [circuits, labels, batch], and Σ_j max_y (w_j log p_j(y) + bonus_j · y) [batch].

        For members that are mixtures, the states are candidates and the sum is an upper bound.
        """
        states, total = [], torch.zeros_like(self.log_partitions[0])
        for evaluator, weight, own, log_z in zip(
            self.evaluators, self.weights, bonus, self.log_partitions, strict=True
        ):
            tilt = (own / weight)[:, None]
            found, bounds = evaluator.components.tilted(torch.zeros_like(tilt), tilt).best()
            each = evaluator.log_mixing + bounds
            total = total + weight * (log_sum_exp(each, 0) - log_z)
            states.append(found[:, 0] if found.shape[1] == 1 else _likeliest(found, each))
        return torch.stack(states), total

    def leaning(self, bonus: Tensor, temperature: Tensor) -> Tensor:
        """How often each label is one in states drawn at a temperature [circuits, labels, batch].

        The states of circuit j are drawn from exp((w_j log p_j(y) + bonus_j · y) / temperature), where the temperature
        is [batch]. It is the derivative of a smooth version of what `best` maximises.
        """
        found = []
        for evaluator, weight, own in zip(self.evaluators, self.weights, bonus, strict=True):
            parts: Any = evaluator.components
            plan, columns = parts.plan(explicit=parts.domain.needs_explicit), parts.count
            scale = (weight / temperature).repeat(columns)
            zeros, ones = parts.observed_scores()
            literals = Literals.of(plan, zeros * scale, ones * scale + (own / temperature).repeat(1, columns))
            weights = parts.weights
            shape = (plan.num_weights, len(scale))
            weights = literals.leaves.new_zeros(shape) if weights is None else weights * scale
            value = log_value(plan, weights, literals.leaves) + literals.constant if columns > 1 else None
            _, flows = posterior(plan, weights, literals.leaves)
            ones_of = literals.probability_of_one(flows)
            if value is not None:
                each = evaluator.log_mixing + (value / scale).view(columns, -1)
                ones_of = (ones_of.unflatten(1, (columns, -1)) * torch.softmax(each, 0)).sum(1)
            found.append(ones_of)
        return torch.stack(found)

    def literal_bounds(self, bonus: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor] | None:
        """No state with label l at 0 (or 1) has a larger score than this [labels, batch]; None if that is not known."""
        return None

    def size_of_scores(self) -> Tensor:
        """Roughly how much a label or a branch matters to the score [batch]."""
        total = torch.zeros_like(self.log_partitions[0])
        for evaluator, weight in zip(self.evaluators, self.weights, strict=True):
            parts: Any = evaluator.components
            zeros, ones = parts.observed_scores()
            difference = (ones - zeros).nan_to_num(0.0, 0.0, 0.0).abs()
            numbers = difference if parts.weights is None else parts.weights.nan_to_num(0.0, 0.0, 0.0).abs()
            total = total + weight * numbers.mean(0).view(parts.count, -1).mean(0)
        return total / len(self.evaluators)

    def scores(self, y: Tensor) -> Tensor:
        """Σ_j w_j log p_j(y) [samples, batch] of y [labels, samples, batch]; -inf where a circuit is violated."""
        total = torch.zeros(y.shape[1:], dtype=torch.float64, device=y.device)
        for evaluator, weight, log_z in zip(self.evaluators, self.weights, self.log_partitions, strict=True):
            total = total + weight * (evaluator.log_probs(y.double()) + evaluator.log_partition - log_z)
        return total


class IndependentOracles(Oracles):
    """Oracles of independent labels, for all circuits in one pass."""

    def __init__(
        self,
        evaluators: Sequence[Evaluator],
        weights: Tensor,
        mentions: Tensor,
        log_partitions: Tensor,
        plans: CircuitPlans,
    ) -> None:
        super().__init__((), weights, mentions, log_partitions)
        self.plans = plans
        parts: list[Any] = [evaluator.components for evaluator in evaluators]
        share = weights[:, None, None].to(log_partitions.device)
        self.odds = share * torch.stack([part.odds for part in parts])
        each = [part.observed_scores() for part in parts]
        self.zeros, self.ones = (share * torch.stack([pair[value] for pair in each]) for value in (0, 1))
        mixing = torch.stack([evaluator.log_mixing[0] for evaluator in evaluators])
        self.offset = (share[:, 0] * (mixing - log_partitions)).sum(0)
        self.of_zeros = self.offset + (share * torch.stack([part.scores()[0] for part in parts])).sum((0, 1))
        self.explicit = any(evaluator.domain.needs_explicit for evaluator in evaluators)

    def select(self, index: Tensor, fixed: Tensor | None = None) -> Oracles:
        new: IndependentOracles = object.__new__(IndependentOracles)
        new.__dict__.update(self.__dict__, log_partitions=self.log_partitions[:, index])
        new.offset, new.of_zeros = self.offset[index], self.of_zeros[index]
        new.odds, new.zeros, new.ones = (each[:, :, index] for each in (self.odds, self.zeros, self.ones))
        if fixed is not None:
            no_zero, no_one = indicators(fixed, torch.float64)
            new.zeros, new.ones, new.explicit = new.zeros + no_zero, new.ones + no_one, True
        return new

    @property
    def as_sum(self) -> tuple[Tensor, Tensor] | None:
        return self.odds.sum(0), self.of_zeros

    def starting_bonus(self) -> Tensor:
        return self._gathered(self.odds)

    def size_of_scores(self) -> Tensor:
        return (self.ones - self.zeros).nan_to_num(0.0, 0.0, 0.0).abs().mean((0, 1))

    def best(self, bonus: Tensor) -> tuple[Tensor, Tensor]:
        states, total = self._copies(bonus).best()
        return states, total + self.offset

    def leaning(self, bonus: Tensor, temperature: Tensor) -> Tensor:
        return self._copies(bonus, temperature).shares()

    def literal_bounds(self, bonus: Tensor, temperature: Tensor) -> tuple[Tensor, Tensor] | None:
        zero, one = self._copies(bonus, temperature).literal_bounds()
        return temperature * zero + self.offset, temperature * one + self.offset

    def scores(self, y: Tensor) -> Tensor:
        rows = y[None] > 0.5
        each = torch.where(rows, self.ones[:, :, None], self.zeros[:, :, None]).sum((0, 1)) + self.offset
        inside = all_satisfied(self.plans, y.flatten(1)).view(y.shape[1:])
        return each.masked_fill(~inside, NEGATIVE_INFINITY)

    def _copies(self, bonus: Tensor, temperature: Tensor | None = None) -> Copies:
        zeros, ones = self.zeros, self.ones + bonus
        if temperature is not None:
            zeros, ones = zeros / temperature, ones / temperature
        return Copies(self.plans, zeros, ones, explicit=self.explicit)


def doubled(evaluator: Evaluator) -> Evaluator:
    """The same distribution in double precision and without derivatives."""
    parts = evaluator.components
    domain = parts.domain
    observed = None if domain.observed is None else domain.observed.double()
    like = torch.empty(0, dtype=torch.float64, device=domain.device)
    wide = Domain(domain.plans, like, domain.batch, observed, domain.has_evidence)
    made: Components = parts
    if isinstance(parts, IndependentLabels):
        made = IndependentLabels(wide, parts.odds.detach().double(), parts.count)
    elif isinstance(parts, WeightedBranches):
        made = WeightedBranches(wide, parts.logits.detach().double(), parts.count, parts._alive)
    return Evaluator(made, evaluator.log_mixing.detach().double())


def _likeliest(found: Tensor, each: Tensor) -> Tensor:
    """The candidate [labels, batch] of the component with the largest bound."""
    component = each.argmax(0) % found.shape[1]
    return found.gather(1, component.expand(len(found), 1, -1))[:, 0]
