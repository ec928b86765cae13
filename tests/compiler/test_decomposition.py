"""Elimination orders, widths and bucket trees against definitions, brute force and graphs of known treewidth."""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest

from semprola.compiler import decomposition
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.decomposition import bucket_tree, elimination_order, narrow_width, plain_order, width
from semprola.errors import FormatError

needs_native = pytest.mark.skipif(native_library() is None, reason="the native module is not built")


@pytest.fixture(params=["python", pytest.param("native", marks=needs_native)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test once with each implementation."""
    if request.param == "python":
        monkeypatch.setattr(decomposition, "native_library", lambda: None)
    return str(request.param)


def simulate(order: Sequence[int], cliques: Sequence[Sequence[int]]) -> dict[int, set[int]]:
    """The bag of each variable, found by eliminating it from a graph as in the definition."""
    graph = nx.Graph()
    graph.add_nodes_from(order)
    for clique in cliques:
        graph.add_edges_from((a, b) for a, b in itertools.combinations(clique, 2) if a != b)
    bags = {}
    for v in order:
        bags[v] = set(graph[v])
        graph.add_edges_from(itertools.combinations(bags[v], 2))
        graph.remove_node(v)
    return bags


def random_cliques(rng: random.Random, num_vars: int) -> list[list[int]]:
    return [[rng.randrange(num_vars) for _ in range(rng.randint(0, 4))] for _ in range(2 * num_vars)]


@pytest.mark.parametrize("method", ["min-fill", "min-degree"])
def test_orders_are_permutations_and_widths_are_right(backend: str, method: decomposition.Method) -> None:
    rng = random.Random(0)
    for _ in range(40):
        num_vars = rng.randint(1, 14)
        cliques = random_cliques(rng, num_vars)
        order = elimination_order(num_vars, cliques, method, tries=3)
        assert sorted(order.tolist()) == list(range(num_vars))
        bags = simulate(order.tolist(), cliques)
        assert width(order, cliques) == max(map(len, bags.values()))
        parent = bucket_tree(order, cliques)
        position = {v: i for i, v in enumerate(order.tolist())}
        for v, bag in bags.items():
            assert parent[v] == (min(bag, key=position.__getitem__) if bag else -1)


@pytest.mark.parametrize("method", ["min-fill", "min-degree"])
def test_each_step_is_greedy(backend: str, method: decomposition.Method) -> None:
    rng = random.Random(1)
    for _ in range(30):
        num_vars = rng.randint(2, 12)
        cliques = random_cliques(rng, num_vars)
        graph = nx.Graph()
        graph.add_nodes_from(range(num_vars))
        for clique in cliques:
            graph.add_edges_from((a, b) for a, b in itertools.combinations(clique, 2) if a != b)

        def cost(v: int, graph: nx.Graph = graph) -> int:
            pairs = itertools.combinations(graph[v], 2)
            return sum(not graph.has_edge(a, b) for a, b in pairs) if method == "min-fill" else len(graph[v])

        for v in elimination_order(num_vars, cliques, method).tolist():
            assert cost(v) == min(map(cost, graph))
            graph.add_edges_from(list(itertools.combinations(graph[v], 2)))
            graph.remove_node(v)


def test_known_widths(backend: str) -> None:
    tree = list(nx.random_labeled_tree(40, seed=0).edges)
    assert width(elimination_order(40, tree), tree) == 1
    cycle = list(nx.cycle_graph(30).edges)
    assert width(elimination_order(30, cycle), cycle) == 2
    assert width(elimination_order(9, [range(9)]), [range(9)]) == 8
    grid = list(nx.convert_node_labels_to_integers(nx.grid_2d_graph(5, 5)).edges)
    assert width(elimination_order(25, grid, tries=20), grid) == 5


def test_more_tries_are_never_worse(backend: str) -> None:
    edges = list(nx.gnm_random_graph(40, 90, seed=3).edges)
    widths = [width(elimination_order(40, edges, tries=t), edges) for t in (1, 5, 25)]
    assert widths == sorted(widths, reverse=True)


def test_empty_graphs(backend: str) -> None:
    assert elimination_order(0, []).tolist() == []
    assert sorted(elimination_order(3, [[], [1], [2, 2]]).tolist()) == [0, 1, 2]
    assert width([], []) == 0
    assert bucket_tree([1, 0], []).tolist() == [-1, -1]


def test_five_thousand_variables(backend: str) -> None:
    edges = list(nx.random_regular_graph(3, 1000, seed=0).edges) if backend == "python" else sparse_edges(5000)
    num_vars = 1000 if backend == "python" else 5000
    began = time.monotonic()
    order = elimination_order(num_vars, edges, "min-degree" if backend == "python" else "min-fill")
    assert time.monotonic() - began < 20
    assert width(order, edges) < num_vars // 4


def sparse_edges(num_vars: int) -> list[tuple[int, int]]:
    """A long ribbon: each variable is a neighbour of some of the thirty before it."""
    rng = random.Random(0)
    return [(v, v - rng.randint(1, 30)) for v in range(30, num_vars) for _ in range(3)]


def test_long_chain_is_not_recursive(backend: str) -> None:
    n = 20_000
    chain = [(v, v + 1) for v in range(n - 1)]
    order = elimination_order(n, chain, "min-degree")
    assert width(order, chain) == 1
    assert (bucket_tree(np.arange(n), chain) == [*range(1, n), -1]).all()


def test_bad_input(backend: str) -> None:
    with pytest.raises(FormatError, match="clique 1: 7"):
        elimination_order(3, [[0], [7]])
    with pytest.raises(FormatError, match="method"):
        elimination_order(3, [], "best")  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="tries"):
        elimination_order(3, [], tries=0)
    with pytest.raises(FormatError, match="permutation"):
        width([0, 0], [])
    with pytest.raises(FormatError, match="clique 0: -1"):
        bucket_tree([0, 1], [[-1]])


@pytest.mark.parametrize("method", ["min-fill", "min-degree"])
def test_plain_orders_have_the_widths_of_known_graphs(method: decomposition.Method) -> None:
    rng = random.Random(0)
    tree = [(v, rng.randrange(v)) for v in range(1, 200)]
    cycle = [(v, (v + 1) % 30) for v in range(30)]
    grid = [(6 * a + b, 6 * c + d) for (a, b), (c, d) in nx.grid_2d_graph(6, 6).edges]
    assert width(plain_order(200, tree, method), tree) == 1
    assert width(plain_order(30, cycle, method), cycle) == 2
    assert width(plain_order(36, grid, method), grid) <= 7
    assert plain_order(0, [], method) == []


def test_narrow_width_is_that_of_the_greedy_order_or_none() -> None:
    rng = random.Random(2)
    for _ in range(60):
        num_vars = rng.randint(1, 14)
        cliques = random_cliques(rng, num_vars)
        found = narrow_width(num_vars, cliques, num_vars)
        assert found is not None
        assert found <= max(map(len, simulate(range(num_vars), cliques).values())) or found <= num_vars
        for most in range(num_vars):
            assert narrow_width(num_vars, cliques, most) == (found if found <= most else None)


def test_a_wide_graph_is_given_up_early() -> None:
    rng = random.Random(0)
    clauses = [rng.sample(range(40_000), 3) for _ in range(60_000)]
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1

    assert narrow_width(40_000, clauses, 12, look) is None
    assert looks < 40_000  # variables eliminated before the first wide one


def test_a_check_stops_every_step(backend: str) -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    edges = list(nx.random_regular_graph(3, 600, seed=0).edges)
    order = elimination_order(600, edges, "min-degree")
    for call in (
        lambda: plain_order(600, edges, "min-fill", check=stop),
        lambda: narrow_width(600, edges, 12, stop),
        lambda: width(order, edges, stop),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()
    if backend == "python":
        with pytest.raises(KeyboardInterrupt):
            elimination_order(600, edges, check=stop)
