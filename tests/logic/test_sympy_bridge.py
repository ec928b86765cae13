"""Conversion from and to SymPy keeps the meaning."""

from __future__ import annotations

import builtins
import itertools
import random
from typing import Any

import pytest
from zoo import _nested, names

import semprola as sp

sympy = pytest.importorskip("sympy")


def truth(expression: Any, labels: list[str], bits: tuple[int, ...]) -> bool:
    values = {sympy.Symbol(name): bool(bit) for name, bit in zip(labels, bits, strict=True)}
    return bool(expression.subs(values))


@pytest.mark.parametrize("seed", range(25))
def test_there_and_back(seed: int) -> None:
    rng = random.Random(seed)
    labels = names(4)
    formula = _nested(rng, labels, 2)
    expression = formula.to_sympy()
    back = sp.rules.from_sympy(expression)
    for bits in itertools.product([0, 1], repeat=4):
        expected = formula.evaluate(dict(zip(labels, bits, strict=True)))
        assert truth(expression, labels, bits) == expected
        assert back.evaluate(dict(zip(labels, bits, strict=True))) == expected


def test_every_connective_of_sympy() -> None:
    a, b, c = sympy.symbols("a b c")
    expressions = [
        sympy.And(a, b, c),
        sympy.Or(a, ~b),
        sympy.Xor(a, b, c),
        sympy.Implies(a, b),
        sympy.Equivalent(a, b, c),
        sympy.ITE(a, b, c),
        sympy.Nand(a, b),
        sympy.Nor(a, b, c),
        sympy.Not(sympy.Xor(a, b)),
        sympy.true,
        sympy.false,
        a,
    ]
    for expression in expressions:
        formula = sp.rules.from_sympy(expression)
        for bits in itertools.product([0, 1], repeat=3):
            assert formula.evaluate(dict(zip("abc", bits, strict=True))) == truth(expression, list("abc"), bits)
    assert sp.rules.from_sympy(True) is sp.logic.TRUE


def test_files_and_families() -> None:
    cnf = sp.from_dimacs("p cnf 2 2\n1 -2 0\n2 0\n")
    assert truth(cnf.to_sympy(), ["1", "2"], (1, 1))
    with pytest.raises(sp.errors.PropertyError, match="hierarchy"):
        (sp.constraints.hierarchy([("a", "b")]) | sp.Bool("c")).to_sympy()


def test_what_is_not_boolean() -> None:
    x, y = sympy.symbols("x y")
    for expression in (x < y, sympy.And(x < y, y), x + y):
        with pytest.raises(sp.FormatError, match="from_sympy"):
            sp.rules.from_sympy(expression)
    with pytest.raises(sp.FormatError):
        sp.rules.from_sympy("a & b")


def test_without_sympy(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "sympy":
            raise ImportError(name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(sp.SemprolaError, match=r"pip install 'semprola\[sympy\]'"):
        sp.parse("a | b").to_sympy()
