from __future__ import annotations

import random

import networkx as nx
import numpy as np
import pytest
import torch

import semprola as sp
from semprola.constraints import hierarchy, hierarchy_mode
from semprola.errors import LabelError


def _random_graph(chance, count):
    graph = nx.DiGraph()
    graph.add_nodes_from(f"n{i}" for i in range(count))
    graph.add_edges_from((f"n{i}", f"n{j}") for i in range(count) for j in range(i) if chance.random() < 0.3)
    return graph


@pytest.mark.parametrize("nonempty", [False, True])
def test_against_all_models(nonempty):
    chance, numbers = random.Random(1), np.random.default_rng(1)
    for _ in range(60):
        rule = hierarchy(_random_graph(chance, chance.randint(1, 9)), edges="child-parent", nonempty=nonempty)
        models = rule.to_circuit().enumerate()
        logits = numbers.normal(chance.choice([-2, -0.5, 0.5]), 2, (8, len(rule.names)))
        found = hierarchy_mode(logits, rule)
        assert rule.evaluate(found).all()
        np.testing.assert_allclose((logits * found).sum(axis=1), (logits @ models.T).max(axis=1))


def test_against_the_circuit():
    chance = random.Random(2)
    edges = [(f"n{i}", f"n{j}") for i in range(1, 80) for j in {chance.randrange(i), chance.randrange(i // 2 + 1)}]
    rule = hierarchy(edges, edges="child-parent")
    logits = torch.randn(16, len(rule.names), dtype=torch.float64) * 3
    p = sp.constrain(logits, rule)
    found = hierarchy_mode(logits, rule)
    assert found.dtype == logits.dtype
    torch.testing.assert_close(found, p.mode.to(found.dtype))


def test_ties_take_the_smallest_set():
    assert hierarchy_mode(np.zeros((2, 3)), [("a", "b"), ("c", "b")]).tolist() == [[0, 0, 0], [0, 0, 0]]
    assert hierarchy_mode([3.0, -3.0], [("a", "b")]).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("logits", "options", "words"),
    [
        ([1.0, 2.0], {}, r"shape \[2\] for 3 labels"),
        ([[0.0, 0.0, 0.0], [1.0, float("nan"), 2.0]], {}, "row 1 is not finite"),
        ([1.0, 2.0, 3.0], {"mandatory_leaf": True}, "only nonempty= is possible"),
    ],
)
def test_errors(logits, options, words):
    with pytest.raises((LabelError, ValueError), match=words):
        hierarchy_mode(logits, [("a", "b"), ("c", "b")], **options)
