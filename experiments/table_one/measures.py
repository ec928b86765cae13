"""D1, D3 and D5: what is measured of a system, and the rule by which that earns the mark."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

import semprola as sp
from experiments.table_one.kinds import ANIMALS, constraint_kinds
from experiments.table_one.systems import backbones, build, every
from semprola.errors import SemprolaError

_ENUMERABLE = 6
"""Labels of the largest constraint whose label vectors are all asked for."""
_GAP = 1e-4
_WRITINGS = (
    ANIMALS,
    "(cat -> animal) & (dog -> animal) & (cat & dog -> animal)",
    "animal | !cat & !dog",
    "cat & dog & animal | cat & !dog & animal | !cat & dog & animal | !cat & !dog & animal | !cat & !dog & !animal",
)
"""One constraint, written in four ways."""


def probabilistic(system: str) -> dict[str, Any]:
    """D1: the probabilities of all label vectors sum to one, and the loss depends on a constraint's meaning, not form.

    What the loss adds to the negative log-likelihood must be the same for all ways to write the constraint.
    """
    gaps = []
    for rules in constraint_kinds().values():
        if len(rules.labels) <= _ENUMERABLE and (gap := _gap(system, rules)) is not None:
            gaps.append(gap)
    if not gaps:
        return {"sum off by": None, "cases": 0, "writings differ by": None, "mark": False}
    added = [_added(system, sp.parse(text)) for text in _WRITINGS]
    spread = max(added) - min(added)
    mark = max(gaps) < _GAP and spread < _GAP
    return {"sum off by": max(gaps), "cases": len(gaps), "writings differ by": spread, "mark": mark}


def consistent(system: str) -> dict[str, Any]:
    """D3: no prediction breaks the rules, neither of random networks nor of networks trained to break them."""
    rules = sp.parse("(cat -> animal) & (animal & !cat -> other) & (dog -> animal)")
    labels = rules.labels
    states = every(len(labels))
    broken = states[~torch.as_tensor(rules.evaluate(states, labels))]
    counts = {"random": 0, "adversarial": 0}
    total = 0
    for seed in range(10):
        torch.manual_seed(seed)
        model = build(system, rules)
        x = 3 * torch.randn(200, 8)
        counts["random"] += _violations(rules, labels, model(x).mode)
        target = broken[torch.randint(len(broken), (1,))].expand(200, -1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(60):
            optimizer.zero_grad()
            F.binary_cross_entropy(model(x).mean.clamp(1e-6, 1 - 1e-6), target).backward()
            optimizer.step()
        counts["adversarial"] += _violations(rules, labels, model(x).mode)
        total += 200
    return {**counts, "of": total, "mark": not any(counts.values())}


def modular(system: str) -> dict[str, Any]:
    """D5: one call on three networks; the loss of each falls, and its first layer learns."""
    learnt = []
    for name, (backbone, x) in backbones(8).items():
        torch.manual_seed(0)
        model = build(system, sp.parse(ANIMALS), backbone=backbone)
        first_layer = next(backbone.parameters())
        before = first_layer.detach().clone()
        y = torch.tensor([[1.0, 1.0, 0.0]]).expand(len(x), -1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        losses = []
        for _ in range(30):
            optimizer.zero_grad()
            loss = model.loss(x, y)
            loss.backward()
            optimizer.step()
            losses.append(float(loss.detach()))
        if losses[-1] < losses[0] and not torch.equal(before, first_layer.detach()):
            learnt.append(name)
    return {"backbones": learnt, "of": 3, "mark": len(learnt) == 3}


@torch.no_grad()
def _gap(system: str, rules: sp.Formula) -> float | None:
    """How far the sum of the probabilities is from one; None for systems that refuse the rules or have none."""
    torch.manual_seed(0)
    states = every(len(rules.labels))
    try:
        log_prob = build(system, rules)(torch.randn(1, 8).expand(len(states), -1)).log_prob(states)
    except SemprolaError:
        return None
    return float((log_prob.exp().sum() - 1).abs())


@torch.no_grad()
def _added(system: str, rules: sp.Formula) -> float:
    """The loss of a row minus its negative log-likelihood, with the same parameters in every call."""
    torch.manual_seed(1)
    x, y = torch.randn(1, 8), torch.zeros(1, 3)
    model = build(system, rules, labels=["cat", "animal", "dog"])
    return float(model.loss(x, y) + model(x).log_prob(y).mean())


def _violations(rules: sp.Formula, labels: Any, mode: Tensor) -> int:
    return int((~torch.as_tensor(rules.evaluate(mode, labels))).sum())
