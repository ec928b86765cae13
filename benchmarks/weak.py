"""The cost of a training step on half-observed labels, compared with full labels and with log Z of all weights."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

import semprola as sp
from benchmarks.measure import side_by_side
from benchmarks.tasks import Run, gradient, with_engine
from semprola.engine import log_softmax, log_value

COMPONENTS = 4
ENGINES = ("native", "torch")


def weak_labels(circuit: sp.Circuit, batch: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Times of a step of both kinds of layer with each engine, from the gate's outputs on, with four components.

    Args:
        circuit: the compiled constraint.
        batch: rows of a step.
        rounds: largest number of measurements of each.
        seconds: approximate time for all of them together.
    """
    single = _Steps(sp.SPL(1, circuit, components=COMPONENTS), batch)
    product = _Steps(sp.ProductSPL(1, circuit, components=COMPONENTS), batch)
    steps: dict[tuple[str, str], Run] = {
        ("SPL", "full"): single.full(),
        ("SPL", "half"): single.half(),
        ("SPL", "log Z"): single.log_z(),
        ("ProductSPL", "full"): product.full(),
        ("ProductSPL", "half"): product.half(),
    }
    chosen = {(*key, engine): with_engine(engine, step) for engine in ENGINES for key, step in steps.items()}
    runs = {key: run for key, run in chosen.items() if not isinstance(run, str)}
    measured = side_by_side(runs, rounds, seconds)
    return [
        {"layer": layer, "labels": what, "engine": engine, "batch": batch, **measured[layer, what, engine]}
        for layer, what, engine in runs
    ]


class _Steps:
    """A layer's steps for random outputs of its gate; labels are drawn from the layer."""

    def __init__(self, layer: sp.SPL | sp.ProductSPL, batch: int) -> None:
        self._generator = torch.Generator().manual_seed(0)
        self._layer = layer
        # the batch last, as in the output of a layer's own gate
        self._columns = self._random(layer.num_parameters, COMPONENTS, batch).requires_grad_()
        self._mixing = self._random(COMPONENTS, batch).requires_grad_()
        self._y = self._distribution().sample(generator=self._generator)
        lost = torch.rand(self._y.shape, generator=self._generator) < 0.5
        self._half = self._y.masked_fill(lost, torch.nan)

    def full(self) -> Run:
        """The likelihood of full labels, with its gradient."""
        return gradient(lambda: self._distribution().log_prob(self._y).sum(), [self._columns, self._mixing])

    def half(self) -> Run:
        """The same where every label is observed with probability 1/2."""
        return gradient(lambda: self._distribution().log_marginal(self._half).sum(), [self._columns, self._mixing])

    def log_z(self) -> Run:
        """The value of a single circuit for scores of every literal and sample, with the gradient of the logits."""
        plan = self._layer.plans.layer_explicit
        leaves = self._random(plan.num_leaves, self._columns[0].numel())

        def value() -> Tensor:
            return log_value(plan, log_softmax(plan, self._columns.flatten(1)), leaves).sum()

        return gradient(value, [self._columns])

    def _distribution(self) -> Any:
        kind = (
            sp.distributions.SPLDistribution
            if isinstance(self._layer, sp.SPL)
            else sp.distributions.ProductDistribution
        )
        return kind(self._layer.plans, self._columns.permute(2, 1, 0), self._mixing.T)

    def _random(self, *shape: int) -> Tensor:
        return torch.randn(shape, generator=self._generator)
