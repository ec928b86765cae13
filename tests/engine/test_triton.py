"""The Triton back end without a GPU: its arrays, its launches, what it compiles to, and how it falls back.

`make test-triton` runs these, and all tests of the engine, with interpreted kernels.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import zoo
from engine_cases import NAMES, numbers, plans
from torch.utils._python_dispatch import TorchDispatchMode

import semprola as sp
from semprola.engine import CircuitPlans, Plan
from semprola.engine.backends import triton as module
from semprola.engine.backends import triton_layout
from semprola.engine.backends.torch import TorchBackend
from semprola.engine.backends.triton import TritonBackend
from semprola.engine.backends.triton_layout import Layout, interpreted, tile_of

CPU = torch.device("cpu")
needs_interpreter = pytest.mark.skipif(not interpreted(), reason="needs TRITON_INTERPRET=1: see `make test-triton`")


def some_plans() -> Iterator[Plan]:
    for name in NAMES:
        yield plans(name).layer_explicit
        yield plans(name).constraint
    yield CircuitPlans(sp.compile(sp.constraints.permutation(5))).constraint
    yield CircuitPlans(zoo.case("nested_choice").circuit, 2).bound[0]


def test_the_arrays_say_what_the_skeleton_says() -> None:
    for plan in some_plans():
        layout, shape = Layout.of(plan, CPU), plan.shape
        start, factors = layout.factor_start.tolist(), layout.factors.tolist()
        row = [*range(plan.num_leaves), *plan.row_of_sum.tolist()]
        above: list[set[int]] = [set() for _ in range(plan.num_rows)]
        for edge, original in enumerate(plan.edge_order.tolist()):
            expected = {row[f] for f in shape.factors[shape.factor_start[original] : shape.factor_start[original + 1]]}
            assert set(factors[start[edge] : start[edge + 1]]) == expected
            for below in expected:
                above[below].add(edge)
        start, parents = layout.parent_start.tolist(), layout.parents.tolist()
        assert [set(parents[a:b]) for a, b in itertools.pairwise(start)] == above
        sizes = np.diff(layout.factor_start), np.diff(layout.parent_start)
        assert layout.table[:, 4].max() == max(sizes[0], default=0)
        assert layout.table[:, 5].max() == max(sizes[1], default=0)


@pytest.mark.parametrize("columns", [1, 128])
def test_every_step_is_launched_once_and_in_order(columns: int) -> None:
    for plan in some_plans():
        layout, (sums, _) = Layout.of(plan, CPU), tile_of(columns)
        up = [s for part in layout.segments(sums) for s in range(part.first, part.last)]
        assert up == list(range(1, layout.num_steps))
        down = [s for part in layout.segments_down(sums) for s in reversed(range(part.first, part.last))]
        assert down == list(reversed(range(layout.num_steps)))


def test_small_circuits_need_one_launch_and_wide_steps_have_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    sums, _ = tile_of(128)
    small = Layout.of(plans("family_paths").constraint, CPU)
    assert len(small.segments(sums)) == len(small.segments_down(sums)) == 1
    wide = Layout.of(CircuitPlans(sp.compile(sp.constraints.permutation(9))).constraint, CPU)
    parts = wide.segments(sums)
    assert max(part.programs for part in parts) > 1
    assert all(part.last == part.first + 1 for part in parts if part.programs > 1)


# kernels --------------------------------------------------------------------------------------------------------------

TYPES = {
    **dict.fromkeys(("flags",), "*i8"),
    **dict.fromkeys(("source",), "*i64"),
    **dict.fromkeys(("table", "factor_start", "factors", "parent_start", "parents"), "*i32"),
    **dict.fromkeys(("values", "weights", "d_values", "d_weights", "uniform"), "*number"),
    **dict.fromkeys(("flows", "d_flows", "literals", "d_literals"), "*number"),
    "below_one": "fp32",
}
TARGETS = [("cuda", 80, 32), ("cuda", 90, 32), ("cuda", 100, 32), ("hip", "gfx942", 64)]
KERNELS = ["upward", "downward", "alive", "upward_tangent", "downward_tangent", "drawn"]


@pytest.mark.skipif(interpreted(), reason="kernels that are interpreted are not compiled")
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target[0]}-{target[1]}")
@pytest.mark.parametrize("name", KERNELS)
@pytest.mark.filterwarnings("ignore:TRITON_DEFAULT_FP_FUSION")
def test_kernels_compile_without_a_device(name: str, target: tuple[str, Any, int]) -> None:
    triton = pytest.importorskip("triton")
    compiler = pytest.importorskip("triton.compiler")
    driver = pytest.importorskip("triton.backends.compiler")
    from semprola.engine.backends import triton_kernels

    kernel = getattr(triton_kernels, name)
    for number in ("fp32", "fp64"):
        for weighted in (True, False):
            constants = {"SUMS": 32, "COLUMNS": 32, "WEIGHTED": weighted, "MAXIMUM": not weighted}
            own = TYPES | {"flows": "*i8", "literals": "*i8"} if name == "drawn" else TYPES
            types = {a: "constexpr" if a.isupper() else own.get(a, "i32") for a in kernel.arg_names}
            source = compiler.ASTSource(
                kernel,
                {a: kind.replace("number", number) for a, kind in types.items()},
                constexprs={a: constants[a] for a, kind in types.items() if kind == "constexpr"},
            )
            made = triton.compile(source, target=driver.GPUTarget(*target), options={"num_warps": triton_layout.WARPS})
            assert made.asm["cubin" if target[0] == "cuda" else "hsaco"]
            assert "atom" not in made.asm.get("ptx", "")


@needs_interpreter
@pytest.mark.parametrize("columns", [0, 1, 5, 4096])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_batches_of_any_size(columns: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton_layout, "_INTERPRETED", (2**12, 1024))
    plan = plans("family_paths").layer_explicit
    weights, leaves = numbers(plan, columns, dtype)
    leaves[0, ::3] = -torch.inf
    found, expected = (b.evaluate(plan, weights, leaves, flows=True) for b in (TritonBackend(), TorchBackend()))
    torch.testing.assert_close(found, expected)


@needs_interpreter
def test_narrow_tiles_and_single_launches_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU: several blocks of columns, several tiles per step, programs that share a step."""
    monkeypatch.setattr(triton_layout, "_INTERPRETED", (4, 2))
    monkeypatch.setattr(triton_layout, "_LAUNCH", 1)
    plan = CircuitPlans(sp.compile(sp.constraints.permutation(3))).layer_explicit
    weights, leaves = numbers(plan, 3)
    d_weights, d_leaves = numbers(plan, 3, seed=1)
    ours, theirs = TritonBackend(), TorchBackend()
    for method, arguments in (
        ("evaluate", (weights, leaves)),
        ("tangent", (weights, leaves, d_weights, d_leaves)),
        ("maximize", (None, leaves)),
    ):
        further = {"flows": True} if method == "evaluate" else {}
        found, expected = (getattr(b, method)(plan, *arguments, **further) for b in (ours, theirs))
        torch.testing.assert_close(found, expected)
    assert len(Layout.of(plan, CPU).segments(2)) > 1
    for edges in (None, "possible", "active"):
        found, expected = (b.support(plan, leaves, edges) for b in (ours, theirs))
        assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


