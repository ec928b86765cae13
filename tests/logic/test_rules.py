"""Lists of rules: from texts with one rule per line, and from conjunctions."""

from __future__ import annotations

import pytest

from semprola.errors import ParseError
from semprola.logic import And, Bool, Cnf, parse
from semprola.logic.rules import conjuncts, literal_of, parse_rules


def test_rules_one_on_each_line_or_one_on_several() -> None:
    assert [str(rule) for rule in parse_rules("a -> b # why\n\n# nothing\nc")] == ["a -> b", "c"]
    assert [str(rule) for rule in parse_rules("(a |\n b)")] == ["a | b"]
    with pytest.raises(ParseError) as caught:
        parse_rules("a\nb\nc ->")
    assert (caught.value.line, caught.value.column) == (3, 5)
    assert str(caught.value).startswith("at 3:5: ")


def test_an_error_says_where_the_text_is_from() -> None:
    with pytest.raises(ParseError, match=r"^rules.txt: at 2:4: "):
        parse_rules("a\nb &", "rules.txt: ")
    with pytest.raises(ParseError, match=r"^at 3:4: ") as caught:  # the whole text gets farther than its first line
        parse_rules("(a |\nb |\nc |")
    assert caught.value.line == 3


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
