"""Atoms, connectives, operators, sharing, traversal."""

from __future__ import annotations

import copy
import gc
import pickle
import threading

import numpy as np
import pytest

from semprola.errors import LabelError
from semprola.logic import (
    FALSE,
    TRUE,
    And,
    Bool,
    Bools,
    Formula,
    Iff,
    Implies,
    Kind,
    Not,
    Or,
    Xor,
    at_least,
    at_most,
    count,
    exactly,
    one_hot,
    parse,
)
from semprola.logic.formula import _interned

a, b, c = Bools("a b c")


def test_the_same_formula_is_the_same_object() -> None:
    assert Bool("a") is a
    assert (a & b) is And(a, b)
    assert (a & b) == And([a, b])
    assert (a & b) != (b & a)
    assert len({a & b, And(a, b), a | b}) == 2


def test_operators_build_the_named_kinds() -> None:
    built = {
        Kind.NOT: (~a, Not(a)),
        Kind.AND: (a & b, And(a, b)),
        Kind.OR: (a | b, Or(a, b)),
        Kind.XOR: (a ^ b, Xor(a, b)),
        Kind.IMPLIES: (a >> b, Implies(a, b)),
        Kind.IFF: (Iff(a, b), parse("a <-> b")),
    }
    for kind, (first, second) in built.items():
        assert first is second
        assert first.kind is kind
        assert first.args == ((a,) if kind is Kind.NOT else (a, b))


@pytest.mark.parametrize("true", [True, np.True_])
def test_truth_values_are_operands_on_either_side(true: bool) -> None:
    assert (true & a) is And(TRUE, a)
    assert (a & true) is And(a, TRUE)
    assert (true | a) is Or(TRUE, a)
    assert (true ^ a) is Xor(TRUE, a)
    assert (true >> a) is Implies(TRUE, a)
    assert (a >> (not true)) is Implies(a, FALSE)


def test_the_structure_is_kept() -> None:
    assert (~~a).args[0].args[0] is a
    assert (a & (b & c)).args == (a, b & c)
    assert And(a, b, c).args == (a, b, c)


@pytest.mark.parametrize(("make", "empty"), [(And, TRUE), (Or, FALSE), (Xor, FALSE)])
def test_few_operands(make, empty) -> None:
    assert make() is empty
    assert make([]) is empty
    assert make(a) is a
    assert make([a]) is a
    assert make(x for x in (a, b)).args == (a, b)
    assert make(True, a).args == (TRUE, a)


def test_bools_splits_text_and_takes_lists_as_they_are() -> None:
    assert Bools("a b\tc") == (a, b, c)
    assert Bools("a, b,c") == (a, b, c)
    assert Bools(["x y", "01/02"])[0].name == "x y"
    assert Bools("") == ()


@pytest.mark.parametrize(("make", "bounds"), [(exactly, (2, 2)), (at_most, (0, 2)), (at_least, (2, 3))])
def test_counting_is_one_node(make, bounds) -> None:
    formula = make(2, [a, "b", c])
    assert formula.kind is Kind.CARDINALITY
    assert formula.args == (a, b, c)
    assert formula.bounds == bounds
    assert make(np.int64(2), (a, b, c)) is formula


def test_one_hot_and_count() -> None:
    assert one_hot("abc"[i] for i in range(3)) is exactly(1, [a, b, c])
    assert count(1, 2, [a, b, c]).bounds == (1, 2)
    assert count(0, 2, [a, b, c]) is at_most(2, [a, b, c])


def test_impossible_and_repeated_counts() -> None:
    assert not exactly(5, [a, b, c]).evaluate({"a": 1, "b": 1, "c": 1})
    assert not at_least(5, [a, b, c]).evaluate({"a": 1, "b": 1, "c": 1})
    assert exactly(2, [a, a, b]).evaluate({"a": 1, "b": 0})
    assert exactly(0, []).evaluate({})


@pytest.mark.parametrize("bad", [-1, 1.0, "1", True, None, np.True_, 10**18, pytest.param(10**5000, id="huge")])
@pytest.mark.parametrize("make", [exactly, at_most, at_least])
def test_bad_counts(make, bad) -> None:
    with pytest.raises(
        ValueError, match=rf"^{make.__name__}: the number must be an integer of at least 0 and below 10\^18, got"
    ):
        make(bad, [a, b])


