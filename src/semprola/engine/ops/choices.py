"""Decoding and sampling: passes that make choices and have no derivatives."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from semprola.engine.backends import BACKENDS, select
from semprola.engine.backends.torch import choose_branches, choose_locally
from semprola.engine.literals import Literals
from semprola.engine.ops.registration import define, register_meta, register_vmap, traced, watched
from semprola.engine.ops.values import log_value
from semprola.engine.plan import Plan
from semprola.errors import SemprolaError

_FEW = 64
"""Up to this many states are searched for without first counting how many there are."""


@torch.no_grad()
def maximize(plan: Plan, weights: Tensor | None, literals: Literals) -> tuple[Tensor, Tensor]:
    """The state of largest value, by max-product and backtracking.

    Exact for deterministic circuits; otherwise the state of the best single path.

    Returns:
        states [variables, columns] and log-values [columns].
    """
    if not watched(literals.leaves, weights):
        backend = select(literals.leaves, weights)
        value, states = backend.best_states(plan, weights, literals.leaves, literals.default)
        return states, value + literals.constant
    blank = literals.leaves.new_zeros((0, literals.leaves.shape[1]))
    value, leaf_flows = _maximize(blank if weights is None else weights, literals.leaves, plan.handle)
    return _round(literals.probability_of_one(leaf_flows)), value + literals.constant


@torch.no_grad()
def bound(plan: Plan, weights: Tensor, literals: Literals) -> tuple[Tensor, Tensor]:
    """An upper bound on the largest value of a circuit with several units, and the state found along the way.

    Branches of the constraint exclude each other, so the bound maximises over them; units of one branch add up.

    Args:
        weights: [W, columns]

    Returns:
        states [variables, columns] and bounds [columns].
    """
    value, leaf_flows = _maximize_branches(weights, literals.leaves, plan.handle)
    return _round(literals.probability_of_one(leaf_flows)), value + literals.constant


@torch.no_grad()
def follow(plan: Plan, weights: Tensor, literals: Literals) -> Tensor:
    """The state reached by taking the edge of largest weight at every sum, ignoring the values below it.

    This is the decoder of the published code. It may miss the mode; it exists to reproduce published figures.

    Returns:
        states [variables, columns]
    """
    return _round(literals.probability_of_one(choose_locally(plan, weights, literals.leaves)))


@torch.no_grad()
def top_k(plan: Plan, weights: Tensor | None, leaves: Tensor, k: int) -> tuple[Tensor, Tensor]:
    """The k paths of largest value through a circuit, best first; in a deterministic circuit, each path is a state.

    Args:
        weights: [W, columns] or None.
        leaves: log-values of the literals [2 variables, columns].

    Returns:
        states [variables, n, columns] and log-values [n, columns], -inf beyond a column's last path. n is k, or fewer
        if the circuit has fewer paths.
    """
    if k > _FEW:
        k = min(k, _most_paths(plan, k))
    if traced():
        raise SemprolaError("torch.jit.trace cannot record `top_k`: trace `mode` instead")
    backend = BACKENDS[-1] if watched(leaves, weights) else select(leaves, weights)
    return backend.rank(plan, weights, leaves, k)


@define("maximize", "(Tensor weights, Tensor leaves, int plan) -> (Tensor, Tensor)")
def _maximize(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    """Largest log-values [columns], and 0/1 for the literals of a state that attains them [2 variables, columns]."""
    own = weights if len(weights) else None
    return select(leaves, own).maximize(Plan.of(plan), own, leaves)


@register_meta("maximize")
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return leaves.new_empty(leaves.shape[1]), torch.empty_like(leaves)


@define("maximize_branches", "(Tensor weights, Tensor leaves, int plan) -> (Tensor, Tensor)")
def _maximize_branches(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return choose_branches(Plan.of(plan), weights, leaves)


@register_meta("maximize_branches")
def _(weights: Tensor, leaves: Tensor, plan: int) -> tuple[Tensor, Tensor]:
    return leaves.new_empty(leaves.shape[1]), torch.empty_like(leaves)


register_vmap("maximize")
register_vmap("maximize_branches")


@torch.no_grad()
def sample(
    plan: Plan, weights: Tensor | None, literals: Literals, column: Tensor, generator: torch.Generator | None
) -> Tensor:
    """Exact samples.

    Args:
        weights: [W, columns] or None.
        column: which column each sample is drawn from [samples, batch].

    Returns:
        states [variables, samples, batch]
    """
    if traced():
        raise SemprolaError("torch.jit.trace cannot record `sample`: draw samples outside of the traced function")
    drawn_by = BACKENDS[-1] if watched(literals.leaves, weights) else select(literals.leaves, weights)
    drawn = drawn_by.sample(plan, weights, literals, column.reshape(-1), generator)
    states: Tensor = drawn.unflatten(1, column.shape)
    return states


def _most_paths(plan: Plan, enough: int) -> int:
    """The number of paths of a plan, or slightly more; `enough` if there are more."""
    (count,) = log_value(plan, None, torch.zeros((plan.num_leaves, 1), dtype=torch.float64)).tolist()
    # rounded up with a margin: a rounding error must not hide a path
    return enough if count > math.log(enough) else int(math.exp(count) * (1 + 1e-9)) + 1


def _round(values: Tensor) -> Tensor:
    return (values > 0.5).to(values.dtype)
