"""Substitution, simplification and negation normal form."""

from __future__ import annotations

import numpy as np
import pytest

from semprola.errors import PropertyError
from semprola.logic import FALSE, TRUE, Bool, Bools, Cnf, parse

a, b, c = Bools("a b c")


def test_substitution_is_simultaneous() -> None:
    assert parse("a -> b").substitute({"a": b, "b": a}) is parse("b -> a")
    assert parse("exactly(1, a, b)").substitute({"a": a & b}) is parse("exactly(1, a & b, b)")


@pytest.mark.parametrize(
    ("value", "constant"), [(True, TRUE), (0, FALSE), (1, TRUE), (np.False_, FALSE), (FALSE, FALSE)]
)
def test_substitution_of_truth_values(value, constant) -> None:
    assert (a & b).substitute({"a": value, "unknown": c}) is (constant & b)


def test_substitution_shares_what_it_does_not_touch() -> None:
    formula = (a ^ b) & c
    assert formula.substitute({"c": a}).args[0] is (a ^ b)
    assert formula.substitute({}) is formula


def test_substitution_refuses() -> None:
    with pytest.raises(TypeError, match=r"^substitute: label 'a' needs a formula, a bool, 0 or 1, got 'b'$"):
        a.substitute({"a": "b"})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"^substitute: label 'a' needs a formula, a bool, 0 or 1, got 2$"):
        a.substitute({"a": 2})
    with pytest.raises(TypeError, match=r"^substitute: the keys must be names of labels, got 3$"):
        a.substitute({3: b})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match=r"^substitute: expected a mapping"):
        a.substitute([("a", b)])  # type: ignore[arg-type]
    cnf = Cnf(2, [[1, 2]])
    assert (cnf & a).substitute({"a": b}) is (cnf & b)
    with pytest.raises(
        PropertyError, match=r"^cannot substitute label '2' inside cnf\(2 variables, 1 clauses\), which"
    ):
        (cnf & a).substitute({"2": b})


@pytest.mark.parametrize(
    ("text", "simple"),
    [
        ("a & true", "a"),
        ("a & false", "false"),
        ("a | true", "true"),
        ("a | false", "a"),
        ("~true | ~~a", "a"),
        ("a & b & a", "a & b"),
        ("a & (b & (c & a))", "a & b & c"),
        ("a | (b | c) | ~a", "true"),
        ("a & (b & ~a)", "false"),
        ("(a & b) & ~(a & b)", "false"),
        ("a ^ a", "false"),
        ("a ^ ~a", "true"),
        ("a ^ (b ^ a)", "b"),
        ("~a ^ b", "~(a ^ b)"),
        ("~a ^ ~b ^ true ^ true", "a ^ b"),
        ("true -> a", "a"),
        ("a -> true", "true"),
        ("a -> false", "~a"),
        ("false -> a", "true"),
        ("a -> a", "true"),
        ("a -> ~a", "~a"),
        ("~a -> a", "a"),
        ("a <-> a", "true"),
        ("a <-> ~a", "false"),
        ("a <-> true", "a"),
        ("false <-> a", "~a"),
        ("exactly(1, a, true, b)", "~a & ~b"),
        ("exactly(2, a, true, b)", "exactly(1, a, b)"),
        ("exactly(2, a, b, ~a, c)", "exactly(1, b, c)"),
        ("exactly(5, a, b)", "false"),
        ("at_most(2, a, b)", "true"),
        ("at_most(0, a, b)", "~a & ~b"),
        ("at_most(1, a, b)", "~a | ~b"),
        ("at_least(1, a, b, c)", "a | b | c"),
        ("at_least(0, a)", "true"),
        ("exactly(2, a, b)", "a & b"),
        ("exactly(2, a, a)", "a"),
        ("exactly(0)", "true"),
        ("exactly(2, a, false, b, c)", "exactly(2, a, b, c)"),
        ("~~(a & b) & c", "a & b & c"),
        ("(a & b | false) & c", "a & b & c"),
        ("a -> (b -> (c -> false) | true)", "true"),
    ],
)
def test_simplify(text: str, simple: str) -> None:
    result = parse(text).simplify()
    assert str(result) == simple
    assert result.simplify() is result


def test_simplify_keeps_custom_leaves() -> None:
    cnf = Cnf(2, [[1, 2]])
    assert (cnf & TRUE & Cnf(2, [[1, 2]])).simplify() == cnf
    assert (cnf & ~cnf).simplify() is FALSE


def test_simplify_does_not_square_the_size_of_shared_prefixes() -> None:
    prefix, prefixes = Bool("x0"), FALSE
    for i in range(1, 400):
        prefix = prefix & Bool(f"x{i}")
        prefixes = prefixes | (prefix ^ Bool("y"))
    simple = prefixes.simplify()
    assert sum(len(node.args) for node in simple.nodes()) <= sum(len(node.args) for node in prefixes.nodes())


@pytest.mark.parametrize(
    ("text", "nnf"),
    [
        ("~(a & ~b)", "~a | b"),
        ("~(a | b)", "~a & ~b"),
        ("~(a -> b)", "a & ~b"),
        ("a ^ b", "a & ~b | ~a & b"),
        ("a <-> b", "a & b | ~a & ~b"),
        ("~exactly(1, a, b, c)", "exactly(0, a, b, c) | at_least(2, a, b, c)"),
        ("~at_most(1, ~~a, b, c)", "at_least(2, a, b, c)"),
        ("~at_most(3, a, b, c)", "false"),
        ("~true", "false"),
    ],
)
def test_nnf(text: str, nnf: str) -> None:
    assert str(parse(text).to_nnf()) == nnf


def test_nnf_of_long_parities_stays_linear() -> None:
    parity = Bool("x0")
    for i in range(1, 200):
        parity = parity ^ Bool(f"x{i}")
    assert parity.to_nnf().size < 12 * parity.size
