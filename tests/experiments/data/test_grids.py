"""Grids: the generator obeys its own rules, the loader reads the published file and refuses anything else."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

from experiments.data import generate_grids, grid_graph, load_grids, turned_grids
from semprola.constraints import simple_paths
from semprola.errors import FormatError


def test_generated_rows_obey_the_stated_rules() -> None:
    data = generate_grids(graphs=12, seed=5)
    edges = list(grid_graph().edges)
    for x, y in zip(data.x, data.y, strict=True):
        u, v = (int(i) for i in np.flatnonzero(x[:16]))
        assert x[16:].sum() == 16
        graph = nx.Graph([edge for edge, there in zip(edges, x[16:], strict=True) if there])
        assert len(nx.node_connected_component(graph, u)) >= 5
        walk = min(nx.all_shortest_paths(graph, u, v))
        steps = {frozenset(step) for step in pairwise(walk)}
        assert {frozenset(edge) for edge, used in zip(edges, y, strict=True) if used} == steps


def test_generated_rows_obey_the_constraint() -> None:
    data = generate_grids(graphs=6, seed=2)
    constraint = simple_paths(grid_graph(), endpoints="given")
    rows = np.concatenate([data.y, data.x], axis=1)
    assert np.asarray(constraint.evaluate(rows.astype(bool), labels=list(constraint.labels))).all()


def test_turned_rows_are_the_only_shortest_paths() -> None:
    data = generate_grids(graphs=4, seed=3)
    edges = list(grid_graph().edges)
    turned = turned_grids(data)
    for x, y in zip(turned.x, turned.y, strict=True):
        graph = nx.Graph([edge for edge, there in zip(edges, x[16:], strict=True) if there])
        (walk,) = nx.all_shortest_paths(graph, *(int(i) for i in np.flatnonzero(x[:16])))
        steps = {frozenset(step) for step in pairwise(walk)}
        assert {frozenset(edge) for edge, used in zip(edges, y, strict=True) if used} == steps
    single = len(turned.x) // 7
    assert len(turned.x) == len(turned.groups) == 7 * single
    assert 0 < single < len(data)
    assert len({row.tobytes() for row in turned.x[::single]}) == 7
    assert set(turned.groups) <= set(data.groups)


def test_the_seed_decides() -> None:
    first, again, other = generate_grids(graphs=4, seed=7), generate_grids(graphs=4, seed=7), generate_grids(4, 8)
    assert np.array_equal(first.x, again.x)
    assert np.array_equal(first.y, again.y)
    assert first.x.shape != other.x.shape or not np.array_equal(first.x, other.x)


@pytest.mark.parametrize("arguments", [{"graphs": 0}, {"pairs": 0.0}, {"pairs": 1.5}])
def test_senseless_arguments(arguments: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="graphs must be at least 1 and pairs in"):
        generate_grids(**arguments)  # type: ignore[arg-type]


def test_the_published_file(shared_data: Path) -> None:
    data = load_grids(shared_data / "grid4" / "test.data")
    assert data.x.shape == (1610, 40)
    assert data.y.shape == (1610, 24)
    assert len(np.unique(data.groups)) == 50
    constraint = simple_paths(grid_graph(), endpoints="given")
    rows = np.concatenate([data.y, data.x], axis=1)
    assert np.asarray(constraint.evaluate(rows.astype(bool), labels=list(constraint.labels))).all()


def test_edge_numbers_of_the_file(tmp_path: Path) -> None:
    """Along rows first, then along columns: edge 13 joins nodes 4 and 8."""
    path = tmp_path / "rows"
    path.write_text("8-12-1-18-14-5-3-11,4-8,13\n\n,0-1,0,12-3-15\n")
    data = load_grids(path)
    edges = list(grid_graph().edges)
    assert [edges[i] for i in np.flatnonzero(data.y[0])] == [(4, 8)]
    assert data.x[0, 16:].sum() == 16
    assert data.x[1, 16:].all()
    assert [edges[i] for i in np.flatnonzero(data.y[1])] == [(0, 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file has no rows"),
        ("1-2,3-4\n", r":1: expected removed edges, source-target and a path"),
        (",0-1,0\n24,0-1,0\n", r":2: '24' is not the number of one of 24 edges"),
        (",0-16,0\n", r":1: '16' is not the number of one of 16 nodes"),
        (",0-0,0\n", r":1: '0-0' has a number twice"),
        (",5,0\n", r":1: expected two different nodes, found '5'"),
        (",0-2,0\n", r":1: '0' is not a path from 0 to 2 in the subgraph"),
        ("0,0-1,0\n", r":1: '0' is not a path from 0 to 1 in the subgraph"),
        (",0-1,x\n", r":1: 'x' is not the number"),
        (",0-1," + "9" * 5000 + "\n", r":1: '9+' is not the number"),
        (",0-1,\n", r":1: '' is not a path from 0 to 1"),
        (",0-1,²\n", r":1: '²' is not the number"),
    ],
)
def test_malformed_files(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "rows"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(FormatError, match=message) as raised:
        load_grids(path)
    assert "\n" not in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match="cannot be read as text"):
        load_grids(tmp_path / "nothing")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FormatError, match="cannot be read as text"):
        load_grids(tmp_path / "bytes")
