"""DL2 and fuzzy logics: a formula becomes arithmetic on the probabilities of its labels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import reduce

import torch
from torch import Tensor
from torch.nn import functional as F

from semprola.compiler.families import FamilyReader
from semprola.compiler.sources import formula_of
from semprola.distributions.arguments import check_finite
from semprola.errors import LabelError
from semprola.logic import Formula
from semprola.logic.algebra import read
from semprola.logic.syntax import checked_names
from semprola.losses.circuits import Loss
from semprola.nn.constraint import check_logits

_ALMOST = -1e-12
"""Log-truth values are clamped to this: at a truth value of one, log(1 - t) has no finite derivative."""


class DL2(Loss):
    """DL2 (Fischer et al., 2019): a loss from arithmetic on label probabilities, zero where a formula holds.

    The formula is taken as it is written, except that negations are moved down to the labels:

    ================  ==========================  =============================  ====================
    logic             a label of probability p    a & b                          a | b
    ================  ==========================  =============================  ====================
    "dl2"             1 - p (its negation: p)     a + b                          a · b
    "product"         t = p (its negation: 1-p)   t · u                          1 - (1 - t)(1 - u)
    "godel"           the same                    min(t, u)                      max(t, u)
    "lukasiewicz"     the same                    max(0, t + u - 1)              min(1, t + u)
    ================  ==========================  =============================  ====================

    "dl2" values are distances, and the distance is the loss. The others are truth values t: the loss is -log t for
    "product" and 1 - t for the other two. None of them is a probability, and equivalent formulas may have different
    losses: ``a & a`` costs twice as much as ``a`` in "dl2". :class:`SemanticLoss` depends only on the meaning.

    Args:
        constraint: a formula, its text or the path of a file. Families in it are expanded through their circuits.
        labels: the columns of the logits; by default ``constraint.labels``.
        logic: "dl2", "product", "godel" or "lukasiewicz".
        reduction: "mean", "sum" or "none" over the batch.

    Raises:
        LabelError: if the constraint mentions a label that has no column, or `labels` is no list of names.

    Example:
        >>> import torch, semprola as sp
        >>> a, b = sp.Bools("a b")
        >>> even = torch.zeros(1, 2)  # both labels have probability 1/2
        >>> [round(sp.losses.DL2(a & b, logic=logic)(even).item(), 3) for logic in ("dl2", "product", "godel")]
        [1.0, 1.386, 0.5]
        >>> round(sp.losses.DL2(a & b & a)(even).item(), 3)  # the same meaning, another loss
        1.5
    """

    def __init__(
        self,
        constraint: Formula | str | os.PathLike[str],
        *,
        labels: Sequence[str] | None = None,
        logic: str = "dl2",
        reduction: str = "mean",
    ) -> None:
        super().__init__(reduction)
        formula = formula_of(constraint, "DL2 depends on how a formula is written, so it")
        if logic not in _LOGICS:
            raise ValueError(f"logic must be one of {', '.join(map(repr, _LOGICS))}, not {logic!r}")
        self.constraint, self.logic = formula, logic
        self.labels = formula.labels if labels is None else checked_names(labels, "labels")
        unknown = [name for name in formula.labels if name not in set(self.labels)]
        if unknown:
            raise LabelError(f"the constraint mentions {unknown[0]!r}, which is not among the labels")
        self._families = FamilyReader()

    def forward(self, logits: Tensor) -> Tensor:
        """The loss of label log-odds [*batch, labels]."""
        return self.reduced(self.values(logits))

    def values(self, logits: Tensor) -> Tensor:
        """The loss of each row of label log-odds: [*batch] from [*batch, labels].

        Raises:
            TypeError: if logits are no tensor.
            ValueError: if logits have the wrong width, or are NaN or infinite; the message names the rows.
        """
        check_logits(logits, self.labels)
        check_finite(logits, logits.shape[:-1], "logits")
        if logits.dtype in (torch.float16, torch.bfloat16):
            logits = logits.float()
        columns = dict(zip(self.labels, logits.unbind(-1), strict=True))
        algebra = _LOGICS[self.logic](columns, logits[..., 0])
        return algebra.loss(read(self.constraint, algebra, self._families.through(algebra)))

    def extra_repr(self) -> str:
        """What `repr` shows."""
        text = str(self.constraint)
        shown = text if len(text) <= 60 else text[:57] + "…"
        return f"{shown}, logic={self.logic!r}, reduction={self.reduction!r}"


class _Algebra:
    """What the four logics share: access to the labels' log-odds."""

    zero, one = 0.0, 1.0

    def __init__(self, columns: dict[str, Tensor], like: Tensor) -> None:
        self.columns = columns
        self.true, self.false = torch.full_like(like, self.one), torch.full_like(like, self.zero)

    def literal(self, name: str, positive: bool) -> Tensor:
        logit = self.columns[name]
        return self.truth(logit if positive else -logit)

    def truth(self, logit: Tensor) -> Tensor:
        return torch.sigmoid(logit)

    def loss(self, value: Tensor) -> Tensor:
        return 1 - value


class _Dl2(_Algebra):
    """Distances to satisfaction, from zero up."""

    zero, one = 1.0, 0.0

    def truth(self, logit: Tensor) -> Tensor:
        return torch.sigmoid(-logit)

    def both(self, parts: Sequence[Tensor]) -> Tensor:
        return reduce(torch.add, parts)

    def either(self, parts: Sequence[Tensor]) -> Tensor:
        return reduce(torch.mul, parts)

    def loss(self, value: Tensor) -> Tensor:
        return value


class _Product(_Algebra):
    """Logarithms of truth values, so that the product of a thousand rules does not underflow."""

    zero, one = float("-inf"), 0.0

    def truth(self, logit: Tensor) -> Tensor:
        return F.logsigmoid(logit)

    def both(self, parts: Sequence[Tensor]) -> Tensor:
        return reduce(torch.add, parts)

    def either(self, parts: Sequence[Tensor]) -> Tensor:
        # t + (1 - t) u, which stays exact where both are small
        return reduce(lambda t, u: torch.logaddexp(t, u + _log_of_rest(t)), parts)

    def loss(self, value: Tensor) -> Tensor:
        return -value


class _Goedel(_Algebra):
    """Truth values by minimum and maximum."""

    def both(self, parts: Sequence[Tensor]) -> Tensor:
        return reduce(torch.minimum, parts)

    def either(self, parts: Sequence[Tensor]) -> Tensor:
        return reduce(torch.maximum, parts)


class _Lukasiewicz(_Algebra):
    """Truth values by sums, cut off at zero and one."""

    def both(self, parts: Sequence[Tensor]) -> Tensor:
        return (1 - reduce(torch.add, [1 - part for part in parts])).clamp(min=0)

    def either(self, parts: Sequence[Tensor]) -> Tensor:
        return reduce(torch.add, parts).clamp(max=1)


_LOGICS: dict[str, type[_Dl2 | _Product | _Goedel | _Lukasiewicz]] = {
    "dl2": _Dl2,
    "product": _Product,
    "godel": _Goedel,
    "lukasiewicz": _Lukasiewicz,
}


def _log_of_rest(value: Tensor) -> Tensor:
    """log(1 - exp(value)), with finite derivatives."""
    value = value.clamp(max=_ALMOST)
    return torch.where(value > -0.6931, torch.log(-torch.expm1(value)), torch.log1p(-torch.exp(value)))
