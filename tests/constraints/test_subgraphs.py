from __future__ import annotations

import json
import random

import networkx as nx
import numpy as np
import pytest

from semprola.constraints import matchings, spanning_trees
from semprola.errors import LabelError


def test_small_graphs(agrees):
    chance = random.Random(4)
    for seed in range(40):
        graph = nx.gnp_random_graph(chance.randint(2, 6), 0.55, seed=seed)
        if seed % 5 == 0:
            graph.add_edge(0, 0)
        if 0 < graph.number_of_edges() <= 11:
            agrees(spanning_trees(graph))
            agrees(matchings(graph))
            agrees(matchings(graph, perfect=True))


def test_matrix_tree_theorem():
    for seed in range(6):
        graph = nx.gnp_random_graph(8, 0.5, seed=seed)
        if nx.is_connected(graph):
            laplacian = _laplacian(graph)
            expected = round(np.linalg.det(laplacian[1:, 1:]))
            assert spanning_trees(graph).to_circuit().model_count() == expected


def _laplacian(graph):
    result = np.zeros((len(graph), len(graph)))
    for u, v in graph.edges:
        result[[u, v], [u, v]] += 1
        result[[u, v], [v, u]] -= 1
    return result


def test_published_counts(shared_data):
    counts = json.loads((shared_data / "oracles" / "oeis_counts.json").read_text())
    for side in range(2, 7):
        trees = spanning_trees(nx.grid_2d_graph(side, side)).to_circuit()
        assert trees.model_count() == counts["A007341"]["values"][side - 1]
    for half in range(1, 5):
        tilings = matchings(nx.grid_2d_graph(2 * half, 2 * half), perfect=True).to_circuit()
        assert tilings.model_count() == counts["A004003"]["values"][half]


def test_famous_counts():
    assert spanning_trees(nx.complete_graph(7)).to_circuit().model_count() == 7**5
    assert matchings(nx.complete_graph(8), perfect=True).to_circuit().model_count() == 105
    assert matchings(nx.path_graph(10)).to_circuit().model_count() == 89
    assert matchings(nx.grid_2d_graph(8, 8), perfect=True).to_circuit().model_count() == 12988816


def test_errors():
    with pytest.raises(LabelError, match="must be undirected"):
        spanning_trees(nx.DiGraph([(0, 1)]))
    with pytest.raises(LabelError, match="must be undirected"):
        matchings(nx.DiGraph([(0, 1)]))


def test_description():
    graph = nx.path_graph(3)
    assert repr(spanning_trees(graph)) == "spanning_trees(3 nodes, 2 edges)"
    assert repr(matchings(graph, perfect=True)) == "matchings(3 nodes, 2 edges, perfect)"
    assert matchings(graph) != matchings(graph, perfect=True)
