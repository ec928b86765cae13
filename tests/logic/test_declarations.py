"""Variables that a text of rules declares itself."""

from __future__ import annotations

import pytest

import semprola as sp
from semprola.errors import ParseError

N, M = sp.Integer("n", 0, 3), sp.Integer("m", 0, 3)
COLOUR = sp.constraints.Categorical("colour", ["red", "light green"])


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("variable n, m: 0..3\n2*n + m <= 7 -> x", (2 * N + M <= 7) >> sp.Bool("x")),
        ("sums: n + m == 3  # later lines may declare, too\nvariable n: 0 .. 3\nvariables m: 0..3 # both", N + M == 3),
        (
            "variable colour: red, 'light green'\ncolour == 'light green' -> x",
            (COLOUR == "light green") >> sp.Bool("x"),
        ),
        ("variable 'my n':-2..1\n'my n' < 0", sp.Integer("my n", -2, 1) < 0),
        ("variable n: 1, 4, 9\nn > 3", sp.constraints.Categorical("n", [1, 4, 9]).isin([4, 9])),
    ],
)
def test_declared_and_listed_variables_mean_the_same(text: str, formula: sp.logic.Formula) -> None:
    read = sp.parse(text)
    assert {*read.labels} == {*formula.labels}
    count = sp.rules.model_count(formula)
    assert sp.rules.model_count(read) == sp.rules.model_count(read & formula) == count


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "variable n 0..9\nn",
            "at 1:10: expected an operator, found 'n'; a variable is declared as in",
        ),
        ("a\nvariable n: 9..0", "at 2:10: Integer 'n': low=9 is above high=0"),
        ("variable n: 0..9999999\nn > 1", "at 1:10: Integer 'n': one label per value makes 10,000,000 labels"),
        ("variable n:\nn > 3", "at 1:12: expected a range or values, as in variable n: 0..9 or variable colour"),
        ("variable n: 0..\nn > 3", "at 1:12: expected a range or values"),
        ("variable n: red,\nn == red", "at 1:12: expected a range or values"),
        ("variable n: 0..2\nvariable m, n: 0..3\nn > 1", "at 2:13: variable 'n' is declared twice"),
        ("variable n: red, red\nn == red", "at 1:10: variable 'n'"),
        ("n: 0..9", "at 1:4: a range is not a formula: declare a variable, as in variable n: 0..9"),
        ("variable n: 0..2\nk > 3", "at 2:3: expected an operator, found '>'; a variable with numbers is declared as"),
        ("variable n: 0..2", "at 1:1: expected a formula, found the end of the text"),
    ],
)
def test_mistakes(text: str, message: str) -> None:
    with pytest.raises(ParseError) as error:
        sp.parse(text)
    assert message in str(error.value)


def test_a_label_may_be_called_variable() -> None:
    assert sp.parse("variable: cat -> variable") == sp.parse("cat -> variable")
