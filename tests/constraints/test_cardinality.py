from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import semprola as sp
from semprola.constraints import cardinality, one_hot
from semprola.errors import LabelError

LETTERS = list("abcdefgh")


def agrees(rules, labels):
    """The circuit of rules, compared with their definition."""
    rows = np.array(list(itertools.product([0, 1], repeat=len(labels))))
    truth = rules.evaluate(rows, labels=labels)
    try:
        circuit = sp.compile(rules, labels=labels, cache=False)
    except sp.errors.UnsatisfiableError:
        assert not truth.any()
        return None
    np.testing.assert_array_equal(circuit.satisfied(rows), truth)
    assert circuit.model_count() == truth.sum()
    assert circuit.is_deterministic
    assert circuit.is_decomposable
    return circuit


@pytest.mark.parametrize("count", range(1, 6))
def test_all_bounds(count):
    labels = LETTERS[:count]
    for low in range(count + 2):
        agrees(cardinality(labels, at_least=low), labels)
        agrees(cardinality(labels, at_most=low), labels)
        agrees(cardinality(labels, exactly=low), labels)
        for high in range(low, count + 2):
            agrees(cardinality(labels, at_least=low, at_most=high), labels)


@pytest.mark.parametrize(
    "bounds", [{"exactly": 50}, {"at_most": 50}, {"at_least": 950}, {"at_least": 20, "at_most": 50}], ids=str
)
def test_a_thousand_labels(bounds):
    circuit = sp.compile(cardinality([f"x{i}" for i in range(1000)], **bounds), cache=False)
    low = bounds.get("at_least", bounds.get("exactly", 0))
    high = bounds.get("at_most", bounds.get("exactly", 1000))
    assert circuit.model_count() == sum(math.comb(1000, k) for k in range(low, high + 1))
    assert circuit.info["diagram_nodes"] <= 1001 * 51


@pytest.mark.parametrize("groups", [["a"], ["ab"], ["abc", "d"], ["a", "b", "cdef", "gh"]])
def test_one_hot(groups):
    labels = [name for group in groups for name in group]
    circuit = agrees(one_hot(*(list(group) for group in groups)), labels)
    assert circuit.model_count() == math.prod(map(len, groups))


def test_one_hot_is_flat():
    circuit = sp.compile(one_hot([f"x{i}" for i in range(1000)]), cache=False)
    assert (circuit.num_nodes, circuit.num_edges) == (1001, 1000)


def test_the_same_as_the_formulas():
    assert (
        cardinality(["a", "b"], exactly=1) == cardinality(["a", "b"], at_least=1, at_most=1) == sp.one_hot(["a", "b"])
    )
    assert cardinality(["a", "b"], exactly=1) != cardinality(["a", "b"], at_most=1)
    assert one_hot(["a"], ["b", "c"]) == sp.one_hot(["a"]) & sp.one_hot(["b", "c"])


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
