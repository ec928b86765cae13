"""Reasoning shortcuts against enumeration of all readings."""

from __future__ import annotations

import itertools
import random

import pytest

import semprola as sp
from semprola.errors import LabelError

A, B, TOTAL = sp.Integer("a", 0, 3), sp.Integer("b", 0, 3), sp.Integer("sum", 0, 6)


def _explain(derive, rows, values):
    """All maps of one reader that derive the same from every row."""
    seen = sorted({v for row in rows for v in row})
    for image in itertools.product(values, repeat=len(seen)):
        reading = dict(zip(seen, image, strict=True))
        if all(derive(*(reading[v] for v in row)) == derive(*row) for row in rows):
            yield reading


@pytest.mark.parametrize("seed", range(8))
def test_one_reader_against_enumeration(seed):
    rng = random.Random(seed)
    rows = [(rng.randrange(4), rng.randrange(4)) for _ in range(rng.randint(1, 5))]
    rules, derive = [
        (A + B == TOTAL, lambda x, y: x + y),
        (abs(A - B) == TOTAL, lambda x, y: abs(x - y)),
        (sp.Iff((A + B) % 2 == 1, sp.Bool("odd")), lambda x, y: (x + y) % 2),
    ][seed % 3]
    report = sp.rules.shortcuts(rules, [{"a": x, "b": y} for x, y in rows])
    readings = list(_explain(derive, rows, range(4)))
    assert report.count == len(readings) - 1
    (found,) = report.readings.values()
    assert found == {v: tuple(sorted({r[v] for r in readings})) for v in sorted({v for row in rows for v in row})}
    assert report.unseen == ({"a, b": rest} if (rest := tuple(v for v in range(4) if v not in found)) else {})


def test_separate_readers_and_labels():
    rules = sp.Iff(sp.Bool("x") ^ sp.Bool("y"), sp.Bool("odd"))
    rows = [{"x": 0, "y": 1}, {"x": 1, "y": 1}]
    report = sp.rules.shortcuts(rules, rows, readers={"x": "first", "y": "second"})
    assert report.count == 1  # both turned around
    assert report.confused == {"first": {0: (0, 1), 1: (0, 1)}, "second": {1: (0, 1)}}
    assert "first: 0 may be read as 0, 1" in str(report)
    assert "no shortcut" in str(sp.rules.shortcuts(A + B == TOTAL, [{"a": v, "b": v} for v in range(4)]))


@pytest.mark.parametrize(
    ("rules", "rows", "message"),
    [
        (A + B == TOTAL, [], "no rows"),
        (A + B == TOTAL, [{"a": 1}], "do not determine the other variables"),
        (A + B == TOTAL, [{"a": 1, "c": 1}], "'c' is not a variable of the rules"),
        (A + B == TOTAL, [{"a": 1, "b": 9}], "row 0: 'b' has no value 9"),
        (A + B == TOTAL, [{"a": 1, "b": 1}, {"a": 1}], "row 1 has other concepts"),
        ((A + B == TOTAL) & (A != B), [{"a": 1, "b": 1}], "breaks the rules"),
        (A + B == TOTAL, ["a", "b"], "needs the values of the concepts, .* not 'a'"),
        (A + B == TOTAL, {"a": [0, 1], "b": [0, 1]}, "needs the values of the concepts"),
    ],
)
def test_errors(rules, rows, message):
    with pytest.raises(LabelError, match=message):
        sp.rules.shortcuts(rules, rows)
