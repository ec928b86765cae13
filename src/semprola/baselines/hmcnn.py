"""C-HMCNN: scores that respect a hierarchy, by taking the maximum over each label's descendants."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from semprola.baselines.ccn import CCN, CCNScores
from semprola.constraints.hierarchy.family import OPTIONS, Hierarchy
from semprola.constraints.hierarchy.family import hierarchy as make_hierarchy
from semprola.errors import LabelError
from semprola.logic.syntax import checked_names
from semprola.nn.starting import checked_number


class HMCNN(CCN):
    """Coherent hierarchical multi-label network (Giunchiglia & Lukasiewicz, 2020): the max-constraint module.

    A linear layer gives every label a score h in (0, 1). The module's output for a label is the largest score among
    the label and its descendants, so no label scores more than its parents, and the labels above 0.5 respect the
    hierarchy. The hierarchy may be a tree or a DAG.

    Args:
        in_features: width of the features z.
        hierarchy: ``constraints.hierarchy(...)`` without options, or its argument, such as (child, parent) pairs. The
            module guarantees only that if a label is on, its parents are on.
        gate: widths of hidden layers (ReLU).
        labels: the columns of y; by default the hierarchy's own order.

    Raises:
        ValueError: if the hierarchy has options such as `mandatory_leaf`.
        LabelError: if `labels` are not those of the hierarchy.

    Example:
        >>> import torch, semprola as sp
        >>> layer = sp.baselines.HMCNN(8, [("cat", "animal"), ("dog", "animal")])
        >>> p = layer(torch.randn(5, 8))
        >>> bool((p.mean[:, 0] <= p.mean[:, 1]).all())  # cat, animal
        True
        >>> p.loss(torch.tensor([[1.0, 1.0, 0.0]]).expand(5, 3)).shape
        torch.Size([5])
    """

    def __init__(
        self,
        in_features: int,
        hierarchy: Hierarchy | Any,
        gate: Iterable[int] | int = (),
        *,
        labels: Iterable[str] | None = None,
    ) -> None:
        made = hierarchy if isinstance(hierarchy, Hierarchy) else make_hierarchy(hierarchy)
        _refuse_options(made)
        names = made.names if labels is None else _in_another_order(made, checked_names(labels, "labels"))
        super().__init__(in_features, made, labels=names, gate=gate)
        self.hierarchy = made

    def forward(self, z: Tensor) -> HMCNNScores:
        """The scores for features z [*batch, in_features]."""
        return HMCNNScores(self.scores(z), list(self.strata), self.labels)  # type: ignore[arg-type]

    @torch.no_grad()
    def start_at(self, y: Tensor, smoothing: float = 1.0) -> None:
        """Set the bias of the last layer so that scores start at the frequencies of the training labels.

        A label is at least as frequent as its descendants, so the maximum over them changes nothing at the start.

        Args:
            y: training labels that respect the hierarchy [rows, labels].
            smoothing: how many extra rows to count in which a label is on or off with equal probability.

        Raises:
            ValueError: if y has the wrong number of labels, or no rows, or if smoothing is not a positive number.
        """
        smoothing = checked_number(smoothing, "smoothing", positive=True)
        last = self.gate[-1]
        if y.dim() != 2 or not len(y) or y.shape[1] != len(self.labels) or not isinstance(last, nn.Linear):
            raise ValueError(f"expected rows of {len(self.labels)} labels to start at, got shape {tuple(y.shape)}")
        share = (y.to(last.bias).sum(0) + smoothing / 2) / (len(y) + smoothing)
        last.bias.copy_(torch.logit(share))

    def extra_repr(self) -> str:
        """What `repr` shows besides the gate."""
        return self.hierarchy.describe()


class HMCNNScores(CCNScores):
    """HMCNN's prediction for a batch: a score per label, but no joint distribution.

    Let D be a label A together with its descendants. A's score is the largest in D. In the loss, A adds
    −ln max_{B in D} y_B h_B if it is on, and −ln(1 − max_{B in D} h_B) if it is off. So a label that is on also learns
    from descendants that are on.
    """

    method = "HMCNN"


def _in_another_order(made: Hierarchy, labels: tuple[str, ...]) -> tuple[str, ...]:
    for name in (*labels, *made.names):
        if name not in made.names or name not in labels:
            missing = "in none of its rules" if name in labels else "not in labels="
            raise LabelError(f"HMCNN needs a hierarchy over all labels: {name!r} is {missing}")
    return labels


def _refuse_options(made: Hierarchy) -> None:
    asked = [name for name in OPTIONS if getattr(made, name)]
    if asked:
        raise ValueError(f"HMCNN guarantees no more than the hierarchy itself: leave out {', '.join(asked)}")
