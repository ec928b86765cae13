"""The two engines give the same answers: every query, on the whole zoo, with every instruction set."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
import torch
import zoo
from engine_cases import numbers, plans
from selection import only

import semprola as sp
from semprola.engine import log_value, posterior
from semprola.engine.backends import select
from semprola.engine.backends.library import library

needs_native = pytest.mark.skipif(library() is None, reason="semprola was built without its native module")


@pytest.fixture(autouse=True)
def _restore() -> Iterator[None]:
    before = sp.engine.get_engine()
    yield
    sp.engine.set_engine(before)
    native = library()
    if native is not None:
        native.semprola_engine_set_level(-1)


def answers(case: zoo.Case, layer: torch.nn.Module, z: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
    """What a layer answers to all queries that depend on no random numbers, and the gradient of a loss."""
    given = None
    if case.given:
        rows = torch.cartesian_prod(*[torch.tensor([0.0, 1.0])] * len(case.given)).reshape(-1, len(case.given))
        possible = [row for row in rows if _has_model(case, row)]
        given = possible[-1].expand(len(z), -1)
    layer.zero_grad()
    p = layer(z, given=given)
    loss = p.log_prob(y)
    finite = loss[loss > -torch.inf].sum() + p.mean.square().sum() + p.log_partition.sum()
    finite.backward()
    _, log_probs = p.top_k(2)
    evidence = y.clone()
    evidence[:, 0::2] = torch.nan
    return {
        "log_prob": loss.detach(),
        "mean": p.mean.detach(),
        "mode": p.log_prob(p.mode).detach(),
        "log_marginal": p.log_marginal(evidence).detach(),
        "top_k": log_probs.detach(),
        "entropy": p.entropy_bounds()[1].detach(),
        "gradient": torch.cat([w.grad.flatten() for w in layer.parameters() if w.grad is not None]),
    }


def _has_model(case: zoo.Case, row: torch.Tensor) -> bool:
    try:
        sp.SPL(1, case.circuit)(torch.zeros(1, 1), given=row[None])
    except sp.UnsatisfiableError:
        return False
    return True


NAMES = [case.name for case in zoo.CASES]
LAYERS: dict[int, Callable[[sp.Circuit], torch.nn.Module]] = {
    0: lambda circuit: sp.SPL(3, circuit),
    1: lambda circuit: sp.SPL(3, circuit, units=2, replicas=2),
    2: lambda circuit: sp.ProductSPL(3, circuit, components=2),
}


@needs_native
@pytest.mark.parametrize(
    ("name", "layer"), only([*itertools.product(NAMES, LAYERS)], lambda pair: (NAMES.index(pair[0]) - pair[1]) % 4 == 0)
)
def test_every_query(name: str, layer: int) -> None:
    case = zoo.case(name)
    generator = torch.Generator().manual_seed(3)
    z = torch.randn((5, 3), generator=generator, dtype=torch.float64)
    y = torch.randint(0, 2, (5, len(case.columns)), generator=generator).double()
    made = LAYERS[layer](case.circuit).double()
    sp.engine.set_engine("torch")
    expected = answers(case, made, z, y)
    sp.engine.set_engine("native")
    for what, value in answers(case, made, z, y).items():
        torch.testing.assert_close(value, expected[what], msg=lambda text, what=what: f"{what}: {text}")


@needs_native
@pytest.mark.parametrize("level", [0, 1, 2], ids=["plain", "avx2", "avx512"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_instruction_sets(level: int, dtype: torch.dtype) -> None:
    native = library()
    assert native is not None
    native.semprola_engine_set_level(level)
    if native.semprola_engine_level() < level:
        pytest.skip("this processor lacks them")
    for name in ("nested_choice", "family_paths", "many_models"):
        for units in (1, 2):
            plan = plans(name, units).layer
            for columns in (1, 19, 130):
                weights, leaves = (4 * t for t in numbers(plan, columns, dtype))
                leaves[torch.rand(leaves.shape) < 0.2] = -torch.inf
                sp.engine.set_engine("torch")
                value, flows = log_value(plan, weights, leaves), posterior(plan, weights, leaves)
                sp.engine.set_engine("native")
                torch.testing.assert_close(log_value(plan, weights, leaves), value)
                torch.testing.assert_close(posterior(plan, weights, leaves), flows)


@needs_native
def test_threads_change_nothing() -> None:
    plan = plans("many_models").layer
    weights, leaves = numbers(plan, 2_500_000 // plan.num_edges)  # enough work for threads to be started
    one = log_value(plan, weights, leaves)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert torch.equal(log_value(plan, weights, leaves), one)
    finally:
        torch.set_num_threads(threads)


def test_names_of_engines() -> None:
    with pytest.raises(ValueError, match="'auto', 'native', 'triton', 'torch'"):
        sp.engine.set_engine("cuda")
    sp.engine.set_engine("torch")
    assert sp.engine.get_engine() == "torch"
    assert select(torch.zeros(1)).name == "torch"


def test_half_precision_and_mixed_types_go_through_torch() -> None:
    sp.engine.set_engine("auto")
    assert select(torch.zeros(1, dtype=torch.float16)).name == "torch"
    assert select(torch.zeros(1), torch.zeros(1, dtype=torch.float64)).name == "torch"


def test_without_the_native_module(tmp_path: object) -> None:
    """A library that cannot be loaded leaves torch; asking for the native engine says what to do."""
    code = """
import semprola as sp, torch
layer = sp.SPL(2, sp.one_hot(["a", "b", "c"]))
assert sp.engine.backends.library.library() is None
assert layer(torch.zeros(1, 2)).mode.sum() == 1
try:
    sp.engine.set_engine("native")
except sp.SemprolaError as error:
    assert "reinstall" in str(error)
else:
    raise SystemExit("no error")
"""
    environment = os.environ | {"SEMPROLA_NATIVE_LIBRARY": f"{tmp_path}/missing.so"}
    subprocess.run([sys.executable, "-c", code], env=environment, check=True)


@pytest.mark.usefixtures("each_engine")
@pytest.mark.parametrize("make", [sp.SPL, sp.ProductSPL])
def test_partial_observations_in_one_pass(make: type[torch.nn.Module]) -> None:
    """Many samples at once give the sums over all completions, and the gradients of them."""
    layer = make(3, sp.constraints.cardinality(list("abcd"), at_least=1, at_most=2), components=2).double()
    z = torch.randn(5, 3, dtype=torch.float64)
    evidence = torch.randint(0, 2, (7, 5, 4)).double().masked_fill(torch.rand(7, 5, 4) < 0.6, torch.nan)
    evidence[0] = torch.nan
    evidence[1] = 1.0  # four ones are too many
    found = layer(z).log_marginal(evidence)
    p = layer(z)
    states = p.enumerate_support()[:, None]
    fits = ((states == evidence) | evidence.isnan()).all(-1)
    log_probs = p.log_prob(states[:, 0])[:, None].expand(fits.shape).masked_fill(~fits, -torch.inf)
    expected = log_probs.exp().sum(0)
    torch.testing.assert_close(found.exp(), expected)
    assert bool((found[1] == -torch.inf).all())
    weights = torch.randn_like(expected)
    slopes = [torch.autograd.grad((v * weights).sum(), list(layer.parameters())) for v in (found.exp(), expected)]
    torch.testing.assert_close(*slopes)
    torch.testing.assert_close(found[3], layer(z).log_marginal(evidence[3]))
