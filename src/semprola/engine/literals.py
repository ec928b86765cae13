"""Scores of the literals, and how labels that a branch does not mention are accounted for."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.engine.plan import Plan


@dataclass(frozen=True)
class Literals:
    """Log-scores of the literals of every variable, shifted so that an unmentioned variable counts as a factor of one.

    With q the scores, a free variable adds q(0) + q(1) (or their maximum) to every branch that does not mention it, and
    a zero-suppressed one q(0). Taking these factors out beforehand lets the circuit be evaluated without smoothing: for
    a zero-suppressed diagram, log Z = Σ log q(0) + the diagram's log-sum of q(1) / q(0) over its high arcs.

    Attributes:
        leaves: values for the plan's leaves [2 variables, columns].
        constant: what was taken out [columns].
        default: probability that an unmentioned variable is one [variables, columns].
    """

    leaves: Tensor
    constant: Tensor
    default: Tensor

    @classmethod
    def of(cls, plan: Plan, zeros: Tensor, ones: Tensor, *, maximize: bool = False) -> Literals:
        """Prepare scores for a plan.

        Args:
            plan: the plan that the leaves are for; it says which variables every branch mentions.
            zeros: log-scores of "variable is 0" [variables, columns].
            ones: log-scores of "variable is 1" [variables, columns].
            maximize: prepare for a maximum instead of a sum.
        """
        both = torch.maximum(zeros, ones) if maximize else _log_add(zeros, ones)
        default = (ones > zeros).to(ones.dtype) if maximize else torch.exp(ones - _finite(both))
        suppressed, mentioned = plan.masks(ones.device)
        both = torch.where(suppressed, zeros, both).masked_fill(mentioned, 0.0)
        default = default.masked_fill(suppressed | mentioned, 0.0)
        # an impossible variable (both scores -inf) keeps its literals at -inf and is counted out by the constant
        shift = _finite(both)
        leaves = torch.stack([zeros - shift, ones - shift], dim=1).flatten(0, 1)
        return cls(leaves, both.sum(0), default)

    @classmethod
    def of_odds(cls, plan: Plan, odds: Tensor) -> Literals:
        """Prepare independent labels with these log-odds [variables, columns], for a sum.

        The same as :meth:`of` with log-sigmoids as scores, but it skips what is known to be 0 or 1.
        """
        zeros = F.logsigmoid(-odds)
        if plan.all_suppressed:
            blank = torch.zeros_like(odds)
            return cls(torch.stack([blank, odds], dim=1).flatten(0, 1), zeros.sum(0), blank)
        ones = F.logsigmoid(odds)
        suppressed, mentioned = plan.masks(odds.device)
        leaves = torch.stack([zeros.masked_fill(suppressed, 0.0), torch.where(suppressed, odds, ones)], dim=1)
        default = torch.sigmoid(odds).masked_fill(suppressed | mentioned, 0.0)
        return cls(leaves.flatten(0, 1), zeros.masked_fill(~suppressed, 0.0).sum(0), default)

    @classmethod
    def of_observed(cls, plan: Plan, rows: Tensor, dtype: torch.dtype) -> Literals:
        """Prepare literals without scores of their own, for a sum: 0 if the observation allows them, else -inf.

        Args:
            plan: the plan that the leaves are for.
            rows: observed values, NaN where not observed [variables, columns].
            dtype: of the result.
        """
        if not plan.all_mentioned:
            return cls.of(plan, *indicators(rows, dtype))
        # above zero where a literal is allowed; masks would take several times as long
        known = torch.nan_to_num(rows.to(dtype).contiguous(), nan=0.5)
        allowed = torch.stack([0.75 - known, known - 0.25], dim=1).flatten(0, 1)
        leaves = F.threshold(allowed, 0.0, NEGATIVE_INFINITY).clamp(max=0.0)
        return cls(leaves, leaves.new_zeros(rows.shape[1]), leaves.new_zeros(()).expand(rows.shape))

    def probability_of_one(self, leaf_flows: Tensor) -> Tensor:
        """Marginals [variables, columns] from the flow into each literal [2 variables, columns]."""
        zero, one = leaf_flows[0::2], leaf_flows[1::2]
        unmentioned = (1.0 - zero - one).clamp(min=0.0)
        probability = one + unmentioned * self.default
        # certain values are exactly 0 or 1: rounding must not give an impossible value any probability
        certain = self.leaves == NEGATIVE_INFINITY
        return probability.masked_fill(certain[0::2], 1.0).masked_fill(certain[1::2], 0.0)


def indicators(rows: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Log-scores (zeros, ones) that are 0 where a value is allowed and -inf where it is not.

    Args:
        rows: observed values, NaN where not observed [variables, columns].
        dtype: of the result.
    """
    # keep the layout of the rows (often transposed for batches): mixing layouts takes several times as long
    blank = torch.zeros_like(rows, dtype=dtype)
    return blank.masked_fill(rows == 1, NEGATIVE_INFINITY), blank.masked_fill(rows == 0, NEGATIVE_INFINITY)


def _finite(values: Tensor) -> Tensor:
    return values.masked_fill(values == NEGATIVE_INFINITY, 0.0)


def _log_add(a: Tensor, b: Tensor) -> Tensor:
    """log(exp a + exp b), with finite derivatives of all orders where one is -inf, and zero ones where both are."""
    no_a, no_b = a == NEGATIVE_INFINITY, b == NEGATIVE_INFINITY
    total = torch.logaddexp(a.masked_fill(no_a | no_b, 0.0), b.masked_fill(no_a | no_b, 0.0))
    total = torch.where(no_b, a, torch.where(no_a, b, total))
    return total.masked_fill(no_a & no_b, NEGATIVE_INFINITY)
