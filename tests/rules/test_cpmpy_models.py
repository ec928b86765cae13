"""Models of CPMpy, compared with what CPMpy itself says about every assignment, and with its solver."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest
from selection import spread

import semprola as sp
from semprola.errors import FormatError

cp = pytest.importorskip("cpmpy")
argval = pytest.importorskip("cpmpy.expressions.utils").argval
get_variables = pytest.importorskip("cpmpy.transformations.get_variables").get_variables_model


def variables_of(model: Any) -> list[Any]:
    found = {v.name: v for v in (getattr(each, "_bv", each) for each in get_variables(model))}
    return [found[name] for name in sorted(found)]


def solutions(model: Any) -> set[tuple[int, ...]]:
    """All assignments for which CPMpy says that every constraint holds, with the variables in order of their names."""
    variables = variables_of(model)
    found = set()
    for row in itertools.product(*(range(int(v.lb), int(v.ub) + 1) for v in variables)):
        for variable, value in zip(variables, row, strict=True):
            variable._value = value if not variable.is_bool() else bool(value)
        if all(argval(c) if not isinstance(c, list) else all(map(argval, c)) for c in model.constraints):
            found.add(row)
    for variable in variables:
        variable._value = None
    return found


def ours(model: Any) -> set[tuple[int, ...]]:
    """The same from the circuit of the rules."""
    variables = variables_of(model)
    rules = sp.rules.from_cpmpy(model)
    assert {*rules.labels} == {
        label
        for v in variables
        for label in ([v.name] if v.is_bool() else [f"{v.name}={i}" for i in range(v.lb, v.ub + 1)])
    }
    try:
        circuit = sp.compile(rules, progress=False)
    except sp.errors.UnsatisfiableError:
        return set()
    column = {label: place for place, label in enumerate(circuit.labels)}
    rows = np.asarray(circuit.enumerate())
    values = [
        rows[:, column[v.name]]
        if v.is_bool()
        else v.lb + rows[:, [column[f"{v.name}={i}"] for i in range(v.lb, v.ub + 1)]].argmax(1)
        for v in variables
    ]
    assert rules.evaluate(rows.astype(int), labels=circuit.labels).all()
    return {*zip(*(map(int, each) for each in values), strict=True)}


def draw_number(chance: random.Random, numbers: list[Any], flags: list[Any], depth: int) -> Any:
    kind = chance.choice(
        "vcb" if not depth else ["v", "+", "-", "k", "abs", "min", "sum", "count", "*", "b*", "%", "//"]
    )
    below = lambda: draw_number(chance, numbers, flags, depth - 1)  # noqa: E731
    if kind in ("v", "c", "b"):
        return {
            "v": chance.choice(numbers),
            "c": chance.choice(numbers) + chance.randint(-2, 3),
            "b": chance.choice(flags),
        }[kind]
    return {
        "+": lambda: below() + below(),
        "-": lambda: below() - below(),
        "k": lambda: chance.randint(-3, 3) * below(),
        "abs": lambda: abs(below() - 1),
        "min": lambda: cp.max([below(), below(), 1]) if chance.random() < 0.5 else cp.min([below(), below()]),
        "sum": lambda: cp.sum([chance.choice(flags), ~chance.choice(flags), below() > 1, below()]),
        "count": lambda: cp.Count(numbers, chance.choice([1, numbers[0]])),
        "*": lambda: below() * below(),
        "b*": lambda: chance.choice(flags) * below(),
        "%": lambda: below() % chance.randint(2, 3),
        "//": lambda: below() // chance.choice([2, numbers[-1]]),
    }[kind]()


def draw_rule(chance: random.Random, numbers: list[Any], flags: list[Any], depth: int) -> Any:
    kind = chance.choice(["<", "flag"] if not depth else ["<", "<", "and", "or", "not", "->", "xor", "==", "global"])
    below = lambda: draw_rule(chance, numbers, flags, depth - 1)  # noqa: E731
    if kind == "<":
        left, right = draw_number(chance, numbers, flags, chance.randint(0, 2)), chance.randint(-2, 4)
        op = chance.choice(["__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"])
        return getattr(left + 0 if chance.random() < 0.5 else left, op)(right if chance.random() < 0.6 else numbers[0])
    return {
        "flag": lambda: chance.choice([chance.choice(flags), ~chance.choice(flags)]),
        "and": lambda: below() & below(),
        "or": lambda: below() | below(),
        "not": lambda: ~below(),
        "->": lambda: below().implies(below()),
        "xor": lambda: cp.Xor([below(), below(), below()]),
        "==": lambda: below() == below(),
        "global": lambda: chance.choice(
            [
                cp.AllDifferent(numbers),
                cp.AllEqual(numbers),
                cp.Table(numbers[:2], [[0, 1], [1, 2], [2, 0]]),
                cp.IfThenElse(flags[0], below(), below()),
                cp.InDomain(numbers[0], [0, 2]),
                cp.Increasing(numbers),
                cp.Circuit(numbers),
                cp.NValue(numbers) <= 2,
                cp.Element([2, 0, 1, numbers[1]], numbers[0]) == numbers[2],
            ]
        ),
    }[kind]()


@pytest.mark.filterwarnings("ignore::UserWarning")  # CPMpy tells of undefined divisions
@pytest.mark.parametrize("seed", spread(range(60), 15))
def test_random_models(seed: int) -> None:
    chance = random.Random(seed)
    numbers = [cp.intvar(chance.randint(-1, 0), chance.randint(1, 3), name=f"n[{i}]") for i in range(3)]
    flags = [cp.boolvar(name=name) for name in "ab"]
    model = cp.Model([draw_rule(chance, numbers, flags, 2) for _ in range(chance.randint(1, 3))])
    assert ours(model) == solutions(model)


def test_the_solver_finds_the_same_models() -> None:
    pytest.importorskip("pysat")
    y, flags = cp.intvar(-1, 2, name="y"), cp.boolvar(shape=6, name="f")
    model = cp.Model(
        (y > 0).implies(flags[0] | ~flags[5]),
        cp.sum(flags) <= 3,
        cp.sum(flags[1:4]) >= 1,
        [flags[4] == (y > 0), flags[2] != flags[3]],
    )
    assert len(solutions(model)) == model.solveAll(solver="pysat") == sp.rules.model_count(sp.rules.from_cpmpy(model))


def test_large_counts_stay_counts() -> None:
    flags = cp.boolvar(shape=60, name="f")
    model = cp.Model(cp.sum(flags) <= 3, cp.sum([f.implies(flags[0]) for f in flags[1:]]) >= 58)
    rules = sp.rules.from_cpmpy(model)
    assert sp.rules.model_count(rules) == 1 + 59 + sum(math.comb(59, k) for k in (0, 1, 2))


def test_messages_name_the_constraint() -> None:
    x, y = cp.intvar(0, 9, name="x"), cp.intvar(0, 9, name="y")
    report = sp.rules.review(sp.rules.from_cpmpy(cp.Model(x > 5, x + y < 4, y >= 0)))
    assert [*map(str, report.contradictions[0])] == ["x > 5 [constraints[0]]", "(x) + (y) < 4 [constraints[1]]"]


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda x: cp.Model(x > 1, minimize=x), FormatError, "an objective is not a rule: pass cpmpy.Model"),
        (lambda x: cp.Model(cp.intvar(0, 10**9, name="big") > x), FormatError, "'big' has 1,000,000,001 values"),
        (
            lambda x: cp.Model(x > 1, cp.intvar(0, 200, name="b") * x * x > 3),
            FormatError,
            r"constraints\[1\].*20,100 comb",
        ),
        (lambda x: cp.Model(cp.intvar(0, 3, name="x") > x), FormatError, "two variables have the name 'x'"),
        (lambda x: cp.Model(x + 1.5 > 2), FormatError, r"constraints\[0\]: 1.5 is not a whole number"),
        (lambda x: cp.Model(), TypeError, "takes a cpmpy.Model with constraints"),
        (lambda x: "x > 1", TypeError, "takes a cpmpy.Model with constraints, not 'x > 1'"),
        (lambda x: x, TypeError, "takes a cpmpy.Model with constraints"),
    ],
)
def test_refusals(make: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        sp.rules.from_cpmpy(make(cp.intvar(0, 99, name="x")))
