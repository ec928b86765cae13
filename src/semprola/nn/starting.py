"""Where a layer starts: parameters that give it the frequencies of the training labels.

The default start, uniform over the models, can be far from the labels: by 80 nats on a hierarchy of 500 classes of
which a row has ten. The parameters for `start_at` have a closed form, or take a few steps on a convex problem.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from semprola.circuit import Circuit
from semprola.distributions import ProductDistribution
from semprola.distributions.arguments import check_binary, rows_named
from semprola.distributions.names import as_rows
from semprola.engine import CircuitPlans, encode, indicators, log_softmax, logits_of, possible, posterior, supported

_MOST_NUMBERS = 2**24
"""Largest tensor (in numbers) made at once."""
_STEPS = 20
"""Steps of the iteration for weights of which given inputs leave only some possible in each row."""
_MOST_GIVEN = 1024
"""Most inputs that the moments of a product are averaged over; larger sets are thinned out."""
_EDGE = 1e-6
"""Labels that are rarer, or more common, than this share are searched as if they were not."""


def branch_weights(plans: CircuitPlans, y: Tensor, given: Tensor | None, weight: Tensor, smoothing: float) -> Tensor:
    """Smoothed maximum-likelihood log-weights of a single circuit [W], not normalised; float64.

    The likelihood of a deterministic circuit splits into one multinomial per sum, whose best weights are the
    frequencies with which the labels take each branch. At each sum, `smoothing` extra observations follow the uniform
    distribution over models. With several units, the counts are distributed among units as the uniform distribution
    would. With given inputs, large numbers of rows are thinned out.

    Args:
        y: label vectors, all within the constraint [rows, labels].
        given: their inputs [rows, given], or None.
        weight: how often each row counts [rows]; float64.
        smoothing: how many observations the uniform distribution counts for at each sum.
    """
    plan = plans.layer_explicit
    uniform = log_softmax(plans.layer, logits_of(plans.layer, plans.log_counts)[:, None])
    prior = smoothing * uniform[:, 0].exp()
    if given is None:
        return (_branch_counts(plans, y, weight, uniform) + prior).log()
    most = max(64, _MOST_NUMBERS // max(1, plan.num_edges))
    thinned = slice(None, None, -(-len(y) // most))
    y, given, weight = y[thinned], given[thinned], weight[thinned]
    inputs, group = torch.unique(given, dim=0, return_inverse=True)
    rows = torch.cat([y, given], 1).to(torch.float64).T
    flows, _ = posterior(plan, uniform.expand(-1, len(y)), _leaves(rows))
    used = uniform.new_zeros((plan.num_weights, len(inputs))).index_add_(1, group, flows * weight)
    unknown = torch.full((len(inputs), y.shape[1]), float("nan"), dtype=torch.float64)
    alive, _ = possible(plan, _leaves(torch.cat([unknown, inputs.to(torch.float64)], 1).T))
    return _available(plans, used, alive.to(torch.float64), prior)


def label_odds(circuit: Circuit, y: Tensor, given: Tensor | None, weight: Tensor, smoothing: float) -> Tensor:
    """Log-odds of independent labels [labels] that, once conditioned on the constraint, have the labels' frequencies.

    The log-likelihood of p(y) ∝ exp(θ·y) [y ⊨ K] is concave in θ, and its gradient is the difference of the two means,
    so a quasi-Newton method finds the best θ. Curvatures of common and rare labels differ by thousands; at the best θ
    they are the variances of the wanted means, so every label is searched on the scale of its own. `smoothing` extra
    observations have the mean of the uniform distribution over models, which keeps θ finite.

    Args:
        y: label vectors, all within the constraint [rows, labels].
        given: their inputs [rows, given], or None.
        weight: how often each row counts [rows]; float64.
    """
    inputs, share = None, torch.ones(1, dtype=torch.float64)
    if given is not None:
        thinned = slice(None, None, -(-len(given) // _MOST_GIVEN))
        inputs, group = torch.unique(given[thinned], dim=0, return_inverse=True)
        share = weight.new_zeros(len(inputs)).index_add_(0, group, weight[thinned])
        share /= share.sum()
    plans = CircuitPlans(circuit)

    def at(odds: Tensor) -> ProductDistribution:
        return ProductDistribution(plans, odds.expand(len(share), 1, -1), given=inputs)

    with torch.no_grad():
        uniform = share @ at(torch.zeros(circuit.num_labels, dtype=torch.float64)).mean
    wanted = (weight @ y.to(torch.float64) + smoothing * uniform) / (weight.sum() + smoothing)
    inside = wanted.clamp(_EDGE, 1 - _EDGE)
    scale = (inside * (1 - inside)).rsqrt()
    scaled = (torch.logit(inside) / scale).requires_grad_()
    search = torch.optim.LBFGS(
        [scaled], max_iter=300, history_size=20, tolerance_grad=1e-5, line_search_fn="strong_wolfe"
    )

    def loss() -> Tensor:
        search.zero_grad()
        odds = scaled * scale
        log_z = share @ at(odds).log_partition + torch.nn.functional.softplus(odds).sum()
        value = log_z - odds @ wanted
        value.backward()
        return value

    search.step(loss)
    return (scaled * scale).detach()


def checked_rows(plans: CircuitPlans, y: Any, given: Any) -> tuple[Tensor, Tensor | None]:
    """Label vectors [rows, labels] and inputs [rows, given] that a layer can start at, on the CPU."""
    circuit = plans.circuit
    labels = label_rows(circuit, y)
    given = as_rows(given, circuit.given, "given", torch.zeros(0))
    inputs = None
    if given is not None:
        inputs = torch.as_tensor(np.asarray(given)) if not isinstance(given, Tensor) else given.detach().cpu()
    refuse_violations(plans, labels, inputs)
    return labels, None if inputs is None else inputs.expand(len(labels), len(circuit.given))


def checked_weight(weight: Any, count: int) -> Tensor:
    """How often each of `count` rows counts [rows], once by default; float64 on the CPU."""
    if weight is None:
        return torch.ones(count, dtype=torch.float64)
    times = torch.as_tensor(np.asarray(weight) if not isinstance(weight, Tensor) else weight.detach()).cpu().double()
    if times.shape != (count,):
        raise ValueError(f"weight must have one number for each of {count} rows, got shape {tuple(times.shape)}")
    if not bool((times >= 0).all()) or not 0 < float(times.sum()) < float("inf"):
        raise ValueError("weights must be finite, not negative, and not all zero")
    return times


def checked_number(value: Any, name: str, *, positive: bool = False) -> float:
    """The value as a float, if it is a finite number from 0, or above 0; otherwise raises an error with the name."""
    try:
        number = math.nan if isinstance(value, str) else float(value)
    except (TypeError, ValueError, RuntimeError):
        number = math.nan
    if not 0 <= number < math.inf or (positive and number == 0):
        raise ValueError(f"{name} must be a finite number {'above' if positive else 'from'} 0, not {value!r:.40}")
    return number


def label_rows(circuit: Circuit, y: Any, name: str = "y") -> Tensor:
    """Label vectors as a tensor [rows, labels] of zeros and ones, on the CPU; at least one. Errors use the name."""
    y = as_rows(y, circuit.labels, name, torch.zeros(0))
    labels = torch.as_tensor(np.asarray(y)) if not isinstance(y, Tensor) else y.detach().cpu()
    if labels.dim() != 2 or labels.shape[1] != circuit.num_labels or not len(labels):
        raise ValueError(f"{name}: expected rows of {circuit.num_labels} labels, got shape {tuple(labels.shape)}")
    check_binary(labels, name)
    return labels


def refuse_violations(plans: CircuitPlans, y: Tensor, given: Tensor | None, name: str = "y") -> None:
    """Raise a ValueError that names the rows of y [rows, labels] that violate the constraint, if there are any."""
    circuit = plans.circuit
    # the circuit checks many rows at once, but not if it has zero-suppressed variables: there the engine is faster
    by_engine = bool(circuit.zero_suppressed.any()) and not circuit.given and given is None
    broken = ~(_supported(plans, y) if by_engine else torch.as_tensor(circuit.satisfied(y, given)))
    if broken.any():
        raise ValueError(f"{name} violates the constraint{rows_named(broken, y.shape[:1])}: leave these rows out")


def _supported(plans: CircuitPlans, y: Tensor) -> Tensor:
    """Whether rows of y [rows, labels] satisfy the constraint [rows]; by the engine."""
    plan = plans.constraint_explicit
    step = max(16, _MOST_NUMBERS // max(1, plan.num_edges))
    return torch.cat([supported(plan, _leaves(part)) for part in y.to(torch.float32).T.split(step, 1)])


def _branch_counts(plans: CircuitPlans, y: Tensor, weight: Tensor, uniform: Tensor) -> Tensor:
    """How often label vectors use each weight [W]; with several units, the expected count."""
    plan = plans.layer_explicit
    counts = uniform.new_zeros(plan.num_weights)
    step = max(1, _MOST_NUMBERS // max(1, plan.num_edges))
    for rows, times in zip(y.to(torch.float64).T.split(step, 1), weight.split(step), strict=True):
        if plans.is_deterministic:
            codes = encode(plan, rows)
            used = codes >= 0
            counts += torch.bincount(codes[used], times[:, None].expand_as(codes)[used], plan.num_weights)
        else:
            flows, _ = posterior(plan, uniform.expand(-1, rows.shape[1]), _leaves(rows))
            counts += flows @ times
    return counts


def _available(plans: CircuitPlans, used: Tensor, alive: Tensor, prior: Tensor) -> Tensor:
    """Log-weights [W] from the counts of branches and from which branches were available [W, inputs].

    A branch that was not available did not lose against the others, so the maximum has no closed form. The iteration is
    that of Hunter (2004) for the Bradley-Terry model; it never lowers the likelihood.
    """
    blocks = plans.layer.blocks
    counts = used.sum(1) + prior
    weights = counts.clone()
    for _ in range(_STEPS):
        expected = []
        sizes = [sums * fan_in for _, sums, fan_in in blocks]
        parts = (tensor.split(sizes) for tensor in (weights, used, alive, prior))
        for (_, sums, fan_in), weight, use, live, extra in zip(blocks, *parts, strict=True):
            shape = (sums, fan_in, live.shape[1])
            weight, extra, live = weight.view(sums, fan_in), extra.view(sums, fan_in), live.view(shape)
            reached = use.view(shape).sum(1, keepdim=True)
            total = (live * weight[:, :, None]).sum(1, keepdim=True)
            share = (live * (reached / total.clamp(min=1e-300))).sum(2)
            expected.append((share + (extra.sum(1) / weight.sum(1))[:, None]).flatten())
        weights = counts / torch.cat(expected)
    return weights.log()


def _leaves(rows: Tensor) -> Tensor:
    """Leaves that allow only the values in rows [variables, columns]; NaN allows both values."""
    return torch.stack(indicators(rows, rows.dtype), dim=1).flatten(0, 1)
