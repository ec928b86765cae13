from __future__ import annotations

import itertools
import json
import lzma
import math
import random
import re
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
import torch

import semprola as sp
from semprola.compiler.backends.topdown.native import native_library
from semprola.constraints import hierarchy, suggest
from semprola.constraints.hierarchy import states
from semprola.errors import CompilationBudgetError, LabelError

CHOICES = list(itertools.product([False, True], repeat=3))


def _random_forest(chance, count):
    graph = nx.DiGraph()
    graph.add_nodes_from(f"n{i}" for i in range(count))
    graph.add_edges_from((f"n{i}", f"n{chance.randrange(i)}") for i in range(1, count) if chance.random() < 0.8)
    return graph


def _random_dag(chance, count):
    graph = _random_forest(chance, count)
    for i in range(count):
        graph.add_edges_from((f"n{i}", f"n{j}") for j in range(i) if chance.random() < 0.3)
    return graph


OPTIONS = [dict(zip(("nonempty", "mandatory_leaf", "exclusive_siblings"), row, strict=True)) for row in CHOICES]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_forests(agrees, options):
    chance = random.Random(1)
    for _ in range(25):
        graph = _random_forest(chance, chance.randint(1, 8))
        circuit = agrees(hierarchy(graph, edges="child-parent", **options))
        assert circuit.num_nodes <= 5 * len(graph) + 1


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_graphs_with_several_parents(agrees, options):
    chance = random.Random(2)
    for _ in range(60):
        graph = _random_dag(chance, chance.randint(2, 10))
        agrees(hierarchy(graph, edges="child-parent", **options), structured=options["exclusive_siblings"])


def test_the_definition_of_the_options():
    """The definition, which the other tests rely on, compared with a direct count."""
    chance = random.Random(3)
    for _ in range(20):
        graph = _random_dag(chance, chance.randint(2, 7))
        names = list(graph)
        rows = list(itertools.product([0, 1], repeat=len(names)))
        for options in OPTIONS:
            expected = []
            for row in rows:
                on = {name for name, bit in zip(names, row, strict=True) if bit}
                roots = {name for name in names if not graph.out_degree(name)}
                below = [on & set(graph.predecessors(name)) for name in names]
                good = all(set(graph.successors(name)) <= on for name in on)
                if options["nonempty"]:
                    good &= bool(on)
                if options["exclusive_siblings"]:
                    good &= all(len(group) <= 1 for group in [*below, on & roots])
                if options["mandatory_leaf"]:
                    good &= bool(on & roots)
                    good &= all(below[names.index(name)] or not graph.in_degree(name) for name in on)
                expected.append(good)
            rule = hierarchy(graph, edges="child-parent", **options)
            assert rule.evaluate(rows).tolist() == expected


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_wide_trees_stay_linear_and_shallow(options):
    edges = [(f"x{i}", f"x{(i - 1) // 40}") for i in range(1, 1601)]
    circuit = hierarchy(edges, **options).to_circuit()
    assert circuit.num_nodes <= 5 * 1601 + 1
    assert circuit.num_edges <= 10 * 1601
    assert circuit.is_deterministic
    depth = np.zeros(circuit.num_nodes, int)
    for node in range(circuit.num_nodes):
        depth[node] = 1 + depth[circuit.children_of(node)].max(initial=0)
    assert depth.max() <= 40


def test_exclusive_siblings_are_one_flat_choice():
    edges = [(f"x{i}", "top") for i in range(100)]
    circuit = hierarchy(edges, exclusive_siblings=True, mandatory_leaf=True).to_circuit()
    assert circuit.model_count() == 100
    assert max(len(circuit.children_of(node)) for node in range(circuit.num_nodes)) == 100
    assert circuit.num_nodes <= 103


def test_paths_from_root_to_leaf():
    rule = hierarchy([("b", "a"), ("c", "a"), ("d", "b"), ("e", "b")], mandatory_leaf=True, exclusive_siblings=True)
    models = rule.to_circuit().enumerate()
    on = {"".join(name for name, bit in zip(rule.labels, row, strict=True) if bit) for row in models}
    assert on == {"bad", "bae", "ac"}


def test_labels_in_order_of_first_appearance():
    assert hierarchy([("cat", "animal"), ("dog", "animal"), ("animal", "thing")]).labels == (
        "cat",
        "animal",
        "dog",
        "thing",
    )
    graph = nx.DiGraph([("b", "a")])
    graph.add_node("alone")
    assert hierarchy(graph).labels == ("b", "a", "alone")
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