def test_bad_arguments_say_what_is_wrong_in_one_line() -> None:
    cases = [
        (lambda: Bool(""), LabelError, "a label needs at least one character, got an empty string"),
        (lambda: Bool(3), LabelError, "a label must be a string, got 3"),
        (lambda: Bools([1]), LabelError, "a label must be a string, got 1"),
        (lambda: And("ab"), TypeError, "And: expected a formula or a bool, got 'ab'; write Bool('ab') for a variable"),
        (lambda: Or(a, 1), TypeError, "Or: expected a formula or a bool, got 1"),
        (lambda: Xor(3), TypeError, "Xor: expected a formula or a bool, got 3"),
        (lambda: Not(None), TypeError, "Not: expected a formula or a bool, got None"),
        (lambda: exactly(1, "abc"), TypeError, "exactly: expected a list of formulas or names, got 'abc'"),
        (lambda: exactly(1, a), TypeError, "exactly: expected a list of formulas or names, got a"),
        (lambda: at_most(1, 5), TypeError, "at_most: expected a list of formulas or names, got 5"),
        (lambda: at_least(1, [a, 5]), TypeError, "at_least: expected a formula or a bool, got 5"),
        (lambda: exactly(1, ["a", ""]), LabelError, "a label needs at least one character, got an empty string"),
        (lambda: count(3, 2, [a]), ValueError, "count: the lower bound 3 is greater than the upper bound 2"),
        (lambda: a.bounds, AttributeError, "only a cardinality formula has bounds; this one is of kind ATOM"),
        (lambda: (a & b).name, AttributeError, "only an atom has a name; this formula is of kind AND"),
    ]
    for call, error, message in cases:
        with pytest.raises(error) as caught:
            call()
        assert str(caught.value) == message


@pytest.mark.parametrize("other", [1, "b", None, [True], np.array([True]), 0.5])
def test_operators_refuse_what_is_not_a_truth_value(other) -> None:
    with pytest.raises(TypeError, match="operand"):
        _ = a & other
    with pytest.raises(TypeError, match="operand"):
        _ = other | a


def test_no_truth_value() -> None:
    with pytest.raises(TypeError, match=r"combine with & \| ~ instead of and/or/not"):
        bool(a)
    with pytest.raises(TypeError, match="no truth value"):
        _ = a and b


def test_no_direct_construction_and_no_change() -> None:
    with pytest.raises(TypeError, match="a Formula is made by Bool"):
        Formula()
    with pytest.raises(AttributeError):
        a.name = "b"  # type: ignore[misc]
    with pytest.raises(AttributeError):
        a.colour = "red"  # type: ignore[attr-defined]


def test_labels_in_order_of_first_appearance() -> None:
    assert parse("(z | y) & x & (y -> w)").labels == ("z", "y", "x", "w")
    assert exactly(1, ["q", "p"]).labels == ("q", "p")
    assert TRUE.labels == ()


def test_nodes_come_after_their_operands() -> None:
    formula = parse("(a & b) | ~(a & b) ^ exactly(1, a, c)")
    nodes = formula.nodes()
    assert len(nodes) == len(set(nodes)) == formula.size
    assert nodes[-1] is formula
    for index, node in enumerate(nodes):
        assert all(nodes.index(arg) < index for arg in node.args)


@pytest.mark.parametrize("text", ["a", "true", "exactly(1, a, b) -> ~c ^ (a & b)", "count(1, 2, a, b & c, 'x y', d)"])
def test_pickle_and_copy_give_the_same_object(text: str) -> None:
    formula = parse(text)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(formula, protocol)) is formula
    assert copy.copy(formula) is formula
    assert copy.deepcopy({"k": [formula]})["k"][0] is formula


def test_unused_formulas_are_freed() -> None:
    gc.collect()
    before = len(_interned)
    formula = And(Bool(f"freed{i}") for i in range(50))
    assert len(_interned) > before + 50
    del formula
    gc.collect()
    assert len(_interned) <= before


def test_threads_share_formulas() -> None:
    built: list[Formula] = []

    def build() -> None:
        formula = Bool("t0")
        for i in range(2_000):
            formula = (formula & Bool(f"t{i % 40}")) | ~Bool(f"t{i % 7}")
        built.append(formula)

    threads = [threading.Thread(target=build) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(built) == 8
    assert all(formula is built[0] for formula in built)


@pytest.mark.parametrize(("build", "symbol"), [(And, "&"), (Or, "|"), (Xor, "^")])
@pytest.mark.parametrize("count", [3, 5, 1023, 1024, 1025, 3000])
def test_formulas_with_the_same_text_are_equal(build, symbol: str, count: int) -> None:
    atoms = [Bool(f"x{i}") for i in range(count)]
    at_once = build(atoms)
    step_by_step = atoms[0]
    for atom in atoms[1:]:
        step_by_step = build(step_by_step, atom)
    text = f" {symbol} ".join(f"x{i}" for i in range(count))
    assert str(at_once) == text
    assert at_once == step_by_step == parse(text) == build(build(atoms[:2]), *atoms[2:])
    assert len({at_once, step_by_step, parse(text)}) == 1
    assert at_once != build(atoms[0], build(atoms[1:]))  # printed with parentheses
