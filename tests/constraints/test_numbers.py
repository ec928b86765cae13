"""Arithmetic on whole variables against Python's own, on every assignment."""

from __future__ import annotations

import itertools
import operator
import pickle
import random

import numpy as np
import pytest

import semprola as sp
from semprola.errors import LabelError, UnsatisfiableError

C = sp.constraints
_COMPARE = [operator.le, operator.lt, operator.ge, operator.gt, operator.eq, operator.ne]


def _variables():
    return [
        sp.Integer("n", -2, 2),
        sp.Integer("m", 0, 3),
        sp.Categorical("k", [1, 10, 100]),
        sp.Integer("one", 4, 4),
    ]


def _random_expression(rng, variables, depth=3):
    """An expression, and the function of the variables' values that it stands for."""
    if depth == 0 or rng.random() < 0.25:
        if rng.random() < 0.2:
            number = rng.randint(-3, 5)
            return number, lambda world, number=number: number
        variable = rng.choice(variables)
        return variable, lambda world, name=variable.name: world[name]
    a, f = _random_expression(rng, variables, depth - 1)
    b, g = _random_expression(rng, variables, depth - 1)
    k = rng.randint(1, 4)
    kind = rng.choice(["+", "-", "*", "//", "%", "abs", "neg", "min", "max", "number", "element", "r"])
    if kind in ("//", "%", "abs", "neg", "*") and isinstance(a, int):
        kind = "+"
    if isinstance(a, int) and isinstance(b, int) and kind in "+-":
        kind = "min"
    if kind == "element":
        a, f = a % 2, lambda world, f=f: f(world) % 2
        return C.element([b, k], a), lambda world: g(world) if f(world) == 0 else k
    return {
        "+": lambda: (a + b, lambda w: f(w) + g(w)),
        "-": lambda: (a - b, lambda w: f(w) - g(w)),
        "r": lambda: (7 - a if not isinstance(a, int) else a, (lambda w: 7 - f(w)) if not isinstance(a, int) else f),
        "*": lambda: (k * a, lambda w: k * f(w)),
        "//": lambda: (a // k, lambda w: f(w) // k),
        "%": lambda: (a % k, lambda w: f(w) % k),
        "abs": lambda: (abs(a), lambda w: abs(f(w))),
        "neg": lambda: (-a, lambda w: -f(w)),
        "min": lambda: (C.minimum(a, b), lambda w: min(f(w), g(w))),
        "max": lambda: (C.maximum([a, b, k]), lambda w: max(f(w), g(w), k)),
        "number": lambda: (C.number([a, b], base=5), lambda w: 5 * f(w) + g(w)),
    }[kind]()


def _random_rule(rng, variables):
    while True:
        a, f = _random_expression(rng, variables)
        b, g = _random_expression(rng, variables, 1)
        if isinstance(a, int) and isinstance(b, int):
            continue
        if not isinstance(a, int) and rng.random() < 0.2:
            chosen = rng.sample(range(-4, 9), 3)
            return (a + 0).isin(chosen), lambda w, f=f, chosen=chosen: f(w) in chosen
        compare = rng.choice(_COMPARE)
        try:
            return compare(a, b), lambda w, f=f, g=g, compare=compare: compare(f(w), g(w))
        except LabelError:  # n == 9 out of range
            continue


def _worlds(variables):
    names = [variable.name for variable in variables]
    return [dict(zip(names, values, strict=True)) for values in itertools.product(*(v.values for v in variables))]


def _row(variables, world):
    return {
        label: int(world[v.name] == value) for v in variables for value, label in zip(v.values, v.labels, strict=True)
    }


@pytest.mark.parametrize("seed", range(60))
def test_random_expressions(seed):
    rng = random.Random(seed)
    variables = _variables()
    rules = [_random_rule(rng, variables) for _ in range(rng.choice([1, 1, 2, 3]))]
    formula, holds = rules[0]
    for other, also in rules[1:]:
        how = rng.choice(["and", "or", "implies", "not"])
        before = holds
        if how == "and":
            formula, holds = formula & other, lambda w, a=before, b=also: a(w) and b(w)
        elif how == "or":
            formula, holds = formula | other, lambda w, a=before, b=also: a(w) or b(w)
        elif how == "implies":
            formula, holds = other >> formula, lambda w, a=before, b=also: a(w) or not b(w)
        else:
            formula, holds = formula & ~other, lambda w, a=before, b=also: a(w) and not b(w)
    labels = [label for v in variables for label in v.labels]
    whole = sp.And(formula, *(v.rule for v in variables))
    expected = [_row(variables, world) for world in _worlds(variables) if holds(world)]
    assert pickle.loads(pickle.dumps(whole)) == whole
    used = [v for v in variables if v.labels[0] in formula.labels]
    own = {tuple(w[v.name] for v in used) for w in _worlds(variables) if holds(w)}
    assert sp.rules.model_count(formula) == (len(own) if used else int(holds({})))
    for world in rng.sample(_worlds(variables), 10):
        assert whole.evaluate(_row(variables, world)) == holds(world)
    try:
        circuit = sp.compile(whole, labels=labels, backend=rng.choice(["auto", "auto", "automata", "topdown"]))
    except UnsatisfiableError:
        assert not expected
        return
    found = {tuple(row) for row in circuit.enumerate().tolist()}
    assert found == {tuple(row[label] for label in labels) for row in expected}


def test_numbers_of_many_digits_are_linear_in_their_length():
    sizes = []
    for length in (10, 20):
        a, b = ([sp.Integer(f"{x}{i}", 0, 9) for i in range(length)] for x in "ab")
        total = [sp.Integer("s", 0, 1), *(sp.Integer(f"s{i}", 0, 9) for i in range(length))]
        circuit = sp.compile(C.number(a) + C.number(b) == C.number(total), cache=False)
        assert circuit.model_count() == 100**length
        assert circuit.is_decomposable
        assert circuit.is_deterministic
        assert circuit.is_structured
        sizes.append(circuit.num_nodes)
    assert sizes[1] < 2.2 * sizes[0] < 10_000
    assert sp.rules.model_count(C.number(a) < C.number(b)) == (100**20 - 10**20) // 2
    assert (C.number(a) < C.number(b)).evaluate(
        {label: int(label.endswith("=0") or label == "b19=1") for v in (*a, *b) for label in v.labels} | {"b19=0": 0}
    )


def test_wide_sums_compile_through_partial_sums():
    digits = [sp.Integer(f"d{i}", 0, 9) for i in range(30)]
    circuit = sp.compile(sum(digits[1:], digits[0]) == sp.Integer("sum", 0, 270))
    assert circuit.model_count() == 10**30
    assert circuit.num_edges < 150_000
    assert sp.compile((sum(digits[1:], digits[0]) % 2) == 1).num_nodes < 30 * 40


def test_relations_are_families(agrees):
    n, m, c = sp.Integer("n", 0, 2), sp.Integer("m", 1, 2), sp.Categorical("c", ["r", "g"])
    agrees(2 * n + m <= 3)
    agrees(n + m == 9)
    agrees(abs(n - 2 * m) != 1)
    agrees(C.table([[0, 1, "r"], [2, 2, "g"], [0, 1, "r"]], variables=[n, m, c]))
    agrees(C.table([], variables=[n, c]))


def test_all_different():
    three = [sp.Integer("a", 1, 3), sp.Integer("b", 2, 4), sp.Categorical("c", [1, 4, "x"])]
    expected = sum(len(set(values)) == 3 for values in itertools.product(*(v.values for v in three)))
    assert sp.rules.model_count(C.all_different(three)) == expected


def test_categoricals_with_numbers_are_compared():
    k, c = sp.constraints.Categorical("k", [1, 10, 100]), sp.constraints.Categorical("c", ["r", "g"])
    assert sp.rules.model_count(k < 11) == sp.rules.model_count(k >= 10) == 2
    assert sp.rules.model_count((k < 5) | (k == 100)) == 2
    with pytest.raises(LabelError, match="not whole numbers"):
        _ = c <= 3


def test_several_relations_share_variables():
    word = {name: sp.Integer(name, 0, 9) for name in "SENDMORY"}
    digits = lambda text: C.number([word[letter] for letter in text])  # noqa: E731
    rules = (digits("SEND") + digits("MORE") == digits("MONEY")) & C.all_different(word.values())
    circuit = sp.compile(rules & (word["S"] != 0) & (word["M"] != 0), timeout=60)
    (row,) = circuit.enumerate()
    answer = dict(zip(circuit.labels, row.tolist(), strict=True))
    assert [word[letter].decode(answer) for letter in "SENDMORY"] == [9, 5, 6, 7, 1, 0, 8, 2]


def test_evaluation_beyond_64_bits():
    digits = [sp.Integer(f"d{i}", 0, 1) for i in range(70)]
    big = C.number(digits, base=2)
    rows = np.eye(2, dtype=int)[[[1] + [0] * 69, [0] * 70]].reshape(2, 140)
    labels = [label for d in digits for label in d.labels]
    assert (big >= 2**69).evaluate(rows, labels=labels).tolist() == [True, False]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda n, c: n * n, "one factor must be a constant"),
        (lambda n, c: n + c, "'c' has values that are not whole numbers"),
        (lambda n, c: n // 0, "divisor must be a whole number of at least 1"),
        (lambda n, c: (n + n) % n, "divisor must be a whole number of at least 1"),
        (lambda n, c: n + n <= 1.5, "cannot be compared with 1.5"),
        (lambda n, c: C.element([1, 2], n), "the place goes from 0 to 3, but the list only from 0 to 1"),
        (lambda n, c: C.number([]), "at least one expression"),
        (lambda n, c: C.minimum(n, "x"), "neither a whole number nor an expression"),
        (lambda n, c: C.all_different([n, n]), "listed twice"),
        (lambda n, c: C.table([[1, "x"]], variables=[n, c]), "row 0: variable 'c' has no value 'x'"),
        (lambda n, c: C.table([[1]], variables=[n, c]), "row 0 has 1 values for 2 variables"),
    ],
)
def test_errors(make, message):
    with pytest.raises(LabelError, match=message):
        make(sp.Integer("n", 0, 3), sp.Categorical("c", ["r", "g"]))
    with pytest.raises(TypeError):
        sp.Integer("n", 0, 3) + 1.5


def test_text_of_relations():
    n, m = sp.Integer("n", 0, 9), sp.Integer("m", 0, 9)
    assert repr(2 * n - m + 1 <= 7) == "2*n <= m + 6"
    assert repr(abs(n - m) % 3 == 1) == "(abs(n - m)) % 3 == 1"
    assert repr((n + m).isin([3, 1])) == "n + m in [1, 3]"
