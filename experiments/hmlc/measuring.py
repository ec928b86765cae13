"""What a model scores on some rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from experiments.hmlc.data import Rows
from experiments.hmlc.models import Model
from experiments.hmlc.scores import average_precision, calibration_error
from semprola.constraints import Hierarchy
from semprola.training.metrics import consistent, exact, hamming, reliability

LAMBDAS = (0.0, 0.25, 0.5, 0.75, 1.0)
"""Weights of the prior of label sets, tried on validation rows."""


_MOST_VALUES = 2**27
"""Of the nodes of a circuit for all rows that are predicted at once."""


@torch.no_grad()
def look(model: Model, rows: Rows, scored: Tensor) -> dict[str, float]:
    """The figures by which an epoch is chosen: exact match of the mode, Hamming score and AU(PRC) of the marginals."""
    mode, mean = _predicted(model, rows, lambda p, y: (p.mode, p.mean))
    return {
        "exact": exact(mode, rows.y),
        "hamming": hamming((mean > 0.5).to(rows.y), rows.y),
        "auprc": average_precision(mean[:, scored], rows.y[:, scored]),
    }


@torch.no_grad()
def measure(model: Model, rows: Rows, rule: Hierarchy, plain: Hierarchy, scored: Tensor) -> dict[str, Any]:
    """All figures of a model; percentages, but for AU(PRC), calibration and nats.

    Args:
        model: the model.
        rows: what to measure on.
        rule: the constraint of the method.
        plain: the hierarchy without options.
        scored: which labels count for AU(PRC) [labels].

    Returns:
        "exact", "hamming" and "consistent" (with the hierarchy, by its formula) of the mode; the same under "decoder",
        for the state within the method's constraint of least expected Hamming loss, and under "threshold", for the
        labels whose marginal exceeds 1/2, which is that state within the hierarchy alone; "auprc" and "calibration" of
        the marginals. Where there is a likelihood: "nll" of the rows that the constraint allows, "impossible"
        (percentage of the other rows), "mode_calibration", "mode_proven".
    """
    has_likelihood = model.settings.method not in ("hmcnn", "hmcnn-published")

    def ask(p: Any, y: Tensor) -> tuple[Tensor, ...]:
        mode, mean = p.mode, p.mean
        if not has_likelihood:
            return mode, mean, p.decode("hamming")
        # the same as decode("hamming"), without computing the marginals again
        return mode, mean, p.decode(2 * mean - 1), p.log_prob(y), p.log_prob(mode), p.mode_is_exact

    mode, mean, decoded, *likelihood = _predicted(model, rows, ask)
    threshold = (mean > 0.5).to(mode)
    figures: dict[str, Any] = {
        "rows": len(rows),
        **_figures(mode, rows.y, plain),
        "obeys_options": consistent(rule, rule.names, mode),
        "decoder": _figures(decoded, rows.y, plain),
        "threshold": _figures(threshold, rows.y, plain),
        "empty": 100 * float((mode.sum(1) == 0).double().mean()),
        "auprc": average_precision(mean[:, scored], rows.y[:, scored]),
        "calibration": calibration_error(mean, rows.y),
    }
    if has_likelihood:
        log_prob, of_mode, proven = likelihood
        possible = log_prob.isfinite()
        right = (mode == rows.y).all(-1)
        figures["nll"] = -float(log_prob[possible].double().mean())
        figures["impossible"] = 100 * float((~possible).double().mean())
        figures["mode_calibration"] = reliability(of_mode.exp().numpy(), right.numpy())["error"][0]
        figures["mode_proven"] = 100 * float(proven.double().mean())
    return figures


def _predicted(model: Model, rows: Rows, ask: Callable[[Any, Tensor], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
    """Answers of the model for all rows; some rows at a time if its circuit is large.

    Args:
        model: the model.
        rows: the rows.
        ask: tensors, whose first dimension is the row, for a distribution and the labels of its rows.
    """
    model.eval()
    circuit = getattr(model.head, "circuit", None)
    step = len(rows) if circuit is None else max(16, _MOST_VALUES // circuit.num_nodes)
    parts = [ask(model(x), y) for x, y in zip(rows.x.split(step), rows.y.split(step), strict=True)]
    return tuple(torch.cat(answers) for answers in zip(*parts, strict=True))


@torch.no_grad()
def marginals_of(model: Model, rows: Rows) -> Tensor:
    """Marginals of all labels [rows, labels]."""
    return _predicted(model, rows, lambda p, y: (p.mean,))[0]


class LabelSets:
    """Prediction by the label sets that were seen in training, for a model with a likelihood.

    The score of a set is log p(y | x) + λ (log share of y among training rows − log p₀(y)), where p₀ is the circuit at
    the frequencies of the training labels: what the circuit cannot say about which sets occur, λ adds.

    Args:
        y: labels of the training rows [rows, labels].
        log_base: log p₀ of label vectors.
    """

    def __init__(self, y: Tensor, log_base: Any) -> None:
        self.states, counts = torch.unique(y, dim=0, return_counts=True)
        self.log_ratio = (counts / counts.sum()).log() - log_base(self.states)

    @torch.no_grad()
    def scores(self, model: Model, x: Tensor, chunk: int = 16) -> Tensor:
        """log p of every known set for every row [rows, sets]."""
        model.eval()
        states = self.states[:, None]
        return torch.cat([model(part).log_prob(states).T for part in x.split(chunk)])

    def best_weight(self, model: Model, rows: Rows) -> float:
        """The weight of the prior, of `LAMBDAS`, with the best exact match on some rows."""
        scores = self.scores(model, rows.x)
        return max(LAMBDAS, key=lambda weight: self.exact(scores, rows.y, weight))

    def exact(self, scores: Tensor, y: Tensor, weight: float) -> float:
        """Exact match of the best known set under a weight of the prior."""
        best = (scores + weight * self.log_ratio).argmax(1)
        return exact(self.states[best], y)


def _figures(predicted: Tensor, y: Tensor, plain: Hierarchy) -> dict[str, float]:
    return {
        "exact": exact(predicted, y),
        "hamming": hamming(predicted, y),
        "consistent": consistent(plain, plain.names, predicted),
    }