def test_dense_graphs_fall_apart():
    """If an upper label is off, all lower ones are: such a graph has no narrow decomposition, and needs none."""
    for size in (26, 45):
        edges = [(f"a{i}", f"b{j}") for i in range(size) for j in range(size)]
        circuit = hierarchy(edges).to_circuit(max_nodes=1000)
        assert circuit.model_count() == 2**size + 2**size - 1
        assert hierarchy(edges, nonempty=True).to_circuit().model_count() == 2**size + 2**size - 2


def test_too_wide_says_where():
    chance = random.Random(0)
    edges = [(f"a{i}", f"b{j}") for i in range(40) for j in range(40) if chance.random() < 0.2]
    with pytest.raises(CompilationBudgetError, match=r"500 nodes; the widest part is label '[ab]\d+' with the"):
        hierarchy(edges).to_circuit(max_nodes=500)


@pytest.mark.parametrize("count", [30, 60])
def test_states_against_the_top_down_compiler(count):
    chance = random.Random(count)
    for _ in range(5):
        edges = [(f"n{i}", f"n{j}") for i in range(1, count) for j in {chance.randrange(i), chance.randrange(i)}]
        circuit = hierarchy(edges, edges="child-parent").to_circuit()
        formula = sp.And(*(sp.Bool(child) >> sp.Bool(parent) for child, parent in edges))
        assert circuit.model_count() == sp.compile(formula, backend="topdown", cache=False).model_count()
        assert circuit.is_decomposable
        assert circuit.is_deterministic


def test_equal_states_are_one_even_if_their_hashes_are_equal(monkeypatch):
    rows = np.random.default_rng(0).integers(0, 3, (200, 9)).astype(np.uint8)
    monkeypatch.setattr(np.random, "default_rng", lambda seed: SimpleNamespace(integers=_zeros))
    found, inverse = states.distinct_rows(rows)
    assert len(found) == len(np.unique(rows, axis=0))
    np.testing.assert_array_equal(found[inverse], rows)


def _zeros(low, high, shape, dtype):
    return np.zeros(shape, dtype)


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


PETS = [("cat", "animal"), ("dog", "animal"), ("animal", "thing")]


class TestForms:
    def test_dicts(self):
        expected = hierarchy(PETS)
        assert hierarchy({"cat": "animal", "dog": ["animal"], "animal": "thing", "thing": None}) == expected
        assert hierarchy({"cat": "animal", "dog": "animal", "animal": ("thing",), "thing": []}) == expected
        turned = hierarchy({"thing": "animal", "animal": ["cat", "dog"]}, edges="parent-child")
        assert turned.labels == ("thing", "animal", "cat", "dog")
        assert set(turned.edges) == set(PETS)

    def test_several_parents_in_a_dict(self):
        rule = hierarchy({"mule": ["horse", "donkey"]}, edges="child-parent")
        assert rule.edges == (("mule", "horse"), ("mule", "donkey"))

    def test_graphs_in_both_directions(self):
        graph = nx.DiGraph(PETS)
        assert hierarchy(graph) == hierarchy(PETS)
        assert hierarchy(graph.reverse(), edges="parent-child") == hierarchy(PETS, labels=list(graph.nodes))

    def test_data_frames(self):
        pandas = pytest.importorskip("pandas")
        pairs = [*PETS, ("thing", None)]
        for columns in (["child", "parent"], ["from", "to"], ["Child", "Parent"]):
            assert hierarchy(pandas.DataFrame(pairs, columns=columns)) == hierarchy(PETS)
        turned = pandas.DataFrame([(b, 7, a) for a, b in PETS], columns=["parent", "note", "child"])
        assert hierarchy(turned) == hierarchy(PETS)
        two = pandas.DataFrame([(b, a) for a, b in PETS], columns=["upper", "lower"])
        assert set(hierarchy(two, edges="parent-child").edges) == set(PETS)
        with pytest.raises(LabelError, match="needs 'child' and 'parent', or two"):
            hierarchy(turned[["parent", "note"]].assign(more=1))

    @pytest.mark.parametrize(
        "source",
        [
            nx.DiGraph([("animal", "cat"), ("animal", "dog")]),
            {"animal": ["cat", "dog"]},
            [("animal", "cat"), ("animal", "dog"), ("animal", "cow")],
            nx.DiGraph([(f"n{i}", f"n{j}") for i in range(9) for j in (2 * i + 1, 2 * i + 2, 2 * i + 3)]),
        ],
        ids=["graph", "dict", "pairs", "dag"],
    )
    def test_an_inverted_hierarchy_is_noticed(self, source):
        with pytest.warns(UserWarning, match="look inverted: .* pass edges='parent-child'"):
            hierarchy(source)
        hierarchy(source, edges="parent-child")
        hierarchy(source, edges="child-parent")

    def test_labels_order_columns_and_add_roots(self):
        rule = hierarchy(PETS, labels=["alone", "thing", "animal", "dog", "cat"])
        assert rule.labels == ("alone", "thing", "animal", "dog", "cat")
        assert rule.to_circuit().model_count() == 2 * hierarchy(PETS).to_circuit().model_count()
        assert set(rule.edges) == set(PETS)

    def test_labels_rename(self):
        rule = hierarchy([(1, 0), (2, 0)], labels={0: "animal", 2: "dog", 1: "cat"})
        assert rule.labels == ("animal", "dog", "cat")
        assert set(rule.edges) == set(PETS[:2])

    @pytest.mark.parametrize(
        ("source", "options", "words"),
        [
            ([(1, 0)], {}, "non-empty string, not 1; labels={node: name} gives"),
            (PETS, {"labels": ["cat", "dog", "animal"]}, "'thing' is in the edges but not in labels="),
            (PETS, {"labels": ["cat", "cat"]}, "'cat' is listed twice"),
            (PETS, {"edges": "down"}, "edges must be 'child-parent' or 'parent-child', not 'down'"),
            (7, {}, "expected pairs, a dict, a data frame or a graph, not 7"),
            ([("a", ["b"])], {}, r"non-empty string, not \['b'\]"),
            ([("a", None)], {}, "non-empty string, not None"),
        ],
    )
    def test_errors(self, source, options, words):
        with pytest.raises(ValueError, match=words):
            hierarchy(source, **options)


