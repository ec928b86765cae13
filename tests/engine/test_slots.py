"""Native passes whose sums share memory: random plans of many shapes against the torch back end, on every level."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

import semprola as sp
from semprola.engine import CircuitPlans, Plan
from semprola.engine.backends import BACKENDS
from semprola.engine.backends.library import library
from semprola.engine.skeleton import Skeleton

NATIVE, TORCH = BACKENDS[0], BACKENDS[-1]
EXACT = {torch.float32: {"rtol": 1e-3, "atol": 2e-4}, torch.float64: {"rtol": 1e-8, "atol": 1e-9}}
pytestmark = pytest.mark.skipif(not NATIVE.is_present(), reason="semprola was built without its native module")


@pytest.fixture(params=[0, 1, 2], ids=["plain", "AVX2", "AVX-512"])
def level(request: pytest.FixtureRequest) -> Iterator[int]:
    native = library()
    assert native is not None
    native.semprola_engine_set_level(request.param)
    yield request.param
    native.semprola_engine_set_level(-1)


def skeleton(sums: list[list[list[int]]], variables: int) -> Skeleton:
    """From the edges of each sum, as lists of factors; sum i is 2 * variables + i, and the first is the root."""
    edges = [edge for edges in sums for edge in edges]
    return Skeleton(
        num_variables=variables,
        edge_start=np.cumsum([0, *map(len, sums)], dtype=np.int32),
        factor_start=np.cumsum([0, *map(len, edges)], dtype=np.int32),
        factors=np.array([factor for edge in edges for factor in edge], dtype=np.int32),
        root=0,
        mentioned=np.ones(variables, dtype=bool),
        suppressed=np.zeros(variables, dtype=bool),
    )


def anything(seed: int, sums: int = 40, variables: int = 6, reach: int = 12) -> Plan:
    """Sums of 1 to 9 edges of 0 to 4 factors, any literals and any sums not far below; some sums are not used."""
    draw = random.Random(seed)

    def edge(s: int) -> list[int]:
        below = [2 * variables + t for t in range(s + 1, min(sums, s + 1 + reach))]
        some = draw.sample(below, min(len(below), draw.choice((0, 1, 1, 2))))
        return some + draw.sample(range(2 * variables), draw.choice((0, 1, 1, 2)))

    return Plan(skeleton([[edge(s) for _ in range(draw.randint(1, 9))] for s in range(sums)], variables))


def chain(length: int, variables: int = 5) -> Plan:
    """Each sum uses the next twice: two slots are enough for all of them."""
    first = 2 * variables

    def edges(s: int) -> list[list[int]]:
        on = s % variables
        return [[2 * on + side, *([first + s + 1] if s + 1 < length else [])] for side in range(2)]

    return Plan(skeleton([edges(s) for s in range(length)], variables))


def late(sums: int = 30, variables: int = 4) -> Plan:
    """The root uses all sums, so that none of their slots becomes free."""
    first = 2 * variables
    root = [[first + s, s % first] for s in range(1, sums)]
    return Plan(
        skeleton([root, *([[s % first], [(s + 3) % first], [(s + 5) % first]] for s in range(1, sums))], variables)
    )


PLANS = {
    **{f"anything {seed}": (lambda seed=seed: anything(seed)) for seed in range(6)},
    "chain": lambda: chain(200),
    "late": late,
    "paths": lambda: CircuitPlans(sp.compile(sp.constraints.simple_paths(grid(), source=0, target=8))).layer_explicit,
    "permutation": lambda: CircuitPlans(sp.compile(sp.constraints.permutation(5))).layer_explicit,
}


def grid() -> object:
    import networkx as nx

    return nx.convert_node_labels_to_integers(nx.grid_2d_graph(3, 3))


def scores(plan: Plan, columns: int, dtype: torch.dtype, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Weights and leaves; a tenth of the literals, and all in the last column, are impossible."""
    generator = torch.Generator().manual_seed(seed)
    leaves = torch.randn((plan.num_leaves, columns), generator=generator, dtype=dtype)
    dead = torch.rand(leaves.shape, generator=generator) < 0.1
    dead[:, 0], dead[:, -1] = False, columns > 1
    weights = torch.randn((plan.num_weights, columns), generator=generator, dtype=dtype)
    return weights, leaves.masked_fill(dead, -torch.inf)


def compare(plan: Plan, weights: Tensor | None, leaves: Tensor) -> None:
    exact = TORCH.evaluate(plan, None if weights is None else weights.double(), leaves.double(), flows=True)
    expected = tuple(None if part is None else part.to(leaves.dtype) for part in exact)
    found = NATIVE.evaluate(plan, weights, leaves, flows=True)
    torch.testing.assert_close(found, expected, **EXACT[leaves.dtype])
    value, _, _ = NATIVE.evaluate(plan, weights, leaves, flows=False)
    torch.testing.assert_close(value, expected[0], **EXACT[leaves.dtype])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", PLANS)
def test_values_and_flows(name: str, dtype: torch.dtype, level: int) -> None:
    plan = PLANS[name]()
    for columns in (1, 3, 19, 33, 70):
        weights, leaves = scores(plan, columns, dtype)
        compare(plan, weights, leaves)
        compare(plan, None, leaves)


def test_the_same_memory_again(level: int) -> None:
    """Nothing remains of an earlier pass, of another plan or with other numbers."""
    plans = [anything(7), chain(50), late()]
    for turn in range(3):
        for plan in plans:
            weights, leaves = scores(plan, 40, torch.float32, turn)
            compare(plan, weights, leaves)
            compare(plan, None, torch.full_like(leaves, -torch.inf))


def test_bad_numbers_stay_in_their_column(level: int) -> None:
    plan = anything(3)
    weights, leaves = scores(plan, 40, torch.float64)
    leaves[leaves == -torch.inf] = -1.0
    clean = NATIVE.evaluate(plan, weights, leaves, flows=True)
    bad = leaves.clone()
    bad[:, 5] = torch.nan
    found = NATIVE.evaluate(plan, weights, bad, flows=True)
    assert found[0][5].isnan()
    others = torch.arange(40) != 5
    for one, other in zip(found, clean, strict=True):
        assert torch.equal(one[..., others], other[..., others])


@pytest.mark.parametrize("threads", [1, 2])
def test_many_columns_with_threads(threads: int) -> None:
    plan = anything(1, sums=400, reach=60)
    weights, leaves = scores(plan, 777, torch.float32)
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        compare(plan, weights, leaves)
    finally:
        torch.set_num_threads(before)


def test_extreme_scores(level: int) -> None:
    """Shares of edges that differ by more than the range of numbers."""
    plan = anything(2)
    weights, leaves = scores(plan, 20, torch.float64)
    compare(plan, 1e3 * weights, 1e4 * leaves)
    _, single = scores(plan, 20, torch.float32)
    value, edges, literals = NATIVE.evaluate(plan, None, 1e4 * single, flows=True)
    assert edges is None
    assert literals is not None
    assert literals.isfinite().all()
    assert not value.isnan().any()
