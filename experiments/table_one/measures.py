"""One function per desideratum: what is measured of a system, and whether that earns the mark."""

from __future__ import annotations

import itertools
import math
import time
from typing import Any

import networkx as nx
import torch
from torch import Tensor
from torch.nn import functional as F

import semprola as sp
from experiments.table_one.systems import backbones, build, takes_constraints
from semprola.errors import IntractableError, SemprolaError

ANIMALS = "(cat -> animal) & (dog -> animal)"
_SIZES = (32, 64, 128, 256, 512)
_SLOPE = 1.5
"""Largest exponent of time against size that counts as efficient; a quadratic method has 2."""


def probabilistic(system: str) -> dict[str, Any]:
    """D1: probabilities of all label vectors sum to one, and the loss depends on what a rule means, not on its form."""
    torch.manual_seed(0)
    rules = sp.parse(ANIMALS)
    model = build(system, rules)
    every = _every(3)
    try:
        with torch.no_grad():
            log_prob = model(torch.randn(1, 8).expand(len(every), -1)).log_prob(every)
        gap: float | None = float((log_prob.exp().sum() - 1).abs())
    except IntractableError:
        gap = None
    again = sp.parse("(cat -> animal) & (dog -> animal) & (cat & dog -> animal)")
    losses = [_first_loss(system, form, rules.labels(), every[:1]) for form in (rules, again)]
    same = math.isclose(*losses, rel_tol=1e-4)
    mark = gap is not None and gap < 1e-4 and same
    return {"sums to one within": gap, "loss depends on meaning alone": same, "mark": mark}


