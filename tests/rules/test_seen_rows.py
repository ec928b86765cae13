"""Only the combinations in a table are allowed, compared with the rows of the table."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import semprola as sp
from semprola.errors import LabelError


def test_allowed_are_the_rows_of_the_frame() -> None:
    pandas = pytest.importorskip("pandas")
    chance = np.random.default_rng(0)
    for _ in range(5):
        frame = pandas.DataFrame(
            {
                "ripe": chance.integers(0, 2, 12),
                "colour": chance.choice(["red", "green", "blue"], 12),
                "big": chance.integers(0, 2, 12).astype(bool),
                "size": chance.choice([0.5, 1.0, 2.0], 12),
            },
            index=[f"r{i}" for i in range(12)],
        )
        rules = sp.rules.from_rows(frame)
        encoded = pandas.get_dummies(
            frame.astype({"ripe": int, "big": int}), columns=["colour", "size"], prefix_sep="="
        )
        seen = {tuple(row) for row in encoded[list(rules.labels)].astype(int).itertuples(index=False)}
        every = np.array([*itertools.product((0, 1), repeat=len(rules.labels))])
        assert rules.evaluate(every).tolist() == [tuple(row) in seen for row in every.tolist()]
        assert sp.rules.model_count(rules) == len(frame.drop_duplicates())


def test_bad_tables() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="row r1 has no value of 'a'"):
        sp.rules.from_rows(pandas.DataFrame({"a": [1.0, None]}, index=["r0", "r1"]))
    with pytest.raises(LabelError, match="differ in length"):
        sp.rules.from_rows({"a": [1], "b": [1, 0]})
    with pytest.raises(LabelError, match="at least one column"):
        sp.rules.from_rows({})
    with pytest.raises(LabelError, match="and one row"):
        sp.rules.from_rows({"a": []})
    with pytest.raises(TypeError, match="takes a data frame"):
        sp.rules.from_rows([[0, 1]])
