from __future__ import annotations

import math

import pytest

import semprola as sp
from semprola.constraints import cardinality, one_hot
from semprola.errors import LabelError

LETTERS = list("abcdefgh")


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("count", range(1, 7))
def test_all_bounds(agrees, count, balanced):
    for low in range(count + 2):
        agrees(cardinality(LETTERS[:count], at_least=low, balanced=balanced))
        agrees(cardinality(LETTERS[:count], at_most=low, balanced=balanced))
        agrees(cardinality(LETTERS[:count], exactly=low, balanced=balanced))
        for high in range(low, count + 2):
            agrees(cardinality(LETTERS[:count], at_least=low, at_most=high, balanced=balanced))


@pytest.mark.parametrize(
    "bounds", [{"exactly": 50}, {"at_most": 50}, {"at_least": 950}, {"at_least": 20, "at_most": 50}], ids=str
)
@pytest.mark.parametrize("balanced", [False, True])
def test_a_thousand_labels(bounds, balanced):
    circuit = cardinality([f"x{i}" for i in range(1000)], balanced=balanced, **bounds).to_circuit()
    low = bounds.get("at_least", bounds.get("exactly", 0))
    high = bounds.get("at_most", bounds.get("exactly", 1000))
    assert circuit.model_count() == sum(math.comb(1000, k) for k in range(low, high + 1))
    if balanced:
        assert circuit.vtree.depth.max() == 10
        assert circuit.num_nodes < 130_000
    else:
        assert circuit.info["diagram_nodes"] <= 1001 * 51


def test_half_of_a_thousand():
    circuit = cardinality([f"x{i}" for i in range(1000)], exactly=500).to_circuit()
    assert circuit.info["diagram_nodes"] <= 501 * 501
    assert circuit.model_count() == math.comb(1000, 500)


@pytest.mark.parametrize("groups", [["a"], ["ab"], ["abc", "d"], ["a", "b", "cdef", "gh"]])
def test_one_hot(agrees, groups):
    circuit = agrees(one_hot(*(list(group) for group in groups)))
    assert circuit.model_count() == math.prod(map(len, groups))
    assert circuit.num_nodes <= sum(map(len, groups)) + len(groups) + 1


def test_one_hot_is_flat():
    circuit = one_hot([f"x{i}" for i in range(1000)]).to_circuit()
    assert (circuit.num_nodes, circuit.num_edges) == (1001, 1000)


def test_equality_and_description():
    assert cardinality(["a", "b"], exactly=1) == cardinality(["a", "b"], at_least=1, at_most=1)
    assert cardinality(["a", "b"], exactly=1) != cardinality(["a", "b"], at_most=1)
    assert repr(cardinality(["a", "b"], exactly=1)) == "cardinality(2 labels, 1 to 1)"
    assert repr(one_hot(["a"], ["b", "c"])) == "one_hot(2 groups, 3 labels)"


def test_combines_with_formulas():
    both = cardinality(["a", "b", "c"], exactly=2) & ~one_hot(["a", "b"])
    assert both.labels == ("a", "b", "c")
    assert both.evaluate({"a": 1, "b": 1, "c": 0})
    assert not both.evaluate({"a": 1, "b": 0, "c": 1})


@pytest.mark.parametrize(
    ("labels", "bounds", "error", "words"),
    [
        (["a", "a"], {"exactly": 1}, LabelError, "'a' is listed twice"),
        ([], {"exactly": 1}, LabelError, "at least one label"),
        ("abc", {"exactly": 1}, LabelError, "a list of names, not 'abc'"),
        (["a", 3], {"exactly": 1}, LabelError, "non-empty string, not 3"),
        (["a"], {}, ValueError, "give at_least=, at_most= or exactly="),
        (["a"], {"exactly": 1, "at_most": 1}, ValueError, "not both"),
        (["a"], {"exactly": -1}, ValueError, "exactly must be a whole number"),
        (["a"], {"at_most": 0.5}, ValueError, "at_most must be a whole number"),
        (["a"], {"at_least": True}, ValueError, "at_least must be a whole number"),
    ],
)
def test_errors(labels, bounds, error, words):
    with pytest.raises(error, match=words) as caught:
        cardinality(labels, **bounds)
    assert "\n" not in str(caught.value)


def test_one_hot_errors():
    with pytest.raises(LabelError, match="'b' is in groups 1 and 2"):
        one_hot(["a", "b"], ["b"])
    with pytest.raises(LabelError, match="at least one group"):
        one_hot()
    with pytest.raises(LabelError, match="group 2: there must be at least one label"):
        one_hot(["a"], [])


@pytest.mark.parametrize("bounds", [{"exactly": 3}, {"at_least": 3}, {"at_least": 2, "at_most": 1}])
def test_bounds_that_cannot_hold_leave_no_model(bounds):
    rules = sp.constraints.cardinality(["a", "b"], **bounds)
    with pytest.raises(sp.UnsatisfiableError):
        sp.compile(rules)
    assert sp.rules.model_count(rules) == sp.rules.model_count(rules & sp.Bool("c")) == 0
    assert sp.compile(~rules).model_count() == 4