def expressive(system: str) -> dict[str, Any]:
    """D2: two label vectors that differ everywhere, equally likely for the same input: can the system say so?"""
    torch.manual_seed(0)
    labels = ["a", "b", "c", "d"]
    # a rule that both vectors obey and that does not single them out
    rules = sp.parse("!a & !b & !c -> d")
    model = build(system, rules, labels=labels, width=1, components=2)
    y = torch.tensor([[0.0, 0.0, 1.0, 1.0], [1.0, 1.0, 0.0, 0.0]]).repeat(32, 1)
    x = torch.zeros(64, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(300):
        optimizer.zero_grad()
        model.loss(x, y).backward()
        optimizer.step()
    p = model(torch.zeros(2000, 1))
    drawn = _drawn(p)
    if drawn is None:
        return {"right samples": None, "mark": False}
    right = float(((drawn == y[0]).all(1) | (drawn == y[1]).all(1)).float().mean())
    return {"right samples": round(100 * right, 1), "mark": right > 0.9}


def consistent(system: str) -> dict[str, Any]:
    """D3: predictions that break the rules, of random networks and of networks trained to break them."""
    rules = sp.parse("(cat -> animal) & (animal & !cat -> other) & (dog -> animal)")
    labels = rules.labels()
    every = _every(len(labels))
    broken = every[~torch.as_tensor(rules.evaluate(every, labels))]
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
    return {
        "random": counts["random"],
        "adversarial": counts["adversarial"],
        "of": total,
        "mark": not any(counts.values()),
    }


def constraint_kinds() -> dict[str, Any]:
    """Constraints of the kinds that users write."""
    letters = list("abcdef")
    rng = torch.Generator().manual_seed(0)
    clauses = []
    for _ in range(12):
        picked = torch.randperm(6, generator=rng)[:3].tolist()
        signs = torch.randint(2, (3,), generator=rng).tolist()
        clauses.append(
            sp.Or(*[sp.Bool(letters[i]) if s else ~sp.Bool(letters[i]) for i, s in zip(picked, signs, strict=True)])
        )
    return {
        "cat/dog/animal": sp.parse(ANIMALS),
        "hierarchy": sp.constraints.hierarchy([("b", "a"), ("c", "a"), ("d", "b"), ("e", "b")]),
        "one-hot": sp.one_hot(letters),
        "permutation": sp.constraints.permutation(4),
        "path": sp.constraints.simple_paths(nx.grid_2d_graph(3, 3), source=(0, 0), target=(2, 2)),
        "arithmetic": sp.constraints.linear({"a": 3, "b": 2, "c": 2, "d": 1}, "<=", 4),
        "random CNF": sp.And(*clauses),
        "CNF, 2^40 terms": sp.And(*[sp.Bool(f"a{i}") | sp.Bool(f"b{i}") for i in range(40)]),
    }


def general(system: str) -> dict[str, Any]:
    """D4: which kinds of constraints the system takes."""
    refused: dict[str, str] = {}
    kinds = constraint_kinds()
    for name, rules in kinds.items():
        try:
            takes_constraints(system)
            model = build(system, rules)
            y = torch.as_tensor(sp.compile(rules).enumerate(limit=4), dtype=torch.float32)
            if not bool(model.loss(torch.randn(len(y), 8), y).isfinite()):
                refused[name] = "the loss is not finite"
        except SemprolaError as error:
            refused[name] = str(error).splitlines()[0][:160]
    return {"accepted": len(kinds) - len(refused), "of": len(kinds), "refused": refused, "mark": not refused}


def modular(system: str) -> dict[str, Any]:
    """D5: one call on three networks, each of which learns by gradient descent."""
    learnt = []
    for name, (backbone, x) in backbones(8).items():
        torch.manual_seed(0)
        model = build(system, sp.parse(ANIMALS), backbone=backbone)
        y = torch.tensor([[1.0, 1.0, 0.0]]).expand(len(x), -1)
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        first = float(model.loss(x, y).detach())
        for _ in range(30):
            optimizer.zero_grad()
            model.loss(x, y).backward()
            optimizer.step()
        if float(model.loss(x, y).detach()) < first:
            learnt.append(name)
    return {"backbones": learnt, "mark": len(learnt) == 3}


def efficient(system: str) -> dict[str, Any]:
    """D6: seconds of a step against the size of the constraint; the exponent is the slope on log-log paper."""
    seconds: dict[int, float] = {}
    refused = ""
    for size in _SIZES:
        rules = sp.And(*[~sp.Bool(f"a{i}") >> sp.Bool(f"b{i}") for i in range(size)])
        try:
            model = build(system, rules)
        except SemprolaError as error:
            refused = str(error).splitlines()[0][:160]
            break
        x, y = torch.randn(32, 8), torch.ones(32, 2 * size)
        seconds[size] = min(_step_seconds(model, x, y) for _ in range(5))
    slope = _slope(seconds) if len(seconds) > 2 else None
    mark = not refused and slope is not None and slope <= _SLOPE
    return {"seconds": seconds, "exponent": slope, "refused": refused, "mark": mark}


def _step_seconds(model: Any, x: Tensor, y: Tensor) -> float:
    began = time.process_time()
    model.loss(x, y).backward()
    return time.process_time() - began


def _slope(seconds: dict[int, float]) -> float:
    """Least-squares slope of log seconds over log size, of the upper half, where fixed costs do not hide it."""
    points = [(math.log(size), math.log(max(value, 1e-6))) for size, value in seconds.items()][len(seconds) // 2 - 1 :]
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points, strict=True))
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return float(round(covariance / sum((x - mean_x) ** 2 for x, _ in points), 2))


def _every(labels: int) -> Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)))


def _first_loss(system: str, rules: Any, labels: Any, y: Tensor) -> float:
    """The loss of a row, with parameters and features that are the same in every call."""
    torch.manual_seed(1)
    model = build(system, rules, labels=labels)
    with torch.no_grad():
        return float(model.loss(torch.randn(1, 8), y))


def _drawn(p: Any) -> Tensor | None:
    """One sample per row; of a system that cannot sample, nothing."""
    try:
        drawn: Tensor = p.sample()
    except IntractableError:
        return None
    return drawn


def _violations(rules: Any, labels: Any, mode: Tensor) -> int:
    return int((~torch.as_tensor(rules.evaluate(mode, labels))).sum())
