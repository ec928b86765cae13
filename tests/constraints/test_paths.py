from __future__ import annotations

import json
import random

import networkx as nx
import pytest

from semprola.constraints import cycles, simple_paths
from semprola.errors import CompilationBudgetError, LabelError

GRID = nx.grid_2d_graph


def _corner(side, **options):
    return simple_paths(GRID(side, side), (0, 0), (side - 1, side - 1), **options)


def _king(side):
    graph = nx.Graph()
    graph.add_nodes_from((i, j) for i in range(side) for j in range(side))
    steps = [(0, 1), (1, 0), (1, 1), (1, -1)]
    graph.add_edges_from((v, (v[0] + a, v[1] + b)) for v in graph for a, b in steps if (v[0] + a, v[1] + b) in graph)
    return graph


def _small_graphs(directed, most):
    """Random graphs with few edges, some with a loop, each with bounds on the length."""
    chance = random.Random(3)
    for seed in range(40):
        count = chance.randint(2, 5)
        graph = nx.gnp_random_graph(count, 0.7, seed=seed, directed=directed)
        if seed % 4 == 0:
            graph.add_edge(0, 0)
        bounds = {"max_length": chance.choice([None, 1, 2, 3, 4]), "min_length": chance.choice([None, None, 1, 2])}
        if bounds["max_length"] == 1:
            bounds["min_length"] = None
        if 0 < graph.number_of_edges() <= most:
            yield graph, bounds


@pytest.mark.parametrize("directed", [False, True])
def test_fixed_ends(agrees, directed):
    for graph, bounds in _small_graphs(directed, 11):
        agrees(simple_paths(graph, 0, len(graph) - 1, **bounds))
        agrees(simple_paths(graph, 0, len(graph) - 1, given_edges=list(graph.edges)[:2], **bounds))


@pytest.mark.parametrize("directed", [False, True])
def test_any_ends_and_cycles(agrees, directed):
    for graph, bounds in _small_graphs(directed, 11):
        agrees(simple_paths(graph, endpoints="any", **bounds))
        agrees(cycles(graph, **bounds))


@pytest.mark.parametrize("directed", [False, True])
def test_ends_as_variables(agrees, directed):
    tested = 0
    for graph, bounds in _small_graphs(directed, 8):
        ends = len(graph) * (2 if directed else 1)
        if graph.number_of_edges() + ends <= 14:
            agrees(simple_paths(graph, endpoints="labels", **bounds))
            agrees(simple_paths(graph, endpoints="given", given_edges=False, **bounds))
            tested += 1
        if 2 * graph.number_of_edges() + ends <= 14:
            agrees(simple_paths(graph, endpoints="given", **bounds))
    assert tested > 3


@pytest.mark.parametrize("directed", [False, True])
def test_against_networkx(directed):
    for seed in range(12):
        graph = nx.gnp_random_graph(7, 0.45, seed=seed, directed=directed)
        if not graph.number_of_edges():
            continue
        lengths = [len(path) - 1 for path in nx.all_simple_paths(graph, 0, 6)]
        for bound in (None, 2, 4):
            wanted = sum(bound is None or length <= bound for length in lengths)
            paths = simple_paths(graph, 0, 6, max_length=bound)
            if wanted:
                assert paths.to_circuit().model_count() == wanted


def test_orders_agree():
    """A wrong lower bound on the length would give different counts in different orders."""
    graph = GRID(4, 4)
    edges = list(graph.edges)
    by_distance = sorted(edges, key=lambda e: (sum(e[1]), e))
    shuffled = random.Random(5).sample(edges, len(edges))
    for bound in (6, 7, 8, 11, None):
        counts = {
            simple_paths(graph, (0, 0), (3, 3), max_length=bound, order=order).to_circuit().model_count()
            for order in (None, edges, edges[::-1], by_distance, shuffled)
        }
        assert len(counts) == 1
    assert counts == {184}


def test_shortest_paths_of_a_grid():
    circuit = _corner(12, max_length=22).to_circuit()
    assert circuit.model_count() == 705_432
    assert circuit.info["diagram_nodes"] < 1000


def test_twelve_by_twelve():
    circuit = _corner(12, max_length=28).to_circuit()
    assert circuit.model_count() == 829_808_328
    assert circuit.info["diagram_nodes"] < 9_000
    assert circuit.model_count() - _corner(12, max_length=26).to_circuit().model_count() == 717_530_948


@pytest.mark.extensive
def test_twelve_by_twelve_longer():
    circuit = _corner(12, max_length=32).to_circuit()
    assert circuit.model_count() == 29_834_545_848
    assert circuit.info["diagram_nodes"] < 51_000


def test_published_counts(shared_data):
    counts = json.loads((shared_data / "oracles" / "oeis_counts.json").read_text())
    for side in range(2, 8):
        assert _corner(side).to_circuit().model_count() == counts["A007764"]["values"][side - 1]
    for side in range(2, 6):
        king = simple_paths(_king(side), (0, 0), (side - 1, side - 1))
        assert king.to_circuit().model_count() == counts["A140518"]["values"][side - 1]
    for squares in range(1, 7):
        assert cycles(GRID(squares + 1, squares + 1)).to_circuit().model_count() == counts["A140517"]["values"][squares]
    for size, count in counts["A288518_diag"]["table"].items():
        rows, columns = map(int, size.split("x"))
        if rows <= 6:
            assert simple_paths(GRID(rows, columns), endpoints="any").to_circuit().model_count() == count