class TestSuggest:
    def test_counts_what_rows_break(self):
        rule = hierarchy(PETS)  # cat, animal, dog, thing
        y = np.array([[1, 1, 0, 1], [1, 1, 1, 1], [0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 1]])
        found = suggest(y, rule)
        assert found.rows == 5
        assert dict(found.exceptions) == {"edges": 1, "nonempty": 1, "exclusive_siblings": 1, "mandatory_leaf": 3}
        assert found.examples["mandatory_leaf"] == [2, 3, 4]
        assert dict(found) == {"nonempty": False, "exclusive_siblings": False, "mandatory_leaf": False}

    def test_options_are_keyword_arguments(self):
        found = suggest(torch.tensor([[1.0, 1, 0, 1], [0, 1, 1, 1]]), PETS)
        rule = hierarchy(PETS, **found)
        assert (rule.nonempty, rule.exclusive_siblings, rule.mandatory_leaf) == (True, True, True)
        assert rule.to_circuit().model_count() == 2

    def test_every_row_satisfies_what_is_suggested(self):
        chance, numbers = random.Random(5), np.random.default_rng(5)
        for _ in range(60):
            graph = _random_dag(chance, chance.randint(2, 7))
            models = hierarchy(graph, edges="child-parent").to_circuit().enumerate()
            y = models[numbers.integers(len(models), size=3)]
            found = suggest(y, graph, edges="child-parent")
            rule = hierarchy(graph, edges="child-parent", **found)
            assert rule.evaluate(y).all()
            for option in found:
                if not found[option]:
                    assert not hierarchy(graph, edges="child-parent", **{option: True}).evaluate(y).all()

    def test_frames_are_matched_by_name(self):
        pandas = pytest.importorskip("pandas")
        frame = pandas.DataFrame({"thing": [1], "dog": [0], "animal": [1], "cat": [1], "other": [3]})
        assert all(suggest(frame, PETS).values())
        with pytest.raises(LabelError, match="no column for label 'dog'"):
            suggest(frame.drop(columns="dog"), PETS)

    @pytest.mark.parametrize(
        ("y", "words"),
        [
            (np.zeros((0, 4)), "at least one row"),
            ([[0, 1]], r"suggest: y has shape \[1, 2\], expected \[\*batch, 4\]"),
            ([[0, 0, 0, 2]], "only 0 and 1: row 0, label 'thing' is 2"),
            ([[0, 0, 0, float("nan")]], "row 0, label 'thing' is nan"),
        ],
    )
    def test_errors(self, y, words):
        with pytest.raises(ValueError, match=words):
            suggest(y, PETS)


