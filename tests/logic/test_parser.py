"""The written form: precedence, names, functions, errors, and printing back."""

from __future__ import annotations

import random
import unicodedata

import pytest

from semprola.errors import ParseError, SemprolaError
from semprola.logic import (
    FALSE,
    TRUE,
    And,
    Bool,
    Bools,
    Formula,
    Iff,
    Implies,
    Or,
    at_least,
    at_most,
    count,
    exactly,
    one_hot,
    parse,
)
from semprola.logic.parser import parse_lines

a, b, c, d = Bools("a b c d")


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("!a", ~a),
        ("~ a", ~a),
        ("not a", ~a),
        ("not(a)", ~a),
        ("!!a", ~~a),
        ("a & b", a & b),
        ("a && b", a & b),
        ("a and b", a & b),
        ("a | b", a | b),
        ("a || b", a | b),
        ("a or b", a | b),
        ("a ^ b", a ^ b),
        ("a xor b", a ^ b),
        ("a -> b", a >> b),
        ("a=>b", a >> b),
        ("a <-> b", Iff(a, b)),
        ("a<=>b", Iff(a, b)),
        ("a iff b", Iff(a, b)),
        ("a implies b implies c", a >> (b >> c)),
        ("a && b || c", (a & b) | c),
        ("¬a∧b → c∨d ⊕ a", ((~a) & b) >> (c | (d ^ a))),
        ("a ↔ b ⇔ c ⇒ d", Iff(Iff(a, b), c >> d)),
        ("a →\n¬ b # →", a >> ~b),
        ("true", TRUE),
        ("True & False", And(TRUE, FALSE)),
        ("((a))", a),
        ("a & b & c", (a & b) & c),
        ("a & (b & c)", a & (b & c)),
        ("a -> b -> c", a >> (b >> c)),
        ("(a -> b) -> c", (a >> b) >> c),
        ("a <-> b <-> c", Iff(Iff(a, b), c)),
        ("~a & b", (~a) & b),
        ("a | b & c", a | (b & c)),
        ("a | b ^ c", a | (b ^ c)),
        ("a ^ b & c", a ^ (b & c)),
        ("a -> b | c", a >> (b | c)),
        ("a <-> b -> c", Iff(a, b >> c)),
        ("a | b -> c & d <-> ~d", Iff((a | b) >> (c & d), ~d)),
        ("exactly(2, a, b, c)", exactly(2, [a, b, c])),
        ("at_most(1, a, b & c)", at_most(1, [a, b & c])),
        ("at_least ( 1 , a , (b) )", at_least(1, [a, b])),
        ("one_hot(a, b -> c, one_hot(d))", one_hot([a, b >> c, one_hot([d])])),
        ("count(1, 2, a, b, c)", count(1, 2, [a, b, c])),
        ("exactly(0)", exactly(0, [])),
        ("one_hot()", one_hot([])),
        ("~exactly(1, 1, 2)", ~exactly(1, ["1", "2"])),
        ("a # a comment & (\n & # more\n b", a & b),
        ("\n\n a\n&\tb \r\n", a & b),
    ],
)
def test_grammar(text: str, formula: Formula) -> None:
    assert parse(text) is formula


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("01", "01"),
        ("x_1", "x_1"),
        ("smokes.anna:1", "smokes.anna:1"),
        ("größe", "größe"),
        ("猫", "猫"),
        ("हिन्दी", "हिन्दी"),
        ("cafe\u0301", "cafe\u0301"),
        ('"01/01/03"', "01/01/03"),
        ("'a b'", "a b"),
        (r"'it\'s'", "it's"),
        (r'"a\"b\\c\n\t\r"', 'a"b\\c\n\t\r'),
        ("'\"'", '"'),
        ("'true'", "true"),
        ("'exactly'", "exactly"),
        ("exactly", "exactly"),
        ("AND", "AND"),
        ("'implies'", "implies"),
        ("'a→b.txt'", "a→b.txt"),
        ("android", "android"),
    ],
)
def test_names(text: str, name: str) -> None:
    assert parse(text) is Bool(name)
    assert parse(str(Bool(name))) is Bool(name)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "at 1:1: expected a formula, found the end of the text"),
        ("  # nothing\n\n", "at 1:1: expected a formula, found the end of the text"),
        ("a &", "at 1:4: expected a formula, found the end of the text"),
        ("a & # why\n\n", "at 1:4: expected a formula, found the end of the text"),
        ("a & | b", "at 1:5: expected a formula, found '|'"),
        ("a ∧ b → ∨ c", "at 1:9: expected a formula, found '∨'"),
        ("a IMPLIES b", "at 1:3: expected an operator, found 'IMPLIES' (keywords are written in lower case)"),
        ("a b", "at 1:3: expected an operator, found 'b'"),
        ("(a\nb", "at 2:1: expected an operator or ')', found 'b'"),
        ("(a b", "at 1:4: expected an operator or ')', found 'b'"),
        ("a AND b", "at 1:3: expected an operator, found 'AND' (keywords are written in lower case)"),
        ("a ~b", "at 1:3: expected an operator, found '~'"),
        ("a 'b c'", "at 1:3: expected an operator, found 'b c'"),
        ("(a & (b | c)", "at 1:1: this '(' is never closed"),
        ("a)", "at 1:2: ')' without an opening '(' before it"),
        ("()", "at 1:2: expected a formula, found ')'"),
        ("a, b", "at 1:2: ',' without an opening '(' before it"),
        (
            "(a, b)",
            "at 1:3: expected ')' or an operator, found ','; "
            "only exactly, at_most, at_least, one_hot, count take commas",
        ),
        ("a - b", "at 1:3: unexpected character '-'; implication is '->', and a name with '-' must be quoted"),
        (
            "a < b",
            "at 1:3: unexpected character '<'; equivalence is '<->'; "
            "for numbers, write a line such as variable n: 0..9",
        ),
        (
            "a == b",
            "at 1:3: unexpected character '='; implication is '=>', equivalence is '<->'; "
            "for numbers, write a line such as variable n: 0..9",
        ),
        ("a & 01/02", "at 1:7: unexpected character '/'; a name with '/' must be quoted, as in \"01/01/03\""),
        ("a $ b", "at 1:3: unexpected character '$'; quote names with special characters"),
        ("a & 'b", "at 1:5: this quote is never closed on its line"),
        ("a & 'b\n'", "at 1:5: this quote is never closed on its line"),
        ("''", "at 1:1: a quoted name needs at least one character"),
        ("a | 'b\\q'", "at 1:7: unknown escape '\\\\q'; a backslash itself is written twice"),
        (
            "likes(x)",
            "at 1:1: unknown function 'likes'; the functions are exactly, at_most, at_least, one_hot, count; "
            "quote a name with '('",
        ),
        ("exactly(a, b)", "at 1:9: exactly expects a whole number below 10^18 here, found 'a'"),
        ("exactly(-1, b)", "at 1:9: unexpected character '-'; implication is '->', and a name with '-' must be quoted"),
        ("exactly('1', b)", "at 1:9: exactly expects a whole number below 10^18 here, found '1'"),
        (f"exactly({'9' * 19}, b)", f"at 1:9: exactly expects a whole number below 10^18 here, found '{'9' * 19}'"),
        ("exactly(", "at 1:9: exactly expects a whole number below 10^18 here, found the end of the text"),
        ("exactly(1", "at 1:10: expected ',', found the end of the text"),
        ("exactly(1,)", "at 1:11: expected a formula, found ')'"),
        ("exactly(1, a", "at 1:8: this '(' is never closed"),
        ("count(1, a)", "at 1:10: count expects a whole number below 10^18 here, found 'a'"),
        ("count(2, 1, a)", "at 1:6: count: the lower bound 2 is greater than the upper bound 1"),
        ("a &\n  b &\n  & c", "at 3:3: expected a formula, found '&'"),
        (
            "… (3 nodes)",
            "at 1:1: unexpected character '…'; the text was cut off when printed; str(formula) gives all of it",
        ),
    ],
)
def test_errors(text: str, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse(text)
    first, source, caret = str(caught.value).split("\n")
    assert first == message
    line, column = map(int, message.removeprefix("at ").split(":")[:2])
    assert source == text.split("\n")[line - 1]
    assert caret == " " * (column - 1) + "^"
    assert isinstance(caught.value, SemprolaError)
    assert isinstance(caught.value, ValueError)


def test_the_caret_of_a_long_line_is_shown_in_a_window() -> None:
    text = "x & " * 500 + "& " + "y & " * 500 + "z"
    with pytest.raises(ParseError) as caught:
        parse(text)
    _, source, caret = str(caught.value).split("\n")
    assert len(source) <= 76
    assert source.startswith("…")
    assert source.endswith("…")
    assert source[len(caret) - 1] == "&"


def test_the_caret_stands_below_wide_and_combining_characters() -> None:
    with pytest.raises(ParseError) as caught:
        parse("猫 & cafe\u0301 & & x")
    _, source, caret = str(caught.value).split("\n")
    columns = 0
    for character in source[: source.rindex("&")]:
        columns += 2 if unicodedata.east_asian_width(character) == "W" else not unicodedata.combining(character)
    assert len(caret) - 1 == columns


def test_control_characters_do_not_reach_the_message() -> None:
    with pytest.raises(ParseError) as caught:
        parse("a &\t& \x1b[31m b")
    assert str(caught.value).isascii()
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("value", [None, 3, b"a & b", ["a"]])
def test_only_text_is_parsed(value) -> None:
    with pytest.raises(TypeError, match=r"^parse: expected a string, got "):
        parse(value)


@pytest.mark.parametrize(
    "text",
    [
        "a & b & c",
        "a & (b & c)",
        "a | b & c ^ d -> a <-> b",
        "(a | b) & (c -> d)",
        "a -> b -> c",
        "(a -> b) -> c",
        "a <-> b <-> c",
        "a <-> (b <-> c)",
        "~a & ~(a & b)",
        "~~a",
        "~exactly(2, a, b | c, ~d)",
        "at_most(1, a, b)",
        "at_least(1, a, b)",
        "count(1, 2, a, b, c)",
        "at_least(7, a, b)",
        "exactly(0)",
        "true & (false | a)",
        '"01/01/03" & "a b" -> "not"',
    ],
)
def test_canonical_text_is_printed_as_it_was_read(text: str) -> None:
    assert str(parse(text)) == repr(parse(text)) == text


def test_wide_nodes_print_like_chains() -> None:
    assert str(And(a, b, c)) == "a & b & c"
    assert str(And(a | b, c, Or(a, b, d))) == "(a | b) & c & (a | b | d)"
    assert str(Implies(a >> b, c >> d)) == "(a -> b) -> c -> d"
    assert str(at_most(5, [a])) == "at_most(5, a)"


def test_long_formulas_are_abbreviated_in_repr_only() -> None:
    formula = And(Bool(f"variable{i}") for i in range(1000))
    assert repr(formula).endswith("… (1,001 nodes)")
    assert len(repr(formula)) < 2_100
    assert parse(str(formula)).labels == formula.labels


def test_a_formula_whose_text_would_explode_is_cut_off() -> None:
    formula = a ^ b
    for _ in range(200):
        formula = (formula & ~formula) | (formula ^ a)
    text = str(formula)
    assert text.endswith(f"… ({formula.size:,} nodes)")
    assert len(text) < 10_000_000


_PIECES = [
    *"ab1()&|^!~,#'\"\\ \n.:-<>=",
    "->",
    "<->",
    "=>",
    "<=>",
    "&&",
    "||",
    *"¬∧∨⊕→⇔",
    " implies ",
    "not ",
    " and ",
    " or ",
    " xor ",
    " iff ",
]
_PIECES += [
    "true",
    "False",
    "exactly(",
    "at_most(1,",
    "one_hot(",
    "count(1, 2, ",
    "é",
    "猫",
    "\u0301",
    "\x00",
    "\ud800",
    "…",
]
_SEEDS = [
    "(a -> b) & exactly(2, a, b, c) | ~'x y' ^ d",
    "a <-> b # note\n & one_hot(a, b)",
    'count(1, 2, a, "b/c", d & e)',
]


def test_fuzzed_text_gives_a_formula_or_a_parse_error() -> None:
    generator = random.Random(7)
    parsed = 0
    for trial in range(3_000):
        if trial % 2:
            text = "".join(generator.choices(_PIECES, k=generator.randint(0, 12)))
        else:
            text = generator.choice(_SEEDS)
            for _ in range(generator.randint(1, 4)):
                at = generator.randrange(len(text) + 1)
                text = text[:at] + generator.choice(["", *_PIECES]) + text[at + generator.randint(0, 2) :]
        try:
            formula = parse(text)
        except ParseError as error:
            first, source, caret = str(error).split("\n")
            place = f"at {error.line}:{error.column}: "
            assert first.startswith(place)
            assert len(source) <= 76
            assert caret.strip() == "^"
        else:
            parsed += 1
            assert parse(str(formula)) is formula
    assert parsed > 150


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("a->b\nb->c", "(a -> b) & (b -> c)"),
        ("a\n b", "a & b"),
        ("a ->\nb", "a -> b"),
        ("a\n-> b\n\n# why\n!c", "(a -> b) & ~c"),
        ("(a\n| b)\n(c)", "(a | b) & c"),
        ("a\nand b", "a & b"),
        ("exactly(1, a,\n b)\nc\n", "exactly(1, a, b) & c"),
        ("cats: cat -> animal\n'all dogs': dog -> animal", "(cat -> animal) & (dog -> animal)"),
        ("GO:1 -> GO:2\na: -> b", '(GO:1 -> GO:2) & ("a:" -> b)'),
        ("a | b\r\nc", "(a | b) & c"),
    ],
)
def test_lines_are_rules(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_lines_and_names_of_rules() -> None:
    assert parse_lines("\n# none\nfirst: a |\n b\n\nc -> d") == [
        (parse("a | b"), "first", 3, "a | b"),
        (parse("c -> d"), "", 6, "c -> d"),
    ]


@pytest.mark.parametrize(
    "name", ["rules.txt", "sub/rules", "k.cnf", "k.cnf.gz", "C:\\k.SDD", "~/k.sp", "k.rules", " k.nnf\n", "01/02"]
)
def test_a_file_is_not_a_label(name: str) -> None:
    with pytest.raises(ParseError, match=r"this looks like a file: read it with sp\.rules\.read"):
        parse(name)
    assert parse(str(Bool(name.strip()))) == Bool(name.strip())


@pytest.mark.parametrize(
    "text", ["(rules.txt)", "'rules.txt'", "rules.txt # a label", "~rules.txt", "rules.txt -> b.cnf"]
)
def test_labels_may_be_named_like_files(text: str) -> None:
    assert parse(text).labels[0] == "rules.txt"
    assert parse(str(parse(text))) == parse(text)


def test_labels_with_dots() -> None:
    assert parse("ana.mon").labels == ("ana.mon",)
    assert parse("v1.2").labels == ("v1.2",)


def test_at_least_none_is_read_back() -> None:
    formula = at_least(0, ["a", "b"])
    assert str(formula) == "at_least(0, a, b)"
    assert parse(str(formula)) == formula
