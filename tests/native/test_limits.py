"""Large numbers and failures, from Python down to the native code."""

from __future__ import annotations

import pytest
import torch

import semprola as sp
from semprola.engine import CircuitPlans, Literals
from semprola.engine.backends.library import library
from semprola.engine.backends.native import NativeBackend

needs_native = pytest.mark.skipif(library() is None, reason="semprola was built without its native module")


@pytest.mark.parametrize("engine", [pytest.param("native", marks=needs_native), "torch"])
def test_top_k_is_bounded_by_the_support(engine: str) -> None:
    """More states than there are cost no more than the array that holds them."""
    before = sp.engine.get_engine()
    sp.engine.set_engine(engine)
    try:
        torch.manual_seed(0)
        layers = [sp.SPL(3, sp.one_hot(list("abcde"))), sp.ProductSPL(3, sp.one_hot(list("abcde")))]
        for layer in layers:
            p = layer(torch.randn(2, 3))
            states, log_probs = p.top_k(300_000)
            few_states, few_log_probs = p.top_k(5)
            assert states.shape == (2, 300_000, 5)
            assert torch.equal(states[:, :5], few_states)
            torch.testing.assert_close(log_probs[:, :5], few_log_probs)
            assert bool((log_probs[:, 5:] == -torch.inf).all())
            assert torch.equal(states[:, 5:], few_states[:, :1].expand(-1, 300_000 - 5, -1))
    finally:
        sp.engine.set_engine(before)


@needs_native
def test_what_failed_is_said() -> None:
    circuit = sp.compile(sp.one_hot(list("ab")))
    plan = CircuitPlans(circuit).constraint
    leaves = torch.zeros((plan.num_leaves, 2))
    default = torch.zeros((plan.num_leaves // 2, 2))
    with pytest.raises(ValueError, match="sample: a column that does not exist"):
        NativeBackend().sample(plan, None, Literals(leaves, default[0], default), torch.tensor([0, 7]), None)


@needs_native
def test_shapes_and_types_are_checked_at_the_seam() -> None:
    plan = CircuitPlans(sp.compile(sp.one_hot(list("abc")))).layer
    backend = NativeBackend()
    leaves, weights = torch.zeros((plan.num_leaves, 2)), torch.zeros((plan.num_weights, 2))
    with pytest.raises(ValueError, match="leaves"):
        backend.evaluate(plan, None, leaves[:-1], flows=False)
    with pytest.raises(ValueError, match="weights"):
        backend.evaluate(plan, weights[:, :1], leaves, flows=False)
    with pytest.raises(ValueError, match="weights"):
        backend.maximize(plan, weights.double(), leaves)
    with pytest.raises(ValueError, match="default"):
        backend.best_states(plan, weights, leaves, torch.zeros((1, 2)))
    logits = torch.zeros((plan.num_weights - plan.num_pairs, 1, 2))
    rows = torch.zeros((plan.num_leaves // 2, 1, 2))
    with pytest.raises(ValueError, match="logits"):
        backend.likelihood(plan, logits[1:], rows, None, 3)
    with pytest.raises(ValueError, match="rows"):
        backend.likelihood(plan, logits, rows[..., :1], None, 3)
    with pytest.raises(ValueError, match="codes"):
        backend.likelihood(plan, logits, rows, torch.zeros((1, 2, 1)), 3)
    with pytest.raises(ValueError, match="cotangent"):
        backend.likelihood(plan, logits, rows, None, 3, torch.zeros((1, 1, 1)))
