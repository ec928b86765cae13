"""Small plans and numbers for them, shared by the tests of the engine; and values by plain enumeration."""

from __future__ import annotations

import itertools
import math

import torch
import zoo
from torch import Tensor

from semprola.engine import CircuitPlans, Plan
from semprola.engine.skeleton import Skeleton

INF = float("inf")
NAMES = ("cat_dog_animal", "free_labels", "exactly_two_of_five", "nested_choice", "family_paths", "family_hierarchy")


def plans(name: str, units: int = 1) -> CircuitPlans:
    return CircuitPlans(zoo.case(name).circuit, units)


def numbers(plan: Plan, columns: int = 3, dtype: torch.dtype = torch.float64, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Random log-weights [W, columns] and literal scores [2 variables, columns]."""
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn((plan.num_weights, columns), generator=generator, dtype=dtype)
    return weights, torch.randn((plan.num_leaves, columns), generator=generator, dtype=dtype)


def value(shape: Skeleton, edge_weight: list[float], leaf: list[float]) -> float:
    """The skeleton's value in linear space, sum by sum and edge by edge."""
    known = [math.exp(x) for x in leaf] + [math.nan] * shape.num_sums
    pending = [shape.root]
    while pending:
        s = pending[-1]
        edges = range(int(shape.edge_start[s]), int(shape.edge_start[s + 1]))
        factors = {e: shape.factors[shape.factor_start[e] : shape.factor_start[e + 1]].tolist() for e in edges}
        missing = [f for fs in factors.values() for f in fs if math.isnan(known[f])]
        if missing:
            pending.extend(f - shape.num_leaves for f in missing)
            continue
        known[shape.num_leaves + s] = sum(
            math.exp(edge_weight[e]) * math.prod(known[f] for f in fs) for e, fs in factors.items()
        )
        pending.pop()
    return known[shape.num_leaves + shape.root]


def plan_value(plan: Plan, weights: Tensor | None, leaves: Tensor) -> Tensor:
    """Log-values [columns] of a plan by :func:`value`."""
    results = []
    for column in range(leaves.shape[1]):
        edge_weight = [0.0] * plan.num_edges
        if weights is not None:
            for position in range(plan.num_fixed, plan.num_edges):
                edge_weight[plan.edge_order[position]] = weights[position - plan.num_fixed, column].item()
        results.append(math.log(value(plan.shape, edge_weight, leaves[:, column].tolist())))
    return torch.tensor(results, dtype=torch.float64)


def states(plan: Plan) -> Tensor:
    """All states of the plan's variables [variables, 2^variables]."""
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=plan.shape.num_variables)), dtype=torch.float64).T


def leaves_of(rows: Tensor) -> Tensor:
    """Literal scores that allow only the given states [2 variables, columns]."""
    allowed = torch.stack([rows == 0, rows == 1], dim=1).flatten(0, 1)
    return torch.zeros(allowed.shape, dtype=rows.dtype).masked_fill(~allowed, -INF)