def _published(folder, entry):
    """The graph of one HMC data set: labels are paths such as 01/01/03, and their parents are the prefixes."""
    with lzma.open(folder / (entry["files"][0] + ".xz"), "rt", encoding="utf-8", errors="replace") as lines:
        line = next(line for line in lines if re.match(r"(?i)@attribute\s+class\s+hierarchical", line))
    graph = nx.DiGraph()
    for label in line.split("hierarchical", 1)[1].split("%")[0].strip().split(","):
        parts = [part for part in label.strip().split("/") if part]
        graph.add_node("/".join(parts))
        for depth in range(1, len(parts)):
            graph.add_edge("/".join(parts[: depth + 1]), "/".join(parts[:depth]))
    return graph


def test_published_hierarchies(shared_data):
    """For all twelve, with and without options, the counts follow from the numbers of labels, leaves and models."""
    stats = json.loads((shared_data / "hmc" / "STATS.json").read_text())
    assert len(stats) == 12
    for entry in stats.values():
        graph = _published(shared_data / "hmc", entry)
        circuit = hierarchy(graph).to_circuit()
        assert circuit.num_labels == entry["labels"]
        assert circuit.model_count() == int(entry["hier_model_count"])
        assert circuit.num_nodes <= 3 * entry["labels"] + 1
        some = hierarchy(graph, nonempty=True).to_circuit()
        assert some.model_count() == int(entry["hier_model_count"]) - 1
        assert some.num_nodes <= 3 * entry["labels"] + 3 * entry["roots"] + 1
        one_path = hierarchy(graph, nonempty=True, exclusive_siblings=True).to_circuit()
        assert one_path.model_count() == entry["labels"]
        to_leaf = hierarchy(graph, exclusive_siblings=True, mandatory_leaf=True).to_circuit()
        assert to_leaf.model_count() == entry["leaves"]
        assert hierarchy(graph, mandatory_leaf=True).to_circuit().model_count() == _down_to_leaves(graph)


def _down_to_leaves(graph):
    """Models with mandatory_leaf: each label that is on has at least one child on, or is a leaf."""
    count = {}
    for label in nx.topological_sort(graph):  # children first
        below = [count[child] for child in graph.predecessors(label)]
        count[label] = math.prod(1 + models for models in below) - 1 if below else 1
    return math.prod(1 + count[label] for label in graph if not graph.out_degree(label)) - 1


@pytest.mark.extensive
@pytest.mark.skipif(native_library() is None, reason="the native module is not built: compiling takes many minutes")
def test_gene_ontology(shared_data):
    """A DAG of 3,574 labels; the count equals that of the same implications compiled by the top-down compiler."""
    with lzma.open(shared_data / "hmc_go" / "eisen_GO.train.arff.xz", "rt", errors="replace") as lines:
        line = next(line for line in lines if re.match(r"(?i)@attribute\s+class\s+hierarchical", line))
    edges = [edge.strip().split("/") for edge in re.split("(?i)hierarchical", line)[1].strip().split(",")]
    circuit = hierarchy(edges, edges="parent-child").to_circuit()
    assert circuit.num_labels == 3574
    assert circuit.num_nodes < 400_000
    assert circuit.num_edges < 1_500_000
    formula = sp.And(*(sp.Bool(child) >> sp.Bool(parent) for parent, child in edges))
    assert circuit.model_count() == sp.compile(formula, backend="topdown", cache=False).model_count()


@pytest.mark.parametrize("seed", range(12))
def test_compiling_keeps_every_option_on_dags(seed: int) -> None:
    """The family's own circuit is one thing, what `compile` joins of it another."""
    chance = random.Random(seed)
    size = chance.randint(3, 7)
    edges = [(f"n{v}", f"n{u}") for v in range(1, size) for u in chance.sample(range(v), min(v, chance.randint(1, 3)))]
    for options in ({"nonempty": True}, {"nonempty": True, "mandatory_leaf": True}, {"exclusive_siblings": True}):
        rules = hierarchy(edges, **options)
        rows = np.array(list(itertools.product([0, 1], repeat=size)))
        allowed = rules.evaluate(rows, labels=rules.names)
        circuit = sp.compile(rules, labels=list(rules.names), cache=False)
        np.testing.assert_array_equal(circuit.satisfied(rows), allowed)
        assert circuit.model_count() == allowed.sum()
