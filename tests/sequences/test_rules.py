"""Rules for tag sequences: every form gives an automaton that accepts exactly the sequences that obey the rules."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import semprola as sp
from semprola.constraints.tagging import tag_names
from semprola.sequences.machines import TagMachine
from semprola.sequences.rules import tag_machine

TAGS = ("O", "B-PER", "I-PER", "B-LOC", "I-LOC")
LETTERS = dict(zip(TAGS, "oPpLl", strict=True))
BIO = "(O | B-PER I-PER* | B-LOC I-LOC*)*"


def accepted(machine: TagMachine, longest: int = 4) -> set[tuple[int, ...]]:
    numbers = range(machine.num_tags)
    words = itertools.chain(*(itertools.product(numbers, repeat=length) for length in range(1, longest + 1)))
    return {word for word in words if machine.accepts(word)}


def by_definition(obeys: Callable[[tuple[str, ...]], bool], tags: Sequence[str], longest: int = 4) -> set[Any]:
    words = itertools.chain(*(itertools.product(tags, repeat=length) for length in range(1, longest + 1)))
    return {tuple(tags.index(tag) for tag in word) for word in words if obeys(word)}


@pytest.mark.parametrize(
    ("pattern", "letters"),
    [
        (BIO, "(o|Pp*|Ll*)*"),
        ("O+ B-PER{1,2} .?", "o+P{1,2}.?"),
        ("[B-PER B-LOC]* I-PER", "[PL]*p"),
        ("[^O]+", "[^o]+"),
        ('"O" (B-PER|"B-LOC")+', "o(P|L)+"),
        ("OOB-PERO*", "ooPo*"),
    ],
)
def test_regular_expressions(pattern: str, letters: str) -> None:
    expected = by_definition(lambda word: bool(re.fullmatch(letters, "".join(LETTERS[tag] for tag in word))), TAGS)
    assert accepted(tag_machine(pattern, TAGS)) == expected


FORMULAS = {
    'I -> "prev=B" | "prev=I"': lambda p, t, n: t != "I" or p in ("B", "I"),
    '"tag=B" -> "next=I"': lambda p, t, n: t != "B" or n == "I",
    "(first -> O) & (last -> O)": lambda p, t, n: (p is not None or t == "O") and (n is not None or t == "O"),
    '~("prev=O" & O & "next=O")': lambda p, t, n: (p, t, n) != ("O", "O", "O"),
    '"prev=B" ^ "next=B"': lambda p, t, n: (p == "B") != (n == "B"),
    'exactly(1, "tag=B", "tag=I")': lambda p, t, n: t in ("B", "I"),
    'exactly(1, "prev=B", "next=B")': lambda p, t, n: (p == "B") != (n == "B"),
    '"prev=I" -> B': lambda p, t, n: p != "I" or t == "B",
    "true": lambda p, t, n: True,
}


@pytest.mark.parametrize("text", FORMULAS)
def test_formulas_hold_at_every_position(text: str) -> None:
    tags = ("B", "I", "O")
    holds: Any = FORMULAS[text]

    def obeys(word: tuple[str, ...]) -> bool:
        wide = (None, *word, None)
        return all(holds(*wide[i : i + 3]) for i in range(len(word)))

    assert accepted(tag_machine(sp.parse(text), tags)) == by_definition(obeys, tags)


def test_the_same_rules_give_the_same_automaton() -> None:
    pytest.importorskip("automata")
    from automata.fa.dfa import DFA
    from automata.fa.nfa import NFA

    prev = sp.Categorical("prev", TAGS)
    kinds = ("PER", "LOC")
    formula = sp.And(*[sp.Bool(f"I-{kind}") >> prev.isin([f"B-{kind}", f"I-{kind}"]) for kind in kinds])
    steps: dict[str, dict[str, str]] = {state: {"O": "out"} for state in ("out", *kinds)}
    for state in steps:
        steps[state] |= {f"B-{kind}": kind for kind in kinds} | ({f"I-{state}": state} if state in kinds else {})
    dfa = DFA(
        states=set(steps), input_symbols=set(TAGS), transitions=steps, initial_state="out", final_states=set(steps),
        allow_partial=True,
    )  # fmt: skip
    sets = {state: {tag: {after} for tag, after in row.items()} for state, row in steps.items()}
    sets["start"] = {"": {"out"}}
    nfa = NFA(
        states=set(sets), input_symbols=set(TAGS), transitions=sets, initial_state="start", final_states=set(steps)
    )
    rules: list[Any] = [BIO, formula, dfa, nfa, sp.constraints.bio(TAGS), [BIO, formula], tag_machine(BIO, TAGS)]
    digests = {tag_machine(rule, TAGS).digest for rule in rules}
    assert len(digests) == 1
    assert tag_machine(BIO, TAGS).num_states == 3


def test_all_rules_of_a_list_hold() -> None:
    one = tag_machine("O* B O*", ("O", "B"))
    two = tag_machine("(O O)* | B*", ("O", "B"))
    assert accepted(tag_machine(["O* B O*", "(O O)* | B*"], ("O", "B"))) == accepted(one) & accepted(two) == {(1,)}


@pytest.mark.parametrize("scheme", ["BIO", "BIOES", "BILOU"])
def test_schemes(scheme: str) -> None:
    prefixes = {"BIO": "BI", "BIOES": "BIES", "BILOU": "BILU"}[scheme]
    tags = ("O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in "xy"))
    entity = {
        "BIO": lambda k: f"(B-{k} )(I-{k} )*",
        "BIOES": lambda k: f"(S-{k} )|(B-{k} )(I-{k} )*(E-{k} )",
        "BILOU": lambda k: f"(U-{k} )|(B-{k} )(I-{k} )*(L-{k} )",
    }[scheme]
    pattern = f"((O )|{entity('x')}|{entity('y')})*"
    expected = by_definition(lambda word: bool(re.fullmatch(pattern, " ".join(word) + " ")), tags, 3)
    assert accepted(tag_machine(sp.constraints.bio(tags, scheme), tags), 3) == expected


def test_names_of_tags() -> None:
    assert tag_names(2) == ("0", "1")
    assert tag_names(("a", "b")) == ("a", "b")
    for wrong in (0, -1, [], ["a", "a"], ["a", ""], "ab", None, 1.5, True, [1]):
        with pytest.raises(sp.LabelError):
            tag_names(wrong)


def test_numbers_as_names() -> None:
    assert accepted(tag_machine("0 (1 | 10)*", tag_names(11)), 2) == {(0,), (0, 1), (0, 10)}


class Machine:
    """An automaton like those of automata-lib, but without the library."""

    initial_state, final_states = 0, frozenset({1})

    def __init__(self, symbols: Sequence[Any]) -> None:
        self.transitions = {0: dict.fromkeys(symbols, 1), 1: {}}


def test_automata_that_read_numbers() -> None:
    assert accepted(tag_machine(Machine([0, 2]), tag_names(3))) == {(0,), (2,)}


@pytest.mark.parametrize(
    ("rules", "error", "message"),
    [
        ("(B-PER I-PR)*", sp.ParseError, "'I-PR' at position 7 .* did you mean 'I-PER'"),
        ("O -> B-PER", sp.ParseError, r"pass sp.parse\(...\)"),
        ("(O", sp.ParseError, r"'\(O' is not a regular expression"),
        ('"O', sp.ParseError, "not a tag"),
        ('"Q"', sp.ParseError, "'Q' at position 0"),
        ("[^O B-PER I-PER B-LOC I-LOC]", sp.SemprolaError, "rules"),
        ("O & B-PER", sp.UnsatisfiableError, "no sequence"),
        ("", sp.UnsatisfiableError, "no sequence"),
        (sp.logic.FALSE, sp.UnsatisfiableError, "no sequence"),
        (sp.parse('"prev=O" & ~"prev=O"'), sp.UnsatisfiableError, "no sequence"),
        (sp.parse('"prev=Q" -> O'), sp.LabelError, "'prev=Q', but 'Q' is not a tag: the tags are O, B-PER"),
        (sp.parse("before -> O"), sp.LabelError, "mention 'before': expected 'first'"),
        (Machine(["O", "X"]), sp.LabelError, "reads 'X', which is not a tag"),
        (TagMachine([[0, 0]], [True]), sp.LabelError, "reads 2 tags, but there are 5"),
        (3, sp.LabelError, "rules must be"),
        (sp.constraints.permutation(2), sp.LabelError, "mention"),
        ("!O", sp.ParseError, r"at position 1: ! needs parentheses: write !\(…\), or \[\^…\]"),
        ("O)", sp.ParseError, r"at position 1: '\)' without its opening"),
        ("* O", sp.ParseError, r"at position 0: \* has nothing to repeat"),
        ("O{3,2}", sp.ParseError, "is not a number of repetitions"),
        ("O{}", sp.ParseError, "is not a number of repetitions"),
        ("O{99999999999}", sp.ParseError, "is too many repetitions"),
        ("[O", sp.ParseError, r"'\[' needs tags and a '\]'"),
        ("(" * 60 + "O" + ")" * 60, sp.ParseError, "more than 50 parentheses are nested"),
        (sp.parse("O -> at_most(1, O)"), sp.LabelError, r"is unclear: at_most\(1, O\) counts over the whole sequence"),
        (sp.constraints.permutation(1, labels=["O"]), sp.LabelError, "a family over tags is unclear"),
        (sp.at_least(2, ["O"]) & sp.at_most(1, ["O"]), sp.UnsatisfiableError, "no sequence"),
    ],
)
def test_bad_rules(rules: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message) as caught:
        tag_machine(rules, TAGS)
    assert "\n" not in str(caught.value)


def test_automata_that_are_too_large() -> None:
    with pytest.raises(sp.CompilationBudgetError, match="more than 20,000 states"):
        tag_machine("(O | B)* O (O | B){15}", ("O", "B"))


def test_damaged_tables() -> None:
    for table, accepting in (([[0, 3]], [True]), ([0, 1], [True]), ([[0]], [True, False]), ([[-2]], [True])):
        with pytest.raises(sp.LabelError):
            TagMachine(table, accepting)


def test_unknown_schemes_and_tags() -> None:
    with pytest.raises(ValueError, match="scheme must be"):
        sp.constraints.bio(TAGS, "IOB")
    with pytest.raises(sp.LabelError, match="no tag begins with B or I"):
        sp.constraints.bio(["noun", "verb"])


def number_of(word: Sequence[str], *tags: str) -> int:
    return sum(tag in tags for tag in word)


COUNTS: dict[str, tuple[Any, Callable[[tuple[str, ...]], bool]]] = {
    "at most two": (sp.at_most(2, ["B"]), lambda w: number_of(w, "B") <= 2),
    "exactly one": (sp.exactly(1, ["B"]), lambda w: number_of(w, "B") == 1),
    "one of two": (sp.one_hot(["B", "I"]), lambda w: number_of(w, "B", "I") == 1),
    "at least one": (sp.at_least(1, ["B"]), lambda w: number_of(w, "B") >= 1),
    "at least two of two": (sp.at_least(2, ["B", "I"]), lambda w: number_of(w, "B", "I") >= 2),
    "exactly two of two": (sp.exactly(2, ["B", "I"]), lambda w: number_of(w, "B", "I") == 2),
    "between": (sp.parse("count(1, 2, B)"), lambda w: 1 <= number_of(w, "B") <= 2),
    "counted twice": (sp.at_most(3, ["B", "B", "I"]), lambda w: 2 * number_of(w, "B") + number_of(w, "I") <= 3),
    "a formula": (sp.at_most(1, [sp.parse("B | I")]), lambda w: number_of(w, "B", "I") <= 1),
    "not": (~sp.at_most(1, ["B"]), lambda w: number_of(w, "B") > 1),
    "if": (
        sp.parse("at_least(1, I) -> exactly(1, B)"),
        lambda w: number_of(w, "I") == 0 or number_of(w, "B") == 1,
    ),
    "a count of counts": (
        sp.parse("exactly(1, at_least(1, B), at_least(1, I))"),
        lambda w: ("B" in w) != ("I" in w),
    ),
    "and a rule for positions": (
        sp.parse('at_most(1, B) & (I -> "prev=B" | "prev=I")'),
        lambda w: number_of(w, "B") <= 1 and all(t != "I" or p in ("B", "I") for p, t in zip((None, *w), w)),  # noqa: B905
    ),
    "a list": ([sp.at_most(1, ["B"]), "I .*"], lambda w: number_of(w, "B") <= 1 and w[0] == "I"),
    "never": (sp.at_most(0, ["B"]), lambda w: "B" not in w),
}


@pytest.mark.parametrize("name", COUNTS)
def test_counts_are_over_the_whole_sequence(name: str) -> None:
    rules, obeys = COUNTS[name]
    tags = ("B", "I", "O")
    assert accepted(tag_machine(rules, tags)) == by_definition(obeys, tags)


PATTERNS: dict[str, Callable[[str], bool]] = {
    "B | I & O": lambda w: w == "B",
    "B | I & . ": lambda w: w in ("B", "I"),
    "(B | I) & I": lambda w: w == "I",
    ".* B & O .*": lambda w: w[0] == "O" and w[-1] == "B",
    "!(.* I .* B .*)": lambda w: not re.search("I.*B", w),  # B never after I
    "~(O*) & !(.* O .*)": lambda w: "O" not in w,
    "(!(O))*": lambda w: w != "O",
    "!(B B | I) O?": lambda w: w not in ("BB", "I"),
    ".{2} | B{,1} I{3,}": lambda w: len(w) == 2 or bool(re.fullmatch("B{0,1}I{3,}", w)),
    "O{0} B ()": lambda w: w == "B",
    "(B?){2,3}": lambda w: w in ("B", "BB", "BBB"),
    "!(!(B I*) | .* I I .*)": lambda w: bool(re.fullmatch("BI*", w)) and "II" not in w,
    "[^O]* & !(.* (B B | I I) .*)": lambda w: "O" not in w and "BB" not in w and "II" not in w,
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_intersection_and_negation_in_patterns(pattern: str) -> None:
    tags = ("B", "I", "O")
    assert accepted(tag_machine(pattern, tags)) == by_definition(lambda w: PATTERNS[pattern]("".join(w)), tags)


def test_random_patterns_agree_with_the_re_module() -> None:
    generator = random.Random(0)

    def pattern(depth: int) -> str:
        if depth == 0:
            return generator.choice(["B", "I", "O", ".", "[BI]", "[^B]"])
        one, other = pattern(depth - 1), pattern(depth - 1)
        return generator.choice([f"({one}|{other})", f"{one}{other}", f"({one})*", f"({one})?", f"({one}){{1,2}}"])

    for _ in range(150):
        text = pattern(generator.randint(1, 4))
        expected = by_definition(lambda w, text=text: bool(re.fullmatch(text, "".join(w))), ("B", "I", "O"))  # type: ignore[misc]
        if expected:
            assert accepted(tag_machine(text, ("B", "I", "O"))) == expected, text
        denied = by_definition(lambda w, text=text: not re.fullmatch(text, "".join(w)), ("B", "I", "O"))  # type: ignore[misc]
        if denied:
            assert accepted(tag_machine(f"!({text})", ("B", "I", "O"))) == denied, text


def test_and_binds_more_tightly_than_or_in_words() -> None:
    pytest.importorskip("automata")
    assert sp.compile(sp.constraints.regex("a|b&c", length=1, alphabet="abc")).model_count() == 1
    assert sp.compile(sp.constraints.regex("(a|b)&b|[|&]", length=1, alphabet="ab|&")).model_count() == 3
