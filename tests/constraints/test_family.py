"""Checks that every family must pass: those of the zoo, and some that are too special for it."""

from __future__ import annotations

import copy
import pickle

import networkx as nx
import numpy as np
import pytest
import torch
import zoo

from semprola import constraints as C
from semprola.compiler import compile as compile_constraint
from semprola.errors import CompilationBudgetError
from semprola.logic import Bool, Kind

RING = nx.cycle_graph(5)
CROSSED = C.hierarchy([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
UNSTRUCTURED = [*(case.formula for case in zoo.CASES if not case.structured), CROSSED]
FAMILIES = [
    *(case.formula for case in zoo.FAMILIES if isinstance(case.formula, C.Family)),
    C.hierarchy([("a", "b"), ("c", "b")]),
    CROSSED,
    C.simple_paths(RING, 0, 2),
    C.simple_paths(RING, endpoints="given", given_edges=False),
    C.simple_paths(nx.path_graph(3).to_directed(), endpoints="labels"),
    C.cycles(RING),
    C.spanning_trees(RING),
    C.matchings(RING),
    C.permutation(3),
    C.ranking(["a", "b", "c"], before=[("a", "b")]),
    C.ranking(["a", "b"], ties=True),
    C.table([[0, 1], [1, 1]], labels=["a", "b"]),
    C.linear({"a": 1, "b": 2, "c": -1}, "<=", 1),
    C.linear({"a": 1, "b": 2, "c": -1}, "!=", 1),
]

pytestmark = pytest.mark.parametrize("family", FAMILIES, ids=repr)


def test_circuit(agrees, family):
    assert agrees(family, structured=family not in UNSTRUCTURED).model_count() > 0


def test_shapes(family):
    labels = len(family.labels)
    assert family.evaluate(np.zeros((0, labels))).shape == (0,)
    assert family.evaluate(np.zeros((2, 3, labels))).shape == (2, 3)
    assert family.evaluate(torch.ones(4, labels)).shape == (4,)
    assert isinstance(family.evaluate(dict.fromkeys(family.labels, 1)), bool)


def test_is_a_formula(family):
    assert family.kind is Kind.CUSTOM
    assert family != C.permutation(2)
    assert copy.deepcopy(family) is family
    assert pickle.loads(pickle.dumps(family & Bool("z"))) == family & Bool("z")
    assert repr(family) == family.describe()
    assert "\n" not in repr(family)
    rows = np.random.default_rng(0).integers(0, 2, (50, len(family.labels)))
    np.testing.assert_array_equal((~family).evaluate(rows), ~family.evaluate(rows))


def test_combines_and_compiles(family):
    name = family.labels[0]
    both = family & (Bool(name) >> Bool("z"))
    columns = both.labels
    rows = (np.arange(2 ** len(columns))[:, None] >> np.arange(len(columns))) & 1
    expected = both.evaluate(rows).sum()
    assert compile_constraint(both).model_count() == expected
    opposite = ~family
    count = 2 ** len(family.labels) - family.to_circuit().model_count()
    if count:
        assert compile_constraint(opposite).model_count() == count


def test_budget(family):
    if family.to_circuit().num_nodes > 3:
        with pytest.raises(CompilationBudgetError) as caught:
            family.to_circuit(max_nodes=1)
        assert "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="timeout"):
        family.to_circuit(timeout=-1)
