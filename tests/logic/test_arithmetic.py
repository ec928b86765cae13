"""Comparisons of numbers in the text of formulas."""

from __future__ import annotations

import itertools

import pytest

import semprola as sp
from semprola.errors import LabelError, ParseError

N, M = sp.Integer("n", 0, 4), sp.Integer("m", -1, 3)
COLOUR = sp.Categorical("my colour", ["red", "dark green"])


@pytest.mark.parametrize(
    ("text", "python"),
    [
        ("2*n + m <= 7 -> x", "not (2*n + m <= 7) or x"),
        ("(n + m) * 2 == 4 & (x | n != m)", "(n + m) * 2 == 4 and (x or n != m)"),
        ("0 <= m + 0 < 2", "0 <= m < 2"),
        ("n in (1, 2) | n + m in (0, 5)", "n in (1, 2) or n + m in (0, 5)"),
        ("all_different(n, m) & !(n<-1)", "n != m"),
        ("abs(n-m) == 1\nmin(n, m, 3) >= 2 # both lines", "abs(n - m) == 1 and min(n, m, 3) >= 2"),
        ("-n + 3 > m <-> x", "(-n + 3 > m) == x"),
        ("n // 2 % 2 == 1 ^ x", "(n // 2 % 2 == 1) != x"),
        ("element(n % 2, 1, m) == max(m, 2)", "(1, m)[n % 2] == max(m, 2)"),
        ("first: ((x)) & ((n)) < 3\nm == n", "x and n < 3 and m == n"),
    ],
)
def test_comparisons(text, python):
    formula = sp.parse(text, variables=[N, M])
    for n, m, x in itertools.product(N.values, M.values, [False, True]):
        row = {label: int(label in (f"n={n}", f"m={m}")) for label in (*N.labels, *M.labels)} | {"x": int(x)}
        assert formula.evaluate(row) == bool(eval(python, {"n": n, "m": m, "x": x})), (n, m, x)


def test_values_by_name():
    for text in ("'my colour' == red", '"my colour" in (red)', "'my colour' != 'dark green'"):
        circuit = sp.compile(sp.parse(text, variables=[COLOUR]))
        (row,) = circuit.enumerate()
        assert COLOUR.decode(row, circuit.labels) == "red"


@pytest.mark.parametrize(
    ("text", "message", "column"),
    [
        ("n & x", "expected a comparison, such as n >= 1, found '&'", 3),
        ("x & n == 12", "variable 'n' has no value 12, only 0 to 4", 7),
        ("n + k <= 3", "expected a number or one of the declared variables, found 'k'", 5),
        ("'my colour' == blue", "variable 'my colour' has no value 'blue', only 'red', 'dark green'", 13),
        ("n * m < 3", "one factor must be a constant", 3),
        ("element(n, 1, 2) == 3", "the place goes from 0 to 4", 1),
        ("(n + m", "expected a comparison", 7),
        ("(n + m <= 3", "this '(' is never closed", 1),
        ("n + m <=", "expected a number or one of the declared variables, found the end of the text", 9),
        ("n // 0 == 1", "the divisor must be a whole number of at least 1", 3),
        ("abs(n, m) < 3", "abs takes one number, not 2", 1),
        ("(" * 200 + "n" + ")" * 200 + " < 3", "more than 100 parentheses", 101),
    ],
)
def test_errors(text, message, column):
    with pytest.raises(ParseError) as caught:
        sp.parse(text, variables=[N, M, COLOUR])
    assert message in str(caught.value)
    assert caught.value.column == column


def test_declarations_are_checked():
    with pytest.raises(LabelError, match="must list integers and categoricals, not 'n'"):
        sp.parse("n <= 3", variables=["n"])
    with pytest.raises(LabelError, match="'n' twice"):
        sp.parse("n <= 3", variables=[N, sp.Integer("n", 0, 1)])
