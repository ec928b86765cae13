"""Random formulas: every operation against an evaluator that shares no code with the package."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from semprola.logic import FALSE, TRUE, And, Bool, Formula, Iff, Kind, Or, Xor, count, parse

NAMES = ("a", "b", "c d", "01/02")
ASSIGNMENTS = [dict(zip(NAMES, bits, strict=True)) for bits in itertools.product((False, True), repeat=len(NAMES))]


def _compound(inner: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
    several = st.lists(inner, max_size=4)
    bounds = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(sorted)
    return st.one_of(
        inner.map(lambda x: ~x),
        several.map(And),
        several.map(Or),
        several.map(Xor),
        st.tuples(inner, inner).map(lambda pair: pair[0] >> pair[1]),
        st.tuples(inner, inner).map(lambda pair: Iff(*pair)),
        st.tuples(bounds, several).map(lambda item: count(*item[0], item[1])),
    )


formulas = st.recursive(st.sampled_from([TRUE, FALSE, *map(Bool, NAMES)]), _compound, max_leaves=20)


def truth(formula: Formula, assignment: dict[str, bool]) -> bool:
    args = [truth(arg, assignment) for arg in formula.args]
    match formula.kind:
        case Kind.TRUE | Kind.FALSE:
            return formula.kind is Kind.TRUE
        case Kind.ATOM:
            return assignment[formula.name]
        case Kind.NOT:
            return not args[0]
        case Kind.AND:
            return all(args)
        case Kind.OR:
            return any(args)
        case Kind.XOR:
            return sum(args) % 2 == 1
        case Kind.IMPLIES:
            return args[1] if args[0] else True
        case Kind.IFF:
            return args[0] is args[1]
        case Kind.CARDINALITY:
            return formula.bounds[0] <= sum(args) <= formula.bounds[1]
    raise AssertionError(formula.kind)


def table(formula: Formula) -> list[bool]:
    return [truth(formula, assignment) for assignment in ASSIGNMENTS]


@settings(max_examples=300)
@given(formulas)
def test_evaluation(formula: Formula) -> None:
    expected = table(formula)
    assert [formula.evaluate(assignment) for assignment in ASSIGNMENTS] == expected
    rows = np.array([list(assignment.values()) for assignment in ASSIGNMENTS])
    assert formula.evaluate(rows, labels=NAMES).tolist() == expected


@settings(max_examples=300)
@given(formulas)
def test_text_is_read_back_as_an_equivalent_formula(formula: Formula) -> None:
    again = parse(str(formula))
    assert table(again) == table(formula)
    assert str(again) == str(formula)
    assert parse(str(again)) is again


@settings(max_examples=300)
@given(formulas)
def test_simplify_and_nnf_keep_the_models(formula: Formula) -> None:
    simple = formula.simplify()
    assert table(simple) == table(formula)
    assert simple.simplify() is simple
    assert simple in (TRUE, FALSE) or not {TRUE, FALSE} & set(simple.nodes())
    nnf = formula.to_nnf()
    assert table(nnf) == table(formula)
    assert all(node.args[0].kind is Kind.ATOM for node in nnf.nodes() if node.kind is Kind.NOT)
    assert not {node.kind for node in nnf.nodes()} & {Kind.XOR, Kind.IMPLIES, Kind.IFF}


@settings(max_examples=200)
@given(formulas, st.dictionaries(st.sampled_from(NAMES), formulas, max_size=3))
def test_substitution(formula: Formula, replacements: dict[str, Formula]) -> None:
    replaced = formula.substitute(replacements)
    for assignment in ASSIGNMENTS:
        inner = {name: truth(value, assignment) for name, value in replacements.items()}
        assert truth(replaced, assignment) == truth(formula, assignment | inner)


@settings(max_examples=100)
@given(formulas)
def test_pickle(formula: Formula) -> None:
    assert pickle.loads(pickle.dumps(formula)) is formula
