from __future__ import annotations

import itertools
import json
import math

import pytest

from semprola.constraints import permutation, ranking
from semprola.errors import CompilationBudgetError, LabelError


@pytest.mark.parametrize("count", [1, 2, 3])
def test_permutations(agrees, count):
    assert agrees(permutation(count)).model_count() == math.factorial(count)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize(
    "before", [[], [("c", "a")], [("a", "b"), ("b", "c")], [("c", "a"), ("b", "a")], [("a", "c"), ("a", "b")]]
)
def test_rankings(agrees, before, ties):
    agrees(ranking(["a", "b", "c"], before=before, ties=ties))


@pytest.mark.parametrize("count", [8, 12])
def test_size_of_permutations(count):
    circuit = permutation(count).to_circuit()
    assert circuit.info["diagram_nodes"] == count * 2 ** (count - 1)
    assert circuit.model_count() == math.factorial(count)


def test_linear_extensions():
    items = [f"i{k}" for k in range(6)]
    before = [("i0", "i3"), ("i1", "i3"), ("i3", "i5"), ("i2", "i4")]
    expected = sum(all(order.index(a) < order.index(b) for a, b in before) for order in itertools.permutations(items))
    assert ranking(items, before=before).to_circuit().model_count() == expected
    chain = ranking(items, before=list(itertools.pairwise(items))).to_circuit()
    assert (chain.model_count(), chain.num_nodes) == (1, 7)


def test_published_counts(shared_data):
    counts = json.loads((shared_data / "oracles" / "oeis_counts.json").read_text())
    for count in range(1, 11):
        assert permutation(count).to_circuit().model_count() == counts["A000142"]["values"][count]
    for count in range(2, 9):
        circuit = permutation(count).to_circuit().condition({f"y[{i},{i}]": 0 for i in range(count)})
        assert circuit.model_count() == counts["A000166"]["values"][count]
    for count in range(1, 9):
        weak = ranking([f"i{k}" for k in range(count)], ties=True).to_circuit()
        assert weak.model_count() == counts["A000670"]["values"][count]


def test_labels():
    assert permutation(2).labels == ("y[0,0]", "y[0,1]", "y[1,0]", "y[1,1]")
    assert permutation(1, ["x"]).labels == ("x",)
    assert ranking(["a", "b"]).labels == ("a=1", "a=2", "b=1", "b=2")


def test_a_large_one_is_bounded():
    with pytest.raises(CompilationBudgetError, match="10,000,000,000 labels"):
        permutation(10**5)
    for limits in ({"timeout": 0.5}, {"max_nodes": 10_000}):
        with pytest.raises(CompilationBudgetError):
            permutation(200).to_circuit(**limits)


def test_other_labels(agrees):
    circuit = agrees(permutation(2, labels={"y[0,1]": "swap"}))
    assert circuit.labels == ("y[0,0]", "swap", "y[1,0]", "y[1,1]")
    assert agrees(ranking(["a", "b"], labels=["p", "q", "r", "s"])).labels == ("p", "q", "r", "s")


def test_errors():
    with pytest.raises(ValueError, match="n must be a whole number of at least 1"):
        permutation(0)
    with pytest.raises(LabelError, match="has 3 names for 4 labels"):
        permutation(2, ["a", "b", "c"])
    with pytest.raises(LabelError, match="'z' in before= is not one of the items"):
        ranking(["a"], before=[("a", "z")])
    with pytest.raises(LabelError, match=r"a before b before c before a|b before c before a|c before a before b"):
        ranking(["a", "b", "c", "d"], before=[("a", "b"), ("b", "c"), ("c", "a"), ("c", "d")])
    with pytest.raises(LabelError, match="a before a"):
        ranking(["a"], before=[("a", "a")])
    with pytest.raises(LabelError, match="pairs of items, not 'ab'"):
        ranking(["a", "b"], before=["ab"])
