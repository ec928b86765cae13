"""Losses from a compiled constraint: semantic loss, neuro-symbolic entropy, and the expected regret of decisions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler.sources import Source
from semprola.distributions import ConstrainedDistribution, ProductDistribution
from semprola.distributions.names import as_rows
from semprola.engine import CircuitPlans
from semprola.nn.base import as_circuit
from semprola.nn.constraint import check_logits

_REDUCTIONS = ("mean", "sum", "none")


class Loss(nn.Module):
    """A loss of rows, reduced over the batch.

    Args:
        reduction: "mean", "sum" or "none" over the batch.
    """

    def __init__(self, reduction: str) -> None:
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")
        self.reduction = reduction

    def reduced(self, values: Tensor) -> Tensor:
        """The mean or sum of the losses of rows [*batch], or these losses."""
        return values if self.reduction == "none" else values.mean() if self.reduction == "mean" else values.sum()


class _CircuitLoss(Loss):
    """A loss of independent labels' logits with respect to a compiled constraint."""

    def __init__(
        self,
        constraint: Source,
        reduction: str = "mean",
        *,
        timeout: float | None = None,
        max_nodes: int | None = None,
        memory: int | str | None = None,
    ) -> None:
        super().__init__(reduction)
        self.plans = CircuitPlans(as_circuit(constraint, None, timeout, max_nodes, memory))
        self.plans.prepare_constraint()

    @property
    def circuit(self) -> Circuit:
        """The compiled constraint."""
        return self.plans.circuit

    def distribution(self, logits: Tensor, given: Any = None) -> ProductDistribution:
        """Independent labels with these log-odds [*batch, labels], conditioned on the constraint."""
        check_logits(logits, self.circuit.labels)
        return ProductDistribution.of_rows(self.plans, logits, given)

    def forward(self, logits: Tensor, given: Any = None) -> Tensor:
        """The loss of label log-odds [*batch, labels] (and inputs [*batch, given])."""
        return self.reduced(self._values(self.distribution(logits, given)))

    def _values(self, p: ProductDistribution) -> Tensor:
        raise NotImplementedError

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"{self.circuit!r}, reduction={self.reduction!r}"


class SemanticLoss(_CircuitLoss):
    """Semantic loss (Xu et al., 2018): -log of the probability that independent labels satisfy the constraint.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, or the path of a file.
        reduction: "mean", "sum" or "none" over the batch.
        timeout, max_nodes, memory: the budget of a compilation, see :func:`semprola.compile`.

    Example:
        >>> import torch, semprola as sp
        >>> loss = sp.losses.SemanticLoss(sp.one_hot(["a", "b"]))
        >>> round(loss(torch.zeros(1, 2)).item(), 4)  # exactly one of two fair coins: probability 1/2
        0.6931
    """

    def _values(self, p: ProductDistribution) -> Tensor:
        return -p.log_partition


class NeSyEntropy(_CircuitLoss):
    """Neuro-symbolic entropy (Ahmed et al., 2022): entropy of independent labels given the constraint.

    It is added to :class:`SemanticLoss` to make predictions decide between the models.

    Args:
        constraint: a formula, its text, a family, a compiled circuit, or the path of a file.
        reduction: "mean", "sum" or "none" over the batch.
        timeout, max_nodes, memory: the budget of a compilation, see :func:`semprola.compile`.

    Example:
        >>> import torch, semprola as sp
        >>> loss = sp.losses.NeSyEntropy(sp.one_hot(["a", "b"]))
        >>> round(loss(torch.zeros(1, 2)).item(), 4)  # log 2: undecided between two models
        0.6931
    """

    def _values(self, p: ProductDistribution) -> Tensor:
        return p.entropy()


class ExpectedRegret(Loss):
    """How much worse than the best decision a decision drawn from a layer's distribution is, on average.

    Decisions are label vectors y that satisfy the constraint, such as paths, and each label has a cost. The loss is
    E[c·y] - min c·y' over all y' of the constraint. The expectation is Σ_j c_j P(Y_j = 1), so the loss and its gradient
    are exact; the minimum is one pass over the circuit.

    Args:
        reduction: "mean", "sum" or "none" over the batch.
        normalize: whether to divide by the size of the least cost, row by row.

    Example:
        >>> import torch, semprola as sp
        >>> p = sp.constrain(torch.zeros(3), sp.one_hot(["a", "b", "c"]))  # one in three each
        >>> sp.losses.ExpectedRegret()(p, torch.tensor([1.0, 2.0, 6.0]))  # (1 + 2 + 6) / 3 - 1
        tensor(2.)
    """

    def __init__(self, reduction: str = "mean", *, normalize: bool = False) -> None:
        super().__init__(reduction)
        self.normalize = normalize

    def forward(self, p: ConstrainedDistribution, costs: Any) -> Tensor:
        """The loss.

        Args:
            p: what a layer returned.
            costs: the cost of each label [*batch, labels], or by name (labels that are left out cost nothing).

        Raises:
            LabelError: a name is unknown.
            ValueError: costs do not fit the batch, or are not finite.
        """
        if not isinstance(p, ConstrainedDistribution):
            raise TypeError(f"ExpectedRegret needs the distribution that a layer returns, not {type(p).__name__}")
        costs = as_rows(costs, p.labels, "costs", p.evaluator.log_mixing, missing=0.0)
        if not isinstance(costs, Tensor):
            raise TypeError(f"costs must be a tensor, a dict or a data frame, not {type(costs).__name__}")
        if not bool(costs.isfinite().all()):
            raise ValueError("costs must be finite numbers")
        with torch.no_grad():
            best = (p.decode(-costs.detach()) * costs).sum(-1)
        values = (p.mean * costs).sum(-1) - best
        if self.normalize:
            values = values / best.abs().clamp(min=torch.finfo(values.dtype).tiny)
        return self.reduced(values)

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"reduction={self.reduction!r}, normalize={self.normalize}"
