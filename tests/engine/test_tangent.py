"""How flows change along a change of weights and leaves: all back ends and instruction sets agree with differences."""

from __future__ import annotations

import engine_circuits
import pytest
import torch
from torch import Tensor

import semprola as sp
from semprola.engine import CircuitPlans, Plan
from semprola.engine.backends import native
from semprola.engine.backends.library import library
from semprola.engine.backends.native import NativeBackend
from semprola.engine.backends.torch import TorchBackend

needs_native = pytest.mark.skipif(library() is None, reason="the native module was not built")
BATCHES = (0, 1, 5, 16, 70)
CIRCUITS = engine_circuits.CIRCUITS | {"one model": lambda: CircuitPlans(sp.compile("a & !b"))}


@pytest.fixture(params=CIRCUITS)
def plan(request: pytest.FixtureRequest) -> Plan:
    torch.manual_seed(1)
    return CIRCUITS[request.param]().layer


def problem(plan: Plan, batch: int, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Weights, leaves and their changes; some literals are impossible, some columns have no possible state."""
    shapes = [(plan.num_weights, batch), (plan.num_leaves, batch)]
    weights, leaves, d_weights, d_leaves = (torch.randn(shape, dtype=dtype) for shape in (*shapes, *shapes))
    leaves[torch.rand(leaves.shape) < 0.15] = -torch.inf
    leaves[:, ::5] = leaves[:, ::5].nan_to_num(neginf=0.5)
    leaves[:, 3::7] = -torch.inf
    return [weights, leaves, d_weights, d_leaves]


@pytest.mark.parametrize("batch", BATCHES)
def test_flows_change_as_differences_say(plan: Plan, batch: int) -> None:
    weights, leaves, d_weights, d_leaves = problem(plan, batch)
    backend, step = TorchBackend(), 1e-6
    edges, literals = backend.tangent(plan, weights, leaves, d_weights, d_leaves)
    sides = [
        backend.evaluate(plan, weights + sign * step * d_weights, leaves + sign * step * d_leaves, flows=True)
        for sign in (1, -1)
    ]
    for found, ahead, behind in zip((edges, literals), sides[0][1:], sides[1][1:], strict=True):
        assert found is not None
        assert ahead is not None
        assert behind is not None
        torch.testing.assert_close(found, (ahead - behind) / (2 * step), rtol=1e-6, atol=1e-7)


@needs_native
@pytest.mark.parametrize("level", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("batch", BATCHES)
def test_native_kernels_agree_with_torch(plan: Plan, batch: int, dtype: torch.dtype, level: int) -> None:
    module = library()
    assert module is not None
    module.semprola_engine_set_level(level)
    try:
        weights, leaves, d_weights, d_leaves = problem(plan, batch, dtype)
        for own, change in ((weights, d_weights), (None, None)):
            right = TorchBackend().tangent(plan, own, leaves, change, d_leaves)
            found = NativeBackend().tangent(plan, own, leaves, change, d_leaves)
            torch.testing.assert_close(found, right, rtol=1e-4, atol=1e-5)
            turned = NativeBackend().tangent(plan, own, _turned(leaves), change, _turned(d_leaves))
            torch.testing.assert_close(turned, found)
    finally:
        module.semprola_engine_set_level(-1)


def _turned(values: Tensor) -> Tensor:
    """The same numbers with another memory layout."""
    return values.T.contiguous().T


@needs_native
def test_large_values_stay_finite(plan: Plan) -> None:
    weights, leaves, d_weights, d_leaves = problem(plan, 12, torch.float32)
    edges, literals = NativeBackend().tangent(plan, 1e4 * weights, 1e4 * leaves, d_weights, d_leaves)
    assert edges is not None
    assert edges.isfinite().all()
    assert literals.isfinite().all()


@needs_native
def test_shapes_are_checked(plan: Plan) -> None:
    weights, leaves, d_weights, d_leaves = problem(plan, 3)
    for arguments in (
        (weights, leaves, d_weights, d_leaves[:, :2]),
        (weights, leaves, d_weights[:, :2], d_leaves),
        (weights, leaves, None, d_leaves),
        (None, leaves, d_weights, d_leaves),
        (weights, leaves, d_weights.float(), d_leaves),
    ):
        with pytest.raises(ValueError, match="the circuit needs"):
            NativeBackend().tangent(plan, *arguments)


@needs_native
def test_large_plans_take_the_general_way(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = problem(plan, 4)
    right = NativeBackend().tangent(plan, *arguments)
    monkeypatch.setattr(native, "_MOST_KEPT", 0)
    torch.testing.assert_close(NativeBackend().tangent(plan, *arguments), right)
