"""Evaluation on mappings, arrays, tensors and lists, and what it refuses."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from semprola.errors import LabelError
from semprola.logic import FALSE, TRUE, And, Bool, Cnf, exactly, parse

rule = parse("(cat -> animal) & (dog -> animal)")
ROWS = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 1, 1], [0, 0, 1]]  # cat, animal, dog
TRUTH = [True, False, True, True, True, False]


@pytest.mark.parametrize(
    ("text", "models"),
    [
        ("~a", {(0, 0), (0, 1)}),
        ("a & b", {(1, 1)}),
        ("a | b", {(0, 1), (1, 0), (1, 1)}),
        ("a ^ b", {(0, 1), (1, 0)}),
        ("a -> b", {(0, 0), (0, 1), (1, 1)}),
        ("a <-> b", {(0, 0), (1, 1)}),
        ("true", {(0, 0), (0, 1), (1, 0), (1, 1)}),
        ("false", set()),
        ("exactly(1, a, b)", {(0, 1), (1, 0)}),
        ("at_most(1, a, b)", {(0, 0), (0, 1), (1, 0)}),
        ("at_least(1, a, b)", {(0, 1), (1, 0), (1, 1)}),
        ("count(1, 2, a, a, b)", {(0, 1), (1, 0)}),
    ],
)
def test_truth_tables(text: str, models: set[tuple[int, int]]) -> None:
    formula = parse(text)
    for x, y in itertools.product((0, 1), repeat=2):
        value = formula.evaluate({"a": x, "b": y, "ignored": "anything"})
        assert value is ((x, y) in models)
        assert formula.evaluate([x, y], labels=["a", "b"]) is value


@pytest.mark.parametrize("value", [1, True, np.True_, 1.0, np.int8(1), torch.tensor(1), np.array(1)])
def test_truth_values_of_a_mapping(value) -> None:
    assert Bool("a").evaluate({"a": value}) is True
    assert Bool("a").evaluate({"a": value * 0}) is False


@pytest.mark.parametrize("dtype", [bool, np.int8, np.int64, np.float32, object])
def test_arrays(dtype) -> None:
    result = rule.evaluate(np.array(ROWS, dtype=dtype))
    assert result.dtype == np.bool_
    assert result.tolist() == TRUTH
    stacked = rule.evaluate(np.array([ROWS, ROWS[::-1]], dtype=dtype))
    assert stacked.tolist() == [TRUTH, TRUTH[::-1]]


@pytest.mark.parametrize("dtype", [torch.bool, torch.uint8, torch.int64, torch.float32, torch.bfloat16])
def test_tensors(dtype: torch.dtype) -> None:
    result = rule.evaluate(torch.tensor(ROWS, dtype=dtype))
    assert result.dtype == torch.bool
    assert result.tolist() == TRUTH
    single = rule.evaluate(torch.tensor(ROWS[3], dtype=dtype))
    assert single.shape == ()
    assert bool(single) is True
    assert rule.evaluate(torch.tensor([ROWS] * 2, dtype=dtype)).shape == (2, 6)


def test_tensors_with_gradients_and_empty_ones() -> None:
    assert rule.evaluate(torch.tensor(ROWS, dtype=torch.float64, requires_grad=True)).tolist() == TRUTH
    assert rule.evaluate(torch.zeros(0, 3)).shape == (0,)
    assert rule.evaluate(np.zeros((4, 0, 3))).shape == (4, 0)


def test_columns_by_name() -> None:
    rows = np.array(ROWS)[:, [2, 0, 1]]
    rows = np.concatenate([np.ones((6, 1), dtype=int), rows], axis=1)
    assert rule.evaluate(rows, labels=["free", "dog", "cat", "animal"]).tolist() == TRUTH
    assert TRUE.evaluate(rows, labels=["w", "x", "y", "z"]).all()
    assert not FALSE.evaluate(rows, labels=["w", "x", "y", "z"]).any()
    assert TRUE.evaluate(np.zeros((3, 0))).tolist() == [True] * 3


def test_rows_beyond_one_block(monkeypatch: pytest.MonkeyPatch) -> None:
    import semprola.logic.evaluate as module

    monkeypatch.setattr(module, "_BLOCK_BYTES", 16)
    rows = np.random.default_rng(0).integers(0, 2, (101, 3))
    expected = [(not r[0] or r[1]) and (not r[2] or r[1]) for r in rows.tolist()]
    assert rule.evaluate(rows).tolist() == [bool(value) for value in expected]


def test_the_input_is_not_changed() -> None:
    rows = np.array(ROWS, dtype=bool)
    before = rows.copy()
    And(Bool("cat"), Bool("animal"), Bool("dog")).evaluate(rows)
    exactly(1, rule.labels).evaluate(rows)
    assert (rows == before).all()


@pytest.mark.parametrize(
    ("rows", "labels", "error", "message"),
    [
        (
            {"cat": 1, "animal": 1},
            None,
            LabelError,
            "no value for label 'dog'; the formula mentions it, so give it 0 or 1",
        ),
        ({}, None, LabelError, "no value for label 'cat' (and for 2 more); the formula mentions it, so give it 0 or 1"),
        ({"cat": 2, "dog": 0, "animal": 0}, None, ValueError, "label 'cat': expected 0 or 1, got 2"),
        ({"cat": "1", "dog": 0, "animal": 0}, None, ValueError, "label 'cat': expected 0 or 1, got '1'"),
        ({"cat": None, "dog": 0, "animal": 0}, None, ValueError, "label 'cat': expected 0 or 1, got None"),
        (
            {"cat": np.ones(2), "dog": 0, "animal": 0},
            None,
            ValueError,
            "label 'cat': expected 0 or 1, got array([1., 1.])",
        ),
        (
            {"cat": torch.ones(2), "dog": 0, "animal": 0},
            None,
            ValueError,
            "label 'cat': expected 0 or 1, got tensor([1., 1.])",
        ),
        ([[1, 0]], None, LabelError, "the rows have 2 columns, but the formula has 3; name the columns with labels="),
        ([[1, 0]], ["cat", "dog", "animal"], LabelError, "the rows have 2 columns, but labels= names 3"),
        (1, None, LabelError, "expected rows of 3 values or a mapping from names to values, got a single value"),
        ([[1, 0, 1], [1, 2, 0]], None, ValueError, "row 1, label 'animal': expected 0 or 1, got 2"),
        ([0, 0.5, 1], None, ValueError, "label 'animal': expected 0 or 1, got 0.5"),
        (np.array([[0, np.nan, 1]]), None, ValueError, "row 0, label 'animal': expected 0 or 1, got nan"),
        (torch.tensor([[[0, -1, 1]]]), None, ValueError, "row 0, 0, label 'animal': expected 0 or 1, got -1"),
        ([["a", "b", "c"]], None, ValueError, "row 0, label 'cat': expected 0 or 1, got 'a'"),
        ([[0, 1, 1], [0]], None, ValueError, "rows must be an array, a tensor or a list of rows of equal length"),
        (
            [[0, 1]],
            ["cat", "dog"],
            LabelError,
            "no column for label 'animal', which the formula mentions; add it to labels=",
        ),
        ([[0, 1]], ["cat", "cat"], LabelError, "label 'cat' names two columns, 0 and 1"),
        ([[0, 1]], ["cat", 3], LabelError, "label 1 must be a string, got 3"),
        ([[0, 1]], "cat", LabelError, "labels must be a list of names, got the string 'cat'"),
        ({"cat": 1}, ["cat"], TypeError, "labels= names the columns of an array; a mapping carries its own names"),
    ],
)
def test_errors(rows, labels, error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        rule.evaluate(rows, labels)
    assert str(caught.value) == message


def test_cnf_against_the_formula_of_its_clauses() -> None:
    generator = np.random.default_rng(3)
    for _ in range(30):
        clauses = [
            [int(v) * int(s) for v, s in zip(generator.integers(1, 7, k), generator.choice([-1, 1], k), strict=True)]
            for k in generator.integers(1, 4, 8)
        ]
        cnf = Cnf(6, clauses)
        rows = np.array(list(itertools.product((0, 1), repeat=6)))
        expected = cnf.to_formula().evaluate(rows, labels=cnf.labels)
        assert (cnf.evaluate(rows) == expected).all()
        assert ((~cnf | Bool("3")).evaluate(rows, labels=cnf.labels) == (~expected | (rows[:, 2] == 1))).all()


def test_a_data_frame_is_matched_by_name_whatever_labels_say() -> None:
    pandas = pytest.importorskip("pandas")
    rules, frame = parse("a -> b"), pandas.DataFrame({"b": [0, 1], "a": [1, 1], "other": [5, 6]})
    assert rules.evaluate(frame).tolist() == rules.evaluate(frame, labels=["a", "b"]).tolist() == [False, True]
    assert not rules.evaluate(pandas.Series({"b": 0, "a": 1}))
    with pytest.raises(LabelError, match="rows has the column 'a' twice"):
        rules.evaluate(pandas.DataFrame([[1, 0, 1]], columns=list("aba")))
