from __future__ import annotations

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.constraints import table
from semprola.errors import LabelError


@pytest.mark.parametrize("columns", range(1, 10))
def test_random_tables(agrees, columns):
    draw = np.random.default_rng(columns)
    for rows in (0, 1, 2, 5, 30, 200):
        agrees(table(draw.integers(0, 2, (rows, columns)), labels=[f"x{i}" for i in range(columns)]))


def test_minimal():
    """All rows, all rows but one, rows with an even number of ones, and one-hot rows: all diagrams are small."""
    labels = [f"x{i}" for i in range(10)]
    rows = (np.arange(1024)[:, None] >> np.arange(10)) & 1
    assert table(rows, labels=labels).to_circuit().num_nodes == 1
    assert table(rows[:-1], labels=labels).to_circuit().info["diagram_nodes"] == 10
    even = table(rows[rows.sum(axis=1) % 2 == 0], labels=labels).to_circuit()
    assert even.model_count() == 512
    assert even.info["diagram_nodes"] <= 19
    one_hot = table(np.eye(10, dtype=int), labels=labels).to_circuit()
    assert one_hot.info["diagram_nodes"] == 10


def test_many_rows():
    draw = np.random.default_rng(0)
    rows = draw.random((100_000, 40)) < 0.05
    allowed = table(rows, labels=[f"x{i}" for i in range(40)])
    circuit = allowed.to_circuit()
    assert circuit.model_count() == len(np.unique(rows, axis=0))
    assert circuit.satisfied(rows[:100]).all()
    assert allowed.evaluate(rows[:1000]).all()
    assert not allowed.evaluate(np.ones((1, 40))).any()


def test_order_and_repetition_do_not_matter():
    rows = np.array([[0, 1], [1, 1], [0, 1]])
    assert table(rows, labels=["a", "b"]) == table(rows[::-1], labels=["a", "b"])
    assert table(rows, labels=["a", "b"]) == table(torch.tensor(rows).double(), labels=["a", "b"])
    assert repr(table(rows, labels=["a", "b"])) == "table(2 rows, 2 labels)"


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ([[0, 1, 1]], LabelError, r"shape \[1, 3\], expected \[\*batch, 2\]"),
        ([0, 1], LabelError, r"shape \[2\]"),
        ([[0, 1], [1]], LabelError, r"table must be numbers of shape \[\*batch, 2\]"),
        ([[0, 2]], ValueError, "only 0 and 1"),
        ([[0, float("nan")]], ValueError, "only 0 and 1"),
        ([["0", "1"]], ValueError, "only 0 and 1"),
    ],
)
def test_errors(rows, error, words):
    with pytest.raises(error, match=words) as caught:
        table(rows, labels=["a", "b"])
    assert "\n" not in str(caught.value)


def test_a_data_frame_is_matched_by_its_names():
    pandas = pytest.importorskip("pandas")
    rules = sp.constraints.table(pandas.DataFrame({"a": [1], "b": [0]}), labels=["b", "a"])
    assert rules.evaluate({"a": 1, "b": 0})
    with pytest.raises(sp.LabelError, match="table has no column 'c'"):
        sp.constraints.table(pandas.DataFrame({"a": [1], "b": [0]}), labels=["a", "b", "c"])
