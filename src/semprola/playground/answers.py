"""What the page shows for beliefs and evidence: predictions for each label on its own, and with the rules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from semprola.circuit import Circuit
from semprola.compiler.splitting import Split
from semprola.distributions import ProductDistribution, violations
from semprola.errors import IntractableError, UnsatisfiableError
from semprola.playground.problems import RequestError

LOWEST, HIGHEST = 0.001, 0.999
"""Beliefs are kept within these bounds; certainty is expressed as evidence."""

_SURE = 1e-9
TOP = 5
"""So many of the most probable states are shown."""
_MOST_EVIDENCE = 64
_MOST_BROKEN = 20


def read_beliefs(content: Any, labels: int) -> list[float]:
    """Check the beliefs that the page sent: one probability per label.

    Example:
        >>> read_beliefs([0, 0.5, 1], 3)
        [0.001, 0.5, 0.999]
    """
    if not isinstance(content, list) or len(content) != labels:
        raise RequestError(f"beliefs must be a list of {labels} numbers, one per label")
    for value in content:
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise RequestError("a belief must be a number from 0 to 1")
    return [min(max(float(value), LOWEST), HIGHEST) for value in content]


def read_evidence(content: Any, labels: int) -> list[int | None]:
    """Check the evidence that the page sent: one of "0", "1" and "-" (free) per label.

    Example:
        >>> read_evidence("-10", 3)
        [None, 1, 0]
    """
    if not isinstance(content, str) or len(content) != labels or set(content) - set("-01"):
        raise RequestError(f"evidence must be a text of {labels} characters, each 0, 1 or -")
    return [None if character == "-" else int(character) for character in content]


def network_beliefs(p: Any) -> list[float] | None:
    """The network's belief in each label before the rules; None if it has no beliefs in single labels."""
    if not isinstance(p, ProductDistribution):
        return None
    logits = p.logits
    if logits.shape[-2] != 1:
        return None
    beliefs: list[float] = logits[..., 0, :].double().sigmoid().clamp(_SURE, 1 - _SURE).tolist()
    return beliefs


def with_rules(p: Any, evidence: Sequence[int | None]) -> dict[str, Any]:
    """All answers of a distribution under evidence.

    Returns:
        Marginals, mode, Hamming decode, the five most probable states, and the entropy in bits; or, if the evidence
        contradicts the rules, ``{"impossible": labels}`` with labels whose evidence conflicts.
    """
    known = observed(evidence, p.log_partition.dtype)
    try:
        q = p if all(value is None for value in evidence) else p.condition(known)
    except UnsatisfiableError:
        return {"impossible": fewest_culprits(lambda kept: float(p.log_marginal(kept)) > -math.inf, known)}
    with torch.no_grad():
        states, log_probs = q.top_k(TOP)
        answer = {
            "marginals": _rounded(q.mean),
            "mode": _state(q, q.mode) | {"exact": bool(q.mode_is_exact)},
            "hamming": _state(q, q.decode("hamming")),
            "top": [
                {"state": state.int().tolist(), "probability": math.exp(value)}
                for state, value in zip(states, log_probs.tolist(), strict=True)
                if value > -math.inf
            ],
            "entropy": _entropy(q),
        }
    return answer


def on_their_own(rules: Circuit | Split, beliefs: Sequence[float], evidence: Sequence[int | None]) -> dict[str, Any]:
    """The prediction without rules (every label whose belief is above one half), and the rules that it breaks.

    Args:
        rules: the constraint; if it knows its rules, the broken ones are named by their text.
    """
    state = [int(belief > 0.5) if known is None else known for belief, known in zip(beliefs, evidence, strict=True)]
    found = violations(rules, torch.tensor([state]))
    broken = [{"rule": item.rule, "values": item.values} for item in found[:_MOST_BROKEN]]
    return {"state": state, "broken": broken, "count": len(found)}


def chance_of_rules(p: Any, beliefs: Sequence[float], evidence: Sequence[int | None]) -> float:
    """The probability that independent labels with these beliefs obey the rules, given the evidence."""
    values = observed(evidence, p.log_partition.dtype)
    known = sum(
        math.log(belief if value else 1 - belief)
        for belief, value in zip(beliefs, evidence, strict=True)
        if value is not None
    )
    log_z = float(p.log_marginal(values) + p.log_partition)
    return min(1.0, math.exp(log_z - known))


def observed(evidence: Sequence[int | None], dtype: torch.dtype) -> Tensor:
    """Evidence as a tensor, NaN where a label is free."""
    return torch.tensor([math.nan if value is None else float(value) for value in evidence], dtype=dtype)


def _state(p: Any, state: Tensor) -> dict[str, Any]:
    return {"state": state.int().tolist(), "probability": math.exp(float(p.log_prob(state)))}


def _rounded(values: Tensor) -> list[float]:
    return [round(float(value), 6) for value in values.clamp(0, 1).tolist()]


def _entropy(p: Any) -> dict[str, float]:
    """Entropy in bits: exact, or bounds if a mixture is too large."""
    try:
        value = max(0.0, float(p.entropy())) / math.log(2)
        return {"low": value, "high": value}
    except IntractableError:
        low, high = p.entropy_bounds()
        return {"low": max(0.0, float(low)) / math.log(2), "high": float(high) / math.log(2)}


def fewest_culprits(possible: Callable[[Tensor], bool], known: Tensor) -> list[int]:
    """A minimal set of labels whose evidence cannot hold together; all observed labels if there are very many."""
    fixed = torch.nonzero(~known.isnan())[:, 0].tolist()
    if len(fixed) > _MOST_EVIDENCE:
        return fixed
    kept = known.clone()
    for label in fixed:
        value = kept[label].clone()
        kept[label] = math.nan
        if possible(kept):
            kept[label] = value
    return torch.nonzero(~kept.isnan())[:, 0].tolist()
