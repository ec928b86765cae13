"""First-order rules over finite domains are the formulas that one would write by hand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import semprola as sp
from semprola.errors import LabelError

PEOPLE = ["ann", "bob", "cid"]
smokes, friends = sp.logic.Predicate("smokes"), sp.logic.Predicate("friends", 2)
X, Y = sp.logic.Variable("X"), sp.logic.Variable("Y")


def test_functions_and_variables_give_the_same_formula() -> None:
    by_function = sp.logic.forall(PEOPLE, PEOPLE, lambda x, y: (smokes(x) & friends(x, y)) >> smokes(y))
    by_variables = sp.logic.forall({X: PEOPLE, Y: PEOPLE}, (smokes(X) & friends(X, Y)) >> smokes(Y))
    assert by_function == by_variables
    by_hand = sp.And(
        (sp.Bool(f"smokes({x})") & sp.Bool(f"friends({x},{y})")) >> sp.Bool(f"smokes({y})")
        for x, y in itertools.product(PEOPLE, repeat=2)
    )
    assert by_function == by_hand


def test_nested() -> None:
    queens = sp.logic.forall(range(4), lambda r: sp.logic.exists(range(4), lambda c: sp.Bool(f"q{r}{c}")))
    rows = [sp.one_hot([f"q{r}{c}" for c in range(4)]) for r in range(4)]
    columns = [sp.at_most(1, [f"q{r}{c}" for r in range(4)]) for c in range(4)]
    cells = list(itertools.product(range(4), repeat=2))
    diagonals = sp.logic.forall(
        cells,
        cells,
        lambda a, b: ~(sp.Bool(f"q{a[0]}{a[1]}") & sp.Bool(f"q{b[0]}{b[1]}")),
        where=lambda a, b: a < b and abs(a[0] - b[0]) == abs(a[1] - b[1]),
    )
    assert sp.compile(sp.And([queens, diagonals, *rows, *columns])).model_count() == 2


def test_empty_domains() -> None:
    assert sp.logic.forall([], lambda x: smokes(x)) is sp.logic.TRUE
    assert sp.logic.exists([], lambda x: smokes(x)) is sp.logic.FALSE


def test_exists_with_variables() -> None:
    assert sp.logic.exists({X: PEOPLE[:2]}, smokes(X) & ~smokes("cid")) == (
        (smokes("ann") & ~smokes("cid")) | (smokes("bob") & ~smokes("cid"))
    )


def test_names() -> None:
    cell = sp.logic.Predicate("cell")
    assert cell((0, 1), "x").name == "cell(0,1,x)"
    assert cell(sp.Bool("a")).name == "cell(a)"
    assert sp.logic.forall({"X": [3]}, cell(X)) == sp.Bool("cell(3)")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: sp.logic.forall(PEOPLE), "at least one domain and a rule"),
        (lambda: sp.logic.forall("ann", lambda x: smokes(x)), "must be a list of items, not 'ann'"),
        (lambda: sp.logic.forall(PEOPLE, lambda x, y: smokes(x)), "takes 2 items, but the number of domains is 1"),
        (lambda: sp.logic.forall(PEOPLE, lambda x: x), "must return a formula, but does not for"),
        (lambda: sp.logic.forall(PEOPLE, 3), "a function of the items or a formula, not 3"),
        (lambda: sp.logic.forall({X: PEOPLE}, friends(X, Y)), "variable 'Y' of .* has no domain"),
        (lambda: sp.logic.forall(PEOPLE, smokes(X)), "a mapping from its variables"),
        (lambda: sp.logic.forall(range(2000), range(2000), lambda x, y: smokes(x)), "4,000,000 instances are too many"),
        (lambda: friends("ann"), "takes 2 items, got 1"),
        (lambda: smokes("who?"), r"must not contain '\?'"),
        (lambda: smokes(sp.parse("a & b")), "applied to items, not to the formula"),
        (lambda: sp.logic.Variable("a b"), "letters, digits and underscores"),
        (lambda: sp.logic.Predicate(""), "non-empty name"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises(LabelError, match=message):
        call()
