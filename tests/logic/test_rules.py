"""Lists of rules: the parts of conjunctions."""

from __future__ import annotations

from semprola.logic import And, Bool, Cnf, parse
from semprola.logic.rules import conjuncts, literal_of


def test_conjuncts_of_deep_and_mixed_formulas() -> None:
    deep = parse("a | b")
    for i in range(5000):
        deep = And([Bool(f"x{i}"), deep])
    assert sum(1 for _ in conjuncts(deep)) == 5001
    assert [str(part) for part in conjuncts(Cnf(3, [[1, 2], [-3]]) & Bool("z"))] == ["1 | 2", "~3", "z"]


def test_literals() -> None:
    assert [literal_of(parse(text)) for text in ("a", "!a", "a & b", "true", "!(a | b)")] == [
        ("a", True),
        ("a", False),
        None,
        None,
        None,
    ]
