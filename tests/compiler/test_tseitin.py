"""Clauses for any formula: without the auxiliary variables, which the labels determine, the models are the same."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import pytest
from zoo import _nested, names

import semprola as sp
from semprola.compiler.backends.topdown.tseitin import encode_clauses
from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError
from semprola.logic import And, Bool, Or, Xor, at_most, exactly, parse


def projections(conjuncts: list[Any], circuits: Any = None) -> tuple[tuple[str, ...], Counter[tuple[bool, ...]]]:
    """How often each assignment of the labels extends to a model of the clauses."""
    encoding = encode_clauses(conjuncts, circuits)
    labels = len(encoding.names)
    found: Counter[tuple[bool, ...]] = Counter()
    for bits in itertools.product([False, True], repeat=labels):
        found[bits] += extensions(encoding.clauses, {v + 1: bit for v, bit in enumerate(bits)}, encoding.num_vars)
    return encoding.names, found


def extensions(clauses: list[tuple[int, ...]], value: dict[int, bool], count: int) -> int:
    """Models that extend a partial assignment, by plain search."""
    value = dict(value)
    while True:
        unit = None
        for clause in clauses:
            if any(value.get(abs(x)) == (x > 0) for x in clause):
                continue
            left = [x for x in clause if abs(x) not in value]
            if not left:
                return 0
            if len(left) == 1:
                unit = left[0]
        if unit is None:
            break
        value[abs(unit)] = unit > 0
    free = next((v for v in range(1, count + 1) if v not in value), None)
    if free is None:
        return 1
    return sum(extensions(clauses, {**value, free: bit}, count) for bit in (False, True))


@pytest.mark.parametrize("seed", range(40))
def test_random_formulas(seed: int) -> None:
    rng = random.Random(seed)
    labels = names(rng.randint(2, 5))
    conjuncts = [_nested(rng, labels, rng.randint(1, 3)) for _ in range(rng.randint(1, 2))]
    used, found = projections(conjuncts)
    for bits, extended in found.items():
        # exactly one extension: the labels determine the auxiliary variables
        assert extended == bool(And(conjuncts).evaluate(dict(zip(used, bits, strict=True))))


@pytest.mark.parametrize(
    "formula",
    [
        Xor(Bool(x) for x in "abcdefg"),
        ~Xor(Bool(x) for x in "abcdefgh"),
        exactly(3, list("abcdefgh")) | Bool("i"),
        ~at_most(2, list("abcdef")) & (Bool("a") >> Bool("b")),
        Or(Bool(x) & Bool(y) for x, y in itertools.combinations("abcdef", 2)),
        Xor([exactly(1, list("abc")), parse("a & b | c & d"), True]),
    ],
)
def test_larger_parts(formula: Any) -> None:
    used, found = projections([formula])
    for bits, extended in found.items():
        assert extended == bool(formula.evaluate(dict(zip(used, bits, strict=True))))


def test_clauses_stay_clauses() -> None:
    encoding = encode_clauses(
        [parse("a & b -> c | d"), parse("a <-> b & c"), at_most(1, list("abcdef")), parse("a ^ b ^ c").simplify()]
    )
    assert len(encoding.auxiliary) == 0


def test_families_are_written_as_their_circuits() -> None:
    tree = sp.constraints.hierarchy([("a", "b"), ("c", "b")])
    few = sp.constraints.table([[1, 0, 0], [0, 1, 1]], labels=list("abc"))
    circuits = {leaf: leaf.to_circuit() for leaf in (tree, few)}
    for formula in (tree, ~tree, tree ^ few, few & (Bool("a") | ~tree)):
        used, found = projections([formula], circuits)
        for bits, extended in found.items():
            assert extended == bool(formula.evaluate(dict(zip(used, bits, strict=True))))
    assert all(n == 0 for n in projections([tree], {tree: None})[1].values())


def test_size_is_linear() -> None:
    chain = Bool("y0")
    for i in range(10_000):
        chain = (chain & Bool(f"y{i % 50}")) | Bool(f"y{i * 7 % 50}")
    assert len(encode_clauses([chain]).clauses) < 150_000
    assert len(encode_clauses([Xor(Bool(f"x{i}") for i in range(10_000))]).clauses) < 100_000
    assert len(encode_clauses([at_most(3, [f"x{i}" for i in range(1500)])]).clauses) < 50_000


def test_the_time_is_watched() -> None:
    budget = Budget(timeout=0.01)
    with pytest.raises(CompilationBudgetError, match="time"):
        encode_clauses([exactly(2000, [f"x{i}" for i in range(4000)])], budget=budget)
