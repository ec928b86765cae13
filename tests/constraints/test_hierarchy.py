from __future__ import annotations

import json
import lzma
import random
import re

import networkx as nx
import pytest

from semprola.constraints import hierarchy
from semprola.errors import CompilationBudgetError, LabelError


def _random_forest(chance, count):
    graph = nx.DiGraph()
    graph.add_nodes_from(f"n{i}" for i in range(count))
    graph.add_edges_from((f"n{i}", f"n{chance.randrange(i)}") for i in range(1, count) if chance.random() < 0.8)
    return graph


@pytest.mark.parametrize("mandatory_leaf", [False, True])
@pytest.mark.parametrize("exclusive_siblings", [False, True])
def test_forests(agrees, mandatory_leaf, exclusive_siblings):
    chance = random.Random(1)
    for _ in range(25):
        graph = _random_forest(chance, chance.randint(1, 8))
        rule = hierarchy(graph, mandatory_leaf=mandatory_leaf, exclusive_siblings=exclusive_siblings)
        circuit = agrees(rule)
        assert circuit.num_nodes <= 5 * len(graph) + 1


def test_graphs_with_several_parents(agrees):
    chance = random.Random(2)
    for _ in range(60):
        count = chance.randint(2, 9)
        graph = _random_forest(chance, count)
        for i in range(count):
            graph.add_edges_from((f"n{i}", f"n{j}") for j in range(i) if chance.random() < 0.3)
        agrees(hierarchy(graph))


def test_paths_from_root_to_leaf():
    rule = hierarchy([("b", "a"), ("c", "a"), ("d", "b"), ("e", "b")], mandatory_leaf=True, exclusive_siblings=True)
    models = rule.to_circuit().enumerate()
    on = {"".join(name for name, bit in zip(rule.labels(), row, strict=True) if bit) for row in models}
    assert on == {"bad", "bae", "ac"}


def test_labels_in_order_of_first_appearance():
    assert hierarchy([("cat", "animal"), ("dog", "animal"), ("animal", "thing")]).labels() == (
        "cat",
        "animal",
        "dog",
        "thing",
    )
    graph = nx.DiGraph([("b", "a")])
    graph.add_node("alone")
    assert hierarchy(graph).labels() == ("b", "a", "alone")
    assert hierarchy(graph).to_circuit().model_count() == 6


def test_repeated_edges_count_once():
    assert hierarchy([("b", "a"), ("b", "a")]) == hierarchy([("b", "a")])


def test_linear_size():
    rule = hierarchy([(f"x{i}", f"x{(i - 1) // 3}") for i in range(1, 500)])
    circuit = rule.to_circuit()
    assert circuit.num_nodes <= 3 * 500 + 1
    chain = hierarchy([(f"x{i}", f"x{i - 1}") for i in range(1, 3_000)]).to_circuit()
    assert chain.model_count() == 3_001


@pytest.mark.parametrize(("dimension", "expected"), [(1, 3), (2, 6), (3, 20), (4, 168), (5, 7581)])
def test_monotone_functions(dimension, expected):
    """Up-sets of the Boolean lattice are counted by the Dedekind numbers."""
    edges = [
        (format(s, f"0{dimension}b"), format(s | 1 << bit, f"0{dimension}b"))
        for s in range(2**dimension)
        for bit in range(dimension)
        if not s >> bit & 1
    ]
    assert hierarchy(edges).to_circuit().model_count() == expected


def test_large_graph_with_several_parents():
    chance = random.Random(0)
    parent, children, edges = [-1], [[]], []
    for i in range(1, 4000):
        above = min(int(chance.expovariate(1) * i / 6), i - 1)
        parent.append(above)
        children.append([])
        children[above].append(i)
        edges.append((f"n{i}", f"n{above}"))
        if chance.random() < 0.1 and parent[above] >= 0:
            other = chance.choice(children[parent[above]])
            edges.append((f"n{i}", f"n{other}"))
    rule = hierarchy(edges)
    circuit = rule.to_circuit(max_nodes=200_000)
    assert circuit.num_nodes < 30_000
    rows = circuit.enumerate(limit=50)
    assert rule.evaluate(rows).all()


def test_too_wide_says_where():
    edges = [(f"a{i}", f"b{j}") for i in range(26) for j in range(26)]
    with pytest.raises(
        CompilationBudgetError, match=r"budget of 500 nodes; the widest part is label '[ab]\d+' with the"
    ):
        hierarchy(edges).to_circuit(max_nodes=500)
    dense = [(f"a{i}", f"b{j}") for i in range(70) for j in range(70)]
    with pytest.raises(CompilationBudgetError, match=r"no narrow tree decomposition: \d\d labels"):
        hierarchy(dense).to_circuit()


@pytest.mark.parametrize(
    ("edges", "words"),
    [
        ([("a", "b"), ("b", "c"), ("c", "a")], "cycle: a -> b -> c -> a"),
        ([("x", "a"), ("a", "b"), ("b", "a"), ("b", "z")], "cycle: a -> b -> a"),
        ([("a", "a")], "cycle: a -> a"),
        ([("a", 1)], "non-empty string, not 1"),
        ([("a", "b", "c")], r"pair, not \('a', 'b', 'c'\)"),
        (["ab"], "pair, not 'ab'"),
        ("ab", "not the string"),
        ([], "at least one label"),
        (nx.Graph([("a", "b")]), "must be directed"),
    ],
)
def test_errors(edges, words):
    with pytest.raises(LabelError, match=words) as caught:
        hierarchy(edges)
    assert "\n" not in str(caught.value)


def test_options_need_a_forest():
    with pytest.raises(ValueError, match="mandatory_leaf needs a tree or forest, but 'a' has several parents"):
        hierarchy([("a", "b"), ("a", "c")], mandatory_leaf=True)


def test_published_hierarchies(shared_data):
    """Labels of the HMC data sets are paths such as 01/01/03; their parents are the prefixes."""
    stats = json.loads((shared_data / "hmc" / "STATS.json").read_text())
    for name in ("cellcycle", "eisen", "enron", "diatoms", "imclef07a", "imclef07d"):
        entry = stats[name]
        source = next(path for path in (shared_data / "hmc").iterdir() if path.name == entry["files"][0] + ".xz")
        with lzma.open(source, "rt", encoding="utf-8", errors="replace") as lines:
            line = next(line for line in lines if re.match(r"(?i)@attribute\s+class\s+hierarchical", line))
        graph = nx.DiGraph()
        for label in line.split("hierarchical", 1)[1].split("%")[0].strip().split(","):
            parts = [part for part in label.strip().split("/") if part]
            graph.add_node("/".join(parts))
            for depth in range(1, len(parts)):
                graph.add_edge("/".join(parts[: depth + 1]), "/".join(parts[:depth]))
        circuit = hierarchy(graph).to_circuit()
        assert circuit.num_labels == entry["labels"]
        assert circuit.model_count() == int(entry["hier_model_count"])
        assert circuit.num_nodes <= 3 * entry["labels"] + 1
