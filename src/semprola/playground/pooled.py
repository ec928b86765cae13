"""What the page shows for rules that are split: a proven mode, bounds of probabilities, shares of samples."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.compiler.splitting import Split
from semprola.distributions import PoolDistribution, ProductDistribution
from semprola.distributions.pool import independent
from semprola.errors import IntractableError, UnsatisfiableError
from semprola.playground.answers import TOP, fewest_culprits, observed
from semprola.playground.problems import RequestError

_SAMPLES, _MOST_DRAWS = 400, 4000
_SURE = 1e-9
_LOOK_SECONDS = 0.05
_SEARCH_SHARE, _LIST_SHARE = 0.4, 0.15
"""Shares of a request's time: to search for the mode, and for the best states."""


def pooled_answer(p: PoolDistribution, evidence: Sequence[int | None], seconds: float) -> dict[str, Any]:
    """All answers of a pool under evidence.

    Returns:
        The mode, whether it is proven, and the five most probable states, with bounds of their probabilities; marginals
        as shares of samples, or None where sampling is hopeless. If the evidence contradicts the rules,
        ``{"impossible": labels}``.
    """
    known = observed(evidence, p.weights.dtype)
    try:
        q = p if all(value is None for value in evidence) else p.condition(known)
        q = q.within(seconds=_SEARCH_SHARE * seconds)
        mode = q.mode
    except UnsatisfiableError:
        return {"impossible": fewest_culprits(_possible(p), known)}
    except IntractableError:
        raise RequestError(
            f"no state that obeys all rules was found within {_SEARCH_SHARE * seconds:.1g} seconds: leave rules out, "
            "or start the playground with a longer --timeout"
        ) from None
    with torch.no_grad():
        states = _best(q, mode, _LIST_SHARE * seconds)
        scores = q.log_score(states)
        marginals = _shares(q)
        found = [_state(q, state) for state in states]
        relative = (scores - scores[0]).exp().tolist()
    return {
        "marginals": marginals,
        "mode": found[0] | {"exact": bool(q.mode_is_exact)},
        "hamming": None,
        "top": [each | {"share": share} for each, share in zip(found, relative, strict=True)],
        "entropy": None,
    }


def pooled_beliefs(p: PoolDistribution) -> list[float] | None:
    """What a network believes about each label before the rules; None if it has no beliefs in single labels."""
    logits = []
    for member in p.members:
        if not isinstance(member, ProductDistribution) or member.logits.shape[-2] != 1:
            return None
        logits.append(member.logits[..., 0, :].double())
    pooled = sum(weight * own for weight, own in zip(p.weights.double(), logits, strict=True))
    beliefs: list[float] = torch.as_tensor(pooled).sigmoid().tolist()
    return beliefs


def mixed_means(p: PoolDistribution) -> list[float]:
    """The probability of each label, averaged over the circuits, each on its own."""
    means = sum(weight * member.mean for weight, member in zip(p.weights, p.members, strict=True))
    mixed: list[float] = torch.as_tensor(means).clamp(0, 1).tolist()
    return mixed


def most_chance(split: Split, beliefs: Sequence[float], evidence: Sequence[int | None]) -> float:
    """At most this is the probability that independent labels obey the rules, given the evidence."""
    fixed = [belief if value is None else float(value) for belief, value in zip(beliefs, evidence, strict=True)]
    p = independent(split, torch.tensor(fixed, dtype=torch.float64).clamp(_SURE, 1 - _SURE).logit())
    return min(1.0, math.exp(min(float(member.log_partition) for member in p.members)))


def valid_state(split: Split, seconds: float) -> tuple[list[int], bool]:
    """A state that obeys all rules, and whether all states were equally likely to be drawn."""
    count = len(split.labels)
    try:
        drawn = independent(split, torch.zeros(count, dtype=torch.float64)).draw(most=_SAMPLES).states
        return drawn.int().tolist(), True
    except IntractableError:
        p = independent(split, torch.randn(count, dtype=torch.float64))
        return p.within(seconds=_SEARCH_SHARE * seconds).mode.int().tolist(), False


def _best(q: PoolDistribution, mode: Tensor, seconds: float) -> Tensor:
    """The five best states, or the mode alone where they are not proven [states, labels]."""
    try:
        states, scores = q.within(seconds=seconds).top_k(TOP)
    except IntractableError:
        return mode[None]
    found: Tensor = states[scores > -math.inf]
    return found


def _shares(q: PoolDistribution) -> list[float] | None:
    try:
        drawn = q.draw((_SAMPLES,), most=_MOST_DRAWS).states
    except IntractableError:
        return None
    return [round(float(value), 3) for value in drawn.mean(0)]


def _state(q: PoolDistribution, state: Tensor) -> dict[str, Any]:
    lower, upper = (math.exp(float(bound)) for bound in q.log_prob_bounds(state))
    return {"state": state.int().tolist(), "low": lower, "high": upper}


def _possible(p: PoolDistribution) -> Callable[[Tensor], bool]:
    """Whether there is a state with this evidence, as far as single circuits and a short search can tell."""

    def possible(evidence: Tensor) -> bool:
        try:
            _ = p.condition(evidence).within(seconds=_LOOK_SECONDS).mode
        except UnsatisfiableError:
            return False
        except IntractableError:  # not known
            return True
        return True

    return possible
