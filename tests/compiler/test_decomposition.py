"""Elimination orders, widths and bucket trees against definitions, brute force and graphs of known treewidth."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import networkx as nx
import numpy as np
import pytest

from semprola.compiler import decomposition
from semprola.compiler.decomposition import bucket_tree, elimination_order, narrow_order, narrow_width
from semprola.errors import FormatError


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


def width(order: Sequence[int], cliques: Sequence[Sequence[int]]) -> int:
    return max(map(len, simulate(order, cliques).values()), default=0)


@pytest.mark.parametrize("method", ["min-fill", "min-degree"])
def test_orders_are_permutations_and_trees_follow_the_bags(method: decomposition.Method) -> None:
    rng = random.Random(0)
    for _ in range(40):
        num_vars = rng.randint(1, 14)
        cliques = random_cliques(rng, num_vars)
        order = elimination_order(num_vars, cliques, method)
        assert sorted(order) == list(range(num_vars))
        parent = bucket_tree(order, cliques)
        position = {v: i for i, v in enumerate(order)}
        for v, bag in simulate(order, cliques).items():
            assert parent[v] == (min(bag, key=position.__getitem__) if bag else -1)


@pytest.mark.parametrize("method", ["min-fill", "min-degree"])
def test_each_step_is_greedy(method: decomposition.Method) -> None:
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

        for v in elimination_order(num_vars, cliques, method):
            assert cost(v) == min(map(cost, graph))
            graph.add_edges_from(list(itertools.combinations(graph[v], 2)))
            graph.remove_node(v)


def test_a_long_chain_is_not_recursive() -> None:
    n = 20_000
    chain = [(v, v + 1) for v in range(n - 1)]
    assert narrow_width(n, chain, 1) == 1
    assert (bucket_tree(np.arange(n), chain) == [*range(1, n), -1]).all()


def test_bad_input() -> None:
    with pytest.raises(FormatError, match="clique 1: 7"):
        elimination_order(3, [[0], [7]], "min-fill")
    with pytest.raises(FormatError, match="permutation"):
        bucket_tree([0, 0], [])
    with pytest.raises(FormatError, match="clique 0: -1"):
        bucket_tree([0, 1], [[-1]])


@pytest.mark.parametrize("method", ["min-fill", "min-degree"])
def test_orders_have_the_widths_of_known_graphs(method: decomposition.Method) -> None:
    rng = random.Random(0)
    tree = [(v, rng.randrange(v)) for v in range(1, 200)]
    cycle = [(v, (v + 1) % 30) for v in range(30)]
    grid = [(6 * a + b, 6 * c + d) for (a, b), (c, d) in nx.grid_2d_graph(6, 6).edges]
    assert width(elimination_order(200, tree, method), tree) == 1
    assert width(elimination_order(30, cycle, method), cycle) == 2
    assert width(elimination_order(36, grid, method), grid) <= 7
    assert elimination_order(0, [], method) == []


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


def test_a_check_stops_every_step() -> None:
    def stop() -> None:
        raise KeyboardInterrupt

    edges = list(nx.random_regular_graph(3, 600, seed=0).edges)
    for call in (
        lambda: elimination_order(600, edges, "min-fill", check=stop),
        lambda: narrow_width(600, edges, 12, stop),
        lambda: bucket_tree(range(600), edges, stop),
    ):
        with pytest.raises(KeyboardInterrupt):
            call()


def test_no_time_is_spent_on_wide_orders():
    looks = []
    grid = [(10 * r + c, 10 * r2 + c2) for r in range(10) for c in range(10) for r2, c2 in ((r, c + 1), (r + 1, c))
            if r2 < 10 and c2 < 10]  # fmt: skip
    assert narrow_order(100, grid, 30) == elimination_order(100, grid, "min-fill")
    clique = [tuple(range(400))]
    assert narrow_order(400, clique, 64, lambda: looks.append(1)) is None
    assert len(looks) < 1500  # none of the 400 variables was eliminated
