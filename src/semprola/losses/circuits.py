"""Losses from a compiled constraint: semantic loss and neuro-symbolic entropy."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from semprola.circuit import Circuit
from semprola.compiler.sources import Source
from semprola.distributions import ProductDistribution
from semprola.engine import CircuitPlans
from semprola.nn.base import as_circuit
from semprola.nn.constraint import check_logits

_REDUCTIONS = ("mean", "sum", "none")


class _CircuitLoss(nn.Module):
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
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")
        self.plans = CircuitPlans(as_circuit(constraint, None, timeout, max_nodes, memory))
        self.plans.prepare_constraint()
        self.reduction = reduction

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
        values = self._values(self.distribution(logits, given))
        if self.reduction == "none":
            return values
        return values.mean() if self.reduction == "mean" else values.sum()

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