class _Calls(TorchDispatchMode):
    """Notes the operators that are called."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.names.append(str(func))
        return func(*args, **(kwargs or {}))


@needs_interpreter
def test_the_host_never_waits() -> None:
    """So that a pass can be captured in a CUDA graph: no number is read, no shape depends on one."""
    plan = plans("cat_dog_animal").layer_explicit
    weights, leaves = numbers(plan, 3)
    backend = TritonBackend()
    Layout.of(plan, CPU)
    with _Calls() as calls:
        backend.evaluate(plan, weights, leaves, flows=True)
        backend.tangent(plan, weights, leaves, weights, leaves)
        backend.maximize(plan, weights, leaves)
        backend.support(plan, leaves, "active")
    assert calls.names
    assert not [n for n in calls.names if any(word in n for word in ("_local_scalar", "nonzero", "item", "_to_copy"))]


def test_masks_are_copied_to_a_device_once() -> None:
    plan = plans("free_labels").constraint
    first = plan.masks(torch.device("meta"))
    assert plan.masks(torch.device("meta")) is first
    assert first[0].device.type == "meta"
    assert plan.masks(CPU)[0] is plan.suppressed


# where it does not work -----------------------------------------------------------------------------------------------


def on_gpu() -> Any:
    """What the back end looks at of a tensor on a GPU."""
    return SimpleNamespace(
        is_cuda=True, is_cpu=False, device=torch.device("cuda", 0), dtype=torch.float32, layout=torch.strided
    )


@pytest.mark.parametrize(
    ("unavailable", "failure", "words"),
    [("no module named triton; install semprola[triton]", None, "install"), (None, "Triton does not work", "not work")],
)
def test_one_warning_says_why_plain_torch_is_used(
    monkeypatch: pytest.MonkeyPatch, unavailable: str | None, failure: str | None, words: str
) -> None:
    module._warn_once.cache_clear()
    monkeypatch.setattr(module, "_unavailable", lambda: unavailable)
    monkeypatch.setattr(module, "_failure", lambda device: failure)
    with pytest.warns(UserWarning, match=words):
        assert not TritonBackend().takes([on_gpu()])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not TritonBackend().takes([on_gpu()])
    module._warn_once.cache_clear()


def test_it_takes_tensors_on_a_gpu_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_unavailable", lambda: None)
    monkeypatch.setattr(module, "_failure", lambda device: None)
    assert TritonBackend().takes([on_gpu(), on_gpu()])
    half = on_gpu()
    half.dtype = torch.float16
    assert not TritonBackend().takes([half])
    assert not TritonBackend().takes([on_gpu(), torch.zeros(1)])
    assert not TritonBackend().takes([])
