from __future__ import annotations

import itertools
import operator
import pickle

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.constraints import Categorical, Integer
from semprola.errors import LabelError, UnsatisfiableError


def _worlds(*variables):
    """All values of the variables, each with the corresponding assignment of labels."""
    for values in itertools.product(*(v.values for v in variables)):
        on = {f"{v.name}={value}" for v, value in zip(variables, values, strict=True)}
        yield values, {label: label in on for v in variables for label in v.labels}


def test_categorical():
    colour = Categorical("colour", ["red", "green", "blue"])
    for (value,), world in _worlds(colour):
        assert colour.rule.evaluate(world)
        assert colour.decode(world) == value
        assert (colour == "red").evaluate(world) == (value == "red")
        assert (colour != "red").evaluate(world) == (value != "red")
        assert colour.isin(["red", "blue"]).evaluate(world) == (value in ("red", "blue"))
    assert not colour.rule.evaluate(dict.fromkeys(colour.labels, 1))
    assert not any(colour.isin([]).evaluate(world) for _, world in _worlds(colour))


@pytest.mark.parametrize("shape", [(), (4,), (2, 3), (0,)])
def test_predictions_of_a_batch_are_decoded(shape):
    colour, n = Categorical("colour", ["red", "green", "blue"]), Integer("n", 1, 4)
    p = sp.ProductSPL(3, n.rule & colour.rule & (n == 2) >> (colour == "red"))(torch.randn(*shape, 3))
    for variable in (colour, n):
        columns = [p.labels.index(label) for label in variable.labels]
        expected = p.mode[..., columns].argmax(-1)
        values = variable.decode(p.to_dict())
        assert np.shape(values) == shape
        assert np.ravel(values).tolist() == [variable.values[i] for i in expected.flatten().tolist()]
        assert variable.decode(p.mode, p.labels) == values
        assert variable.decode(p.mode.numpy(), labels=p.labels) == values
        assert variable.decode(p.mode[..., columns]) == values
    only = sp.SPL(3, n.rule)(torch.randn(*shape, 3))
    assert n.decode(only.mode) == n.decode(only.to_dict())
    if len(shape) == 1 and shape[0]:
        assert n.decode(p.to_frame()) == n.decode(p.to_dict())


def test_batches_that_are_no_values():
    n = Integer("n", 1, 2)
    with pytest.raises(LabelError, match=r"^variable 'n' has 2 values in row 1 of the assignment instead of one$"):
        n.decode([[0, 1], [1, 1]])
    with pytest.raises(LabelError, match="has 0 values in row 0, 1 of"):
        n.decode({"n=1": [[1, 0]], "n=2": [[0, 0]]})
    with pytest.raises(LabelError, match=r"the assignment has shape \[5, 3\], expected \[\*batch, 2\]: pass labels="):
        n.decode(torch.zeros(5, 3))
    with pytest.raises(LabelError, match="no value for label 'n=2'"):
        n.decode(torch.zeros(5, 3), ["a", "b", "n=1"])
    with pytest.raises(LabelError, match="the columns of the assignment have different shapes"):
        n.decode({"n=1": [1, 0], "n=2": 0})


def test_two_categoricals():
    first, second = Categorical("a", ["x", "y", "z"]), Categorical("b", ["y", "z", "w"])
    for (a, b), world in _worlds(first, second):
        assert (first == second).evaluate(world) == (a == b)
        assert (first != second).evaluate(world) == (a != b)


@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_integers(compare):
    n, m = Integer("n", -1, 2), Integer("m", 0, 4)
    for (value, other), world in _worlds(n, m):
        assert compare(n, m).evaluate(world) == compare(value, other)
        for number in range(-3, 5) if compare not in (operator.eq, operator.ne) else n.values:
            assert compare(n, number).evaluate(world) == compare(value, number)
            assert compare(number, n).evaluate(world) == compare(number, value)


