"""The cost of two circuits: mixtures of independent labels, hidden Markov models, circuits over a vtree."""

from __future__ import annotations

from typing import Any

import torch

import semprola as sp
from benchmarks.measure import side_by_side
from benchmarks.tasks import Run, gradient
from semprola.engine import CircuitPlans, CompatiblePlans

_MIXTURES = (1, 2, 4, 8)
_UNITS = (1, 2, 4)


def mixtures(circuit: sp.Circuit, batch: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """Milliseconds of log Z and its gradient for m components, which should cost no more than m times one component."""
    plans = CircuitPlans(circuit)
    runs: dict[int, Run] = {}
    for count in _MIXTURES:
        logits = torch.randn((batch, count, circuit.num_labels), requires_grad=True)
        mixing = torch.randn((batch, count), requires_grad=True) if count > 1 else None
        runs[count] = _log_partition(plans, logits, mixing)
    measured = side_by_side(runs, rounds, seconds)
    return [{"mixtures": count, "batch": batch, **times} for count, times in measured.items()]


def compatible(circuit: sp.Circuit, batch: int, rounds: int, seconds: float) -> list[dict[str, Any]]:
    """The size of q, of the constraint and of their product, and milliseconds of log Z and its gradient.

    Args:
        circuit: a circuit along a variable order.
        batch: number of columns evaluated at once.
        rounds: number of measurements.
        seconds: time for all of them together.
    """
    runs: dict[tuple[str, int], Run] = {}
    sizes: dict[tuple[str, int], dict[str, int]] = {}
    for kind in ("hmm", "vtree"):
        for units in _UNITS:
            plans = CompatiblePlans(circuit, units, kind)
            q, product = plans.alone[0].num_edges, plans.product[0].num_edges
            sizes[kind, units] = {"q_edges": q, "edges": plans.constraint.num_edges, "product_edges": product}
            logits = torch.randn((batch, 1, plans.num_parameters), requires_grad=True)
            runs[kind, units] = _compatible_log_partition(plans, logits)
    measured = side_by_side(runs, rounds, seconds)
    return [
        {"q": kind, "units": units, "batch": batch, **sizes[kind, units], **measured[kind, units]}
        for kind, units in runs
    ]


def small_cardinality() -> tuple[sp.Circuit, str]:
    """A circuit along a variable order, small enough for products with wide q, and its name."""
    labels = [f"y{i}" for i in range(40)]
    formula = sp.constraints.cardinality(labels, exactly=10)
    return sp.ProductSPL(1, formula, q="hmm").circuit, "exactly-10-of-40"


def _log_partition(plans: CircuitPlans, logits: torch.Tensor, mixing: torch.Tensor | None) -> Run:
    inputs = [logits] if mixing is None else [logits, mixing]
    return gradient(lambda: sp.distributions.ProductDistribution(plans, logits, mixing).log_partition.sum(), inputs)


def _compatible_log_partition(plans: CompatiblePlans, logits: torch.Tensor) -> Run:
    return gradient(lambda: sp.distributions.CompatibleDistribution(plans, logits).log_partition.sum(), [logits])
