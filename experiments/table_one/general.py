"""D4: which kinds of constraints a system accepts and uses."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

import semprola as sp
from experiments.table_one.kinds import constraint_kinds
from experiments.table_one.systems import build
from semprola.errors import SemprolaError

_PREDICTIONS = 1000
_NETWORKS = 10
_VECTORS = 200
_SURE = 5.0
"""Log-odds of a confident prediction."""
_ERRORS = 3.0
"""Standard errors by which a difference must exceed zero."""


def general(system: str) -> dict[str, Any]:
    """D4: a kind is taken if the system can be built and trained with it, and the constraint has an effect."""
    found = {name: _measured(system, rules) for name, rules in constraint_kinds().items()}
    taken = [name for name, kind in found.items() if kind["taken"]]
    return {"taken": len(taken), "of": len(found), "kinds": found, "mark": len(taken) == len(found)}


def _measured(system: str, rules: sp.Formula) -> dict[str, Any]:
    """What a constraint changes in a system.

    "violations" counts violations among 1,000 predictions of networks with random weights, with the constraint and
    without. If this is no improvement, "added loss" is what the constraint adds, on average, to the loss of 200
    confident predictions that satisfy it, and of 200 that violate it.
    """
    try:
        _trains(system, rules)
    except SemprolaError as error:
        return {"taken": False, "refused": str(error).splitlines()[0][:160]}
    broken = [_violations(system, given, rules) for given in (rules, sp.parse("true"))]
    result: dict[str, Any] = {"violations": broken, "taken": _fewer(*broken)}
    if not result["taken"]:
        added = [_added_loss(system, rules, y) for y in _vectors(rules)]
        result["added loss"] = [float(each.mean()) for each in added]
        spread = math.sqrt(sum(float(each.var()) / len(each) for each in added))
        result["taken"] = result["added loss"][1] - result["added loss"][0] > max(_ERRORS * spread, 1e-6)
    return result


def _trains(system: str, rules: sp.Formula) -> None:
    """Build the system and ask for the loss of rows that obey, and for its derivatives.

    Raises:
        SemprolaError: if the system cannot be built with this constraint, or a number is not finite.
    """
    torch.manual_seed(0)
    model = build(system, rules)
    y = torch.as_tensor(sp.compile(rules).enumerate(limit=4), dtype=torch.float32)
    loss = model.loss(torch.randn(len(y), 8), y)
    loss.backward()
    grads = [each.grad for each in model.parameters() if each.grad is not None]
    if not bool(loss.isfinite()) or not all(bool(grad.isfinite().all()) for grad in grads):
        raise SemprolaError("the loss or its derivatives are not finite")


@torch.no_grad()
def _violations(system: str, given: sp.Formula, rules: sp.Formula) -> int:
    """How many predictions of networks built with the constraint `given` break the rules."""
    labels, count = list(rules.labels), 0
    for seed in range(_NETWORKS):
        torch.manual_seed(seed)
        model = build(system, given, labels=labels)
        mode = model(3 * torch.randn(_PREDICTIONS // _NETWORKS, 8)).mode
        count += int((~torch.as_tensor(rules.evaluate(mode, labels))).sum())
    return count


def _fewer(with_it: int, without: int) -> bool:
    """Whether a constraint lowers the share of violations by more than chance."""
    shares = with_it / _PREDICTIONS, without / _PREDICTIONS
    error = math.sqrt(sum(share * (1 - share) for share in shares) / _PREDICTIONS)
    return shares[1] - shares[0] > _ERRORS * error


def _vectors(rules: sp.Formula) -> tuple[Tensor, Tensor]:
    """Random label vectors that obey the rules, and the same with labels flipped until they break the rules."""
    torch.manual_seed(0)
    labels = list(rules.labels)
    obeying = sp.constrain(torch.zeros(_VECTORS, len(labels)), sp.compile(rules)).sample()
    breaking = obeying.clone()
    while bool((holds := torch.as_tensor(rules.evaluate(breaking, labels))).any()):
        flips = torch.rand_like(breaking) < 1 / len(labels)
        breaking = torch.where(holds[:, None] & flips, 1 - breaking, breaking)
    return obeying, breaking


@torch.no_grad()
def _added_loss(system: str, rules: sp.Formula, y: Tensor) -> Tensor:
    """The loss of confident predictions of y, where y is true, minus the same loss without the constraint [rows]."""
    labels, losses = list(rules.labels), []
    for given in (rules, sp.parse("true")):
        model = build(system, given, labels=labels, width=len(labels))
        # these systems have one output per label, so let the features be the scores
        gate = [module for module in model.modules() if isinstance(module, nn.Linear)][-1]
        gate.weight.copy_(torch.eye(len(labels)))
        gate.bias.zero_()
        rows = zip(_SURE * (2 * y - 1), y, strict=True)
        losses.append(torch.stack([model.loss(scores[None], on[None]) for scores, on in rows]))
    return losses[0] - losses[1]
