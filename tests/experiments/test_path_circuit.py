"""The circuit of the simple-path task: the same paths, read in another order."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest

from experiments.data import grid_graph
from experiments.path_circuit import ENDS, path_circuit
from semprola.constraints import simple_paths
from semprola.errors import SemprolaError


@pytest.mark.parametrize("ends", ENDS)
@pytest.mark.parametrize("graph", [grid_graph(3), nx.complete_graph(4), nx.Graph([(0, 1), (2, 3)])])
def test_the_same_models_with_ends_as_labels(graph: nx.Graph, ends: str) -> None:
    constraint = simple_paths(graph, endpoints="labels")
    circuit, expected = path_circuit(constraint, ends), constraint.to_circuit()
    assert circuit.labels == expected.labels
    assert circuit.model_count() == expected.model_count()
    rows = np.array(list(circuit.enumerate()))
    assert np.asarray(constraint.evaluate(rows.astype(bool), labels=list(circuit.labels))).all()


def test_the_same_models_with_ends_and_edges_as_inputs() -> None:
    constraint = simple_paths(nx.cycle_graph(4), endpoints="given")
    circuit, expected = path_circuit(constraint), constraint.to_circuit()
    assert (circuit.labels, circuit.given) == (expected.labels, expected.given)
    bits = np.array(np.meshgrid(*[[0, 1]] * 12)).reshape(12, -1).T
    y, given = bits[:, :4], bits[:, 4:]
    names = list(circuit.labels + circuit.given)
    assert np.array_equal(
        np.asarray(circuit.satisfied(y, given)), np.asarray(constraint.evaluate(bits.astype(bool), labels=names))
    )


def test_ends_come_before_the_edges_of_their_node() -> None:
    constraint = simple_paths(grid_graph(), endpoints="labels")
    for ends in ENDS:
        circuit = path_circuit(constraint, ends)
        assert circuit.vtree is not None
        order = [circuit.labels[v] for v in circuit.vtree.order.tolist()]
        for u, v in grid_graph().edges:
            assert order.index(f"end {u}") < order.index(f"{u}-{v}")
            assert order.index(f"end {v}") < order.index(f"{u}-{v}")


def test_unknown_place() -> None:
    with pytest.raises(SemprolaError, match="ends must be 'early' or 'first', not 'late'"):
        path_circuit(simple_paths(grid_graph(), endpoints="labels"), "late")