@pytest.mark.parametrize(("side", "expected"), [(2, 2), (3, 12), (4, 184), (5, 8512), (6, 1262816), (8, 789360053252)])
def test_corner_to_corner(side, expected):
    assert _corner(side).to_circuit().model_count() == expected


def test_four_by_four_with_ends():
    """The setting of the paper: 24 edges and 16 end points, 14,248 paths."""
    graph = GRID(4, 4)
    paths = simple_paths(graph, endpoints="labels")
    circuit = paths.to_circuit()
    assert circuit.num_labels == 40
    assert circuit.model_count() == 14_248
    assert paths.evaluate(circuit.enumerate(limit=500)).all()
    given = simple_paths(graph, endpoints="given")
    assert len(given.labels) == 64
    assert given.given[0] == "end (0, 0)"
    assert given.given[-1] == "has (3, 2)-(3, 3)"
    circuit = given.to_circuit()
    assert (circuit.num_labels, len(circuit.given)) == (24, 40)
    assert circuit.num_nodes < 1400
    values = dict.fromkeys(circuit.given, 0)
    values |= {name: 1 for name in circuit.given if name.startswith("has")}
    values |= {"end (0, 0)": 1, "end (3, 3)": 1}
    assert circuit.model_count(values) == 184
    values["has (0, 0)-(1, 0)"] = 0
    removed = graph.copy()
    removed.remove_edge((0, 0), (1, 0))
    assert circuit.model_count(values) == simple_paths(removed, (0, 0), (3, 3)).to_circuit().model_count()


def test_labels():
    graph = nx.Graph([("a", "b"), ("b", "c")])
    assert simple_paths(graph, "a", "c").labels == ("a-b", "b-c")
    assert simple_paths(nx.DiGraph(graph), "a", "c").labels == ("a->b", "b->a", "b->c", "c->b")
    assert simple_paths(graph, "a", "c", labels=["x", "y"]).labels == ("x", "y")
    assert simple_paths(graph, "a", "c", labels={("b", "a"): "x", ("b", "c"): "y"}).labels == ("x", "y")
    assert simple_paths(nx.DiGraph(graph), endpoints="labels").labels[4:6] == ("start a", "end a")


def test_isolated_nodes(agrees):
    graph = nx.Graph([(0, 1), (1, 2)])
    graph.add_node(3)
    circuit = agrees(simple_paths(graph, endpoints="labels"))
    assert circuit.model_count() == 3
    assert agrees(simple_paths(graph, 0, 3)) is None


def test_description():
    graph = GRID(2, 2)
    assert repr(_corner(2, max_length=2)) == "simple_paths(4 nodes, 4 edges, (0, 0) to (1, 1), at most 2 long)"
    assert repr(cycles(graph)) == "cycles(4 nodes, 4 edges)"
    assert repr(simple_paths(graph, endpoints="given")) == "simple_paths(4 nodes, 4 edges, end points as given)"


def test_budget_names_an_edge():
    with pytest.raises(CompilationBudgetError, match=r"budget of 2,000 nodes.*after label '\(.*max_length="):
        _corner(8).to_circuit(max_nodes=2000)
    with pytest.raises(CompilationBudgetError, match=r"time budget of 0\.2 s"):
        _corner(11).to_circuit(timeout=0.2)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ValueError, "give source= and target=, or endpoints="),
        ({"source": 0}, ValueError, "give source= and target="),
        ({"source": 0, "target": 0}, ValueError, "both 0: for closed paths use cycles"),
        ({"source": 0, "target": 9}, LabelError, "target 9 is not a node"),
        ({"source": 0, "target": []}, LabelError, r"target \[\] is not a node"),
        ({"source": 0, "target": 1, "endpoints": "any"}, ValueError, "not both"),
        ({"endpoints": "some"}, ValueError, "must be 'any', 'given' or 'labels', not 'some'"),
        ({"endpoints": "any", "max_length": 0}, ValueError, "max_length must be a whole number of at least 1"),
        ({"endpoints": "any", "max_length": 2, "min_length": 3}, ValueError, "min_length=3 is more than max_length=2"),
        ({"endpoints": "any", "labels": ["x"]}, LabelError, "1 labels for 2 edges"),
        ({"endpoints": "any", "labels": ["x", "x"]}, LabelError, "'x' is listed twice"),
        ({"endpoints": "any", "labels": {(0, 1): "x"}}, LabelError, r"no name for the edge \(1, 2\)"),
        ({"endpoints": "any", "given_edges": [(0, 2)]}, LabelError, r"\(0, 2\) is not an edge"),
        ({"endpoints": "any", "order": [(0, 1)]}, LabelError, "each of the 2 edges once"),
    ],
)
def test_errors(options, error, words):
    with pytest.raises(error, match=words) as caught:
        simple_paths(nx.path_graph(3), **options)
    assert "\n" not in str(caught.value)


def test_unusable_graphs():
    with pytest.raises(LabelError, match="multigraph"):
        cycles(nx.MultiGraph([(0, 1)]))
    with pytest.raises(LabelError, match="expected a networkx graph, not list"):
        cycles([(0, 1)])
    with pytest.raises(LabelError, match="no edges"):
        cycles(nx.empty_graph(3))
    with pytest.raises(LabelError, match="'1-2' is listed twice"):
        cycles(nx.Graph([(1, 2), ("1", "2")]))
