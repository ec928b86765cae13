"""C-HMCNN: scores that respect a hierarchy, by taking the maximum over each label's descendants."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semprola.baselines.common import ScoringLayer, ThresholdScores, binary
from semprola.constraints.hierarchy.family import OPTIONS, Hierarchy
from semprola.constraints.hierarchy.family import hierarchy as make_hierarchy
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import LabelError
from semprola.logic.syntax import checked_names
from semprola.nn.starting import checked_number


class HMCNN(ScoringLayer):
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
        super().__init__(in_features, gate, len(made.names))
        self.hierarchy = made
        self.labels = made.names if labels is None else _in_another_order(made, checked_names(labels, "labels"))
        column = {name: place for place, name in enumerate(self.labels)}
        children = {column[made.names[v]]: [column[made.names[c]] for c in cs] for v, cs in enumerate(made.children_of)}
        self.steps = _Levels([children[v] for v in range(len(children))])

    def forward(self, z: Tensor) -> HMCNNScores:
        """The scores for features z [*batch, in_features]."""
        return HMCNNScores(self.scores(z), self.steps, self.labels)

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


class HMCNNScores(ThresholdScores):
    """HMCNN's prediction for a batch: a score per label, but no joint distribution.

    Args:
        logits: log-odds of the scores h [*batch, labels].
        steps: the hierarchy, from `HMCNN`.
        labels: names of the columns.
    """

    method = "HMCNN"

    def __init__(self, logits: Tensor, steps: _Levels, labels: Sequence[str] = ()) -> None:
        self.logits, self._steps, self.labels = logits, steps, tuple(labels)

    @property
    def mean(self) -> Tensor:
        """Scores after the maximum over descendants [*batch, labels]; they stand in for marginals."""
        return torch.sigmoid(self._constrained())

    @property
    def mode(self) -> Tensor:
        """Labels that score above 0.5 [*batch, labels]; they respect the hierarchy."""
        with torch.no_grad():
            return (self._constrained() > 0).to(self.logits.dtype)

    def loss(self, y: Tensor) -> Tensor:
        """The max-constraint loss of label vectors y [*batch, labels], summed over labels [*batch].

        Let D be a label A together with its descendants. The label adds −ln max_{B in D} y_B h_B if it is on, and
        −ln(1 − max_{B in D} h_B) if it is off. So a label that is on also learns from descendants that are on.

        Raises:
            ValueError: if y has the wrong shape, or values other than 0 and 1.
        """
        on = binary(y, self.logits.shape)
        # where a label is on, the maximum runs over the descendants that are on; they include the label itself
        up, below = self._columns(), on.reshape(-1, y.shape[-1]).T
        values = up.detach()
        among_on, among_all = self._steps.best(
            torch.cat([values.masked_fill(~below, NEGATIVE_INFINITY), values], 1)
        ).chunk(2, 1)
        best = up.gather(0, torch.where(below, among_on, among_all))
        terms = F.logsigmoid(torch.where(below, best, -best))
        return -terms.sum(0).reshape(self.batch_shape)

    def _constrained(self) -> Tensor:
        columns = self._columns()
        best = columns.gather(0, self._steps.best(columns.detach()))
        return best.T.reshape(self.logits.shape)

    def _columns(self) -> Tensor:
        """Log-odds [labels, batch]."""
        return self.logits.reshape(-1, self.logits.shape[-1]).T


class _Levels(nn.Module):
    """The hierarchy level by level from the leaves up: a maximum over descendants becomes maxima over children.

    Counting a descendant twice does not change a maximum, so this works for DAGs as well. It costs one operation per
    edge, whereas a reachability matrix costs one per pair of labels.
    """

    def __init__(self, children_of: Sequence[Sequence[int]]) -> None:
        super().__init__()
        height = _heights(children_of)
        # labels with a similar number of children go together, because rows of a table are as long as the longest
        groups: dict[tuple[int, int], list[int]] = {}
        for v, below in enumerate(children_of):
            if below:
                groups.setdefault((height[v], len(below).bit_length()), []).append(v)
        self.count = len(groups)
        for number, (_, parents) in enumerate(sorted(groups.items())):
            most = max(len(children_of[v]) for v in parents)
            # the label itself comes first, and pads rows with fewer children
            rows = [[v, *children_of[v], *[v] * (most - len(children_of[v]))] for v in parents]
            self.register_buffer(f"parents{number}", torch.tensor(parents), persistent=False)
            self.register_buffer(f"members{number}", torch.tensor(rows), persistent=False)

    def best(self, values: Tensor) -> Tensor:
        """For every label, which of itself and its descendants has the largest value [labels, batch]."""
        with torch.no_grad():
            values = values.clone()
            best = torch.arange(len(values), device=values.device)[:, None].expand_as(values).clone()
            for number in range(self.count):
                parents, members = getattr(self, f"parents{number}"), getattr(self, f"members{number}")
                top, place = values[members].max(1)
                values[parents] = top
                best[parents] = best.gather(0, members.gather(1, place))
            return best


def _heights(children_of: Sequence[Sequence[int]]) -> list[int]:
    """The length of the longest path down from every label."""
    height = [-1] * len(children_of)
    for start in range(len(children_of)):
        stack = [start]
        while stack:
            v = stack[-1]
            waiting = [c for c in children_of[v] if height[c] < 0]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            height[v] = 1 + max((height[c] for c in children_of[v]), default=-1)
    return height


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