@pytest.mark.parametrize(
    ("make", "count"),
    [
        (lambda n, m: n >= 1, 3),
        (lambda n, m: ~(n >= 1), 1),
        (lambda n, m: n >= 0, 4),
        (lambda n, m: ~(n > 9), 4),
        (lambda n, m: n != 2, 3),
        (lambda n, m: ~n.isin([]), 4),
        (lambda n, m: n == m, 2),
        (lambda n, m: ~(n == m), 6),
        (lambda n, m: n < m, 1),
        (lambda n, m: (n < 2) | (m == 1), 6),
        (lambda n, m: (n >= 1) & n.rule, 3),
        (lambda n, m: (n >= 1) & sp.Bool("n=2"), 1),
        (lambda n, m: sp.exactly(1, [n == 1, m == 1]), 4),
        (lambda n, m: ((n == 1) >> (m == 1)).substitute({"n=1": True}), 1),
    ],
)
def test_the_rule_of_a_variable_comes_along(make, count):
    formula = make(Integer("n", 0, 3), Integer("m", 0, 1))
    circuit = sp.compile(formula)
    assert circuit.model_count() == count
    assert circuit.labels == formula.labels
    assert formula.evaluate(circuit.enumerate()).all()
    rows = np.array(list(itertools.product([0, 1], repeat=len(formula.labels))))
    assert formula.evaluate(rows).sum() == count
    assert (formula.evaluate(rows) == formula.evaluate(rows, labels=formula.labels)).all()
    assert sp.compile(sp.parse(str(formula)), labels=circuit.labels) == circuit
    assert pickle.loads(pickle.dumps(formula)) is formula


def test_columns_are_in_the_order_of_the_labels():
    """A table without names was read in another order than the labels of the formula say."""
    n = Integer("n", 0, 3)
    formula = n >= 2
    assert sp.compile(formula).labels == formula.labels == n.labels
    assert formula.evaluate([[0, 0, 1, 0], [1, 0, 0, 0]]).tolist() == [True, False]
    p = sp.constrain(torch.tensor([0.0, 0.0, 0.0, 9.0]), formula)
    assert n.decode(p.mode) == 3


def test_values_that_share_nothing_are_never_equal():
    a, b = Categorical("a", ["x"]), Categorical("b", ["y", "z"])
    assert sp.compile(a != b).model_count() == 2
    with pytest.raises(UnsatisfiableError):
        sp.compile(a == b)


def test_numbers_out_of_range_are_refused():
    n = Integer("n", 0, 3)
    for make in (lambda: n == 9, lambda: n != -1, lambda: n.isin([0, 9])):
        with pytest.raises(LabelError, match=r"'n' has no value (9|-1), only 0 to 3"):
            make()


def test_description():
    assert repr(Categorical("c", [1, 2])) == "Categorical('c', [1, 2])"
    assert repr(Integer("n", 0, 9)) == "Integer('n', 0, 9)"
    assert len({Integer("n", 0, 9), Categorical("c", [1])}) == 2


def test_errors():
    colour = Categorical("colour", ["red", "green"])
    with pytest.raises(LabelError, match="'colour' has no value 'pink', only 'red', 'green'"):
        colour == "pink"  # noqa: B015
    with pytest.raises(LabelError, match="not the string 'red'"):
        Categorical("colour", "red")
    with pytest.raises(LabelError, match="'c=1' is listed twice"):
        Categorical("c", [1, "1"])
    with pytest.raises(LabelError, match="at least one label"):
        Categorical("c", [])
    with pytest.raises(LabelError, match="name of a variable"):
        Categorical("", ["a"])
    with pytest.raises(LabelError, match="2 values in the assignment"):
        colour.decode(dict.fromkeys(colour.labels, 1))
    with pytest.raises(LabelError, match="no value for label 'colour=green'"):
        colour.decode({"colour=red": 1})
    with pytest.raises(ValueError, match="low=3 is above high=2"):
        Integer("n", 3, 2)
    with pytest.raises(ValueError, match="use a smaller range"):
        Integer("n", 0, 10**7)
    with pytest.raises(LabelError, match=r"cannot be compared with 1\.5"):
        Integer("n", 0, 3) < 1.5  # noqa: B015


@pytest.mark.parametrize("values", [[1, True], [1, 1.0], [0, False, 2], ["a", 2, 2.0]])
def test_values_that_compare_equal_are_refused(values):
    with pytest.raises(LabelError, match="compare equal; keep one"):
        Categorical("x", values)


def test_values_that_nothing_equals_are_refused():
    with pytest.raises(LabelError, match="nan does not equal itself"):
        Categorical("x", [1, float("nan")])
    with pytest.raises(LabelError, match="cannot be hashed"):
        Categorical("x", [[1], [2]])
