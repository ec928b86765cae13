"""The expected regret of a decision: exact, from the marginals of a layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from semprola.distributions import ConstrainedDistribution
from semprola.distributions.names import as_rows

_REDUCTIONS = ("mean", "sum", "none")


class ExpectedRegret(nn.Module):
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
        super().__init__()
        if reduction not in _REDUCTIONS:
            raise ValueError(f"reduction must be 'mean', 'sum' or 'none', not {reduction!r}")
        self.reduction, self.normalize = reduction, normalize

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
        if self.reduction == "none":
            return values
        return values.mean() if self.reduction == "mean" else values.sum()

    def extra_repr(self) -> str:
        """What `repr` shows."""
        return f"reduction={self.reduction!r}, normalize={self.normalize}"
