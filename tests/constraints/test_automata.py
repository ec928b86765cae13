from __future__ import annotations

import itertools
import re
import sys

import pytest

import semprola as sp
from semprola.constraints import automaton, regex
from semprola.errors import CompilationBudgetError, LabelError, ParseError, SemprolaError, UnsatisfiableError

fa = pytest.importorskip("automata.fa.dfa", reason="needs automata-lib")


def _even(symbols="ab"):
    steps = {0: {"a": 1, "b": 0}, 1: {"a": 0, "b": 1}}
    return fa.DFA(states={0, 1}, input_symbols=set(symbols), initial_state=0, final_states={0}, transitions=steps)


@pytest.mark.parametrize("encoding", ["one-hot", "binary"])
@pytest.mark.parametrize("pattern", ["a*b+", "(ab|ba)*", "a?b?c?", "a{2,3}b*", "..a", "(a|b)*c(a|b)*"])
def test_regular_expressions(agrees, pattern, encoding):
    for length in range(1, 5):
        words = regex(pattern, length=length, alphabet="abc", encoding=encoding)
        if len(words.labels) <= 12:
            agrees(words)
        expected = sum(re.fullmatch(pattern, "".join(w)) is not None for w in itertools.product("abc", repeat=length))
        if expected:
            circuit = words.to_circuit()
            assert circuit.model_count() == expected
            assert words.evaluate(circuit.enumerate()).all()
        else:
            with pytest.raises(UnsatisfiableError):
                words.to_circuit()


@pytest.mark.parametrize("encoding", ["one-hot", "binary"])
def test_long_words(encoding):
    words = regex("(a|b|c|d)*abca(a|b|c|d)*", length=1000, alphabet="abcd", encoding=encoding)
    circuit = words.to_circuit()
    assert circuit.num_labels == (4000 if encoding == "one-hot" else 2000)
    assert circuit.num_nodes < 30_000
    # words without the pattern, by the number of ways to be in each state
    without = [1, 0, 0, 0]
    steps = {0: (1, 0, 0, 0), 1: (1, 2, 0, 0), 2: (1, 0, 3, 0), 3: (4, 0, 0, 0)}
    for _ in range(1000):
        after = [0] * 5
        for state, ways in enumerate(without):
            for target in steps[state]:
                after[target] += ways
        without = after[:4]
    assert circuit.model_count() == 4**1000 - sum(without)


def test_machines(agrees):
    agrees(automaton(_even(), length=4))
    assert automaton(_even(), length=10).to_circuit().model_count() == 512
    assert automaton(_even(), length=2, alphabet="ba").labels == ("0=b", "0=a", "1=b", "1=a")
    assert automaton(_even(), length=2, encoding="binary").labels == ("0.0", "1.0")
    nfa_module = pytest.importorskip("automata.fa.nfa")
    nfa = nfa_module.NFA(
        states={0, 1}, input_symbols={"a", "b"}, initial_state=0, final_states={1},
        transitions={0: {"a": {0, 1}, "b": {0}}},
    )  # fmt: skip
    assert automaton(nfa, length=5).to_circuit().model_count() == 16


def test_any_object_with_the_attributes(agrees):
    class Machine:
        initial_state = "start"
        final_states = frozenset({"end"})
        transitions = {"start": {"x": "start", "y": "end"}, "end": {"y": "end"}}  # noqa: RUF012

    assert agrees(automaton(Machine(), length=4)).model_count() == 4


def test_an_exponential_automaton_is_bounded_by_the_budget():
    """Two a's at distance 31: the last 31 symbols have to be remembered."""
    words = regex("(a|b)*a(a|b){30}a(a|b)*", length=200, alphabet="ab")
    for limits in ({"timeout": 0.3}, {"max_nodes": 20_000}):
        with pytest.raises(CompilationBudgetError):
            sp.compile(words, cache=False, **limits)


def test_an_exponential_automaton_for_words_that_need_little_of_it():
    """The deterministic automaton of this pattern has 2^41 states, but only one position of a word matters."""
    circuit = regex("(a|b)*a(a|b){40}", length=100, alphabet="ab").to_circuit()
    assert circuit.model_count() == 2**99
    assert circuit.num_nodes < 1000


def test_steps_that_read_nothing(agrees):
    class Machine:
        initial_state = 0
        final_states = frozenset({2})
        transitions = {0: {"": {1}, "a": {0}}, 1: {"b": {1, 2}, "": {2}}, 2: {"a": {2}}}  # noqa: RUF012

    circuit = agrees(automaton(Machine(), length=3))
    expected = sum(re.fullmatch("a*b*a*", "".join(w)) is not None for w in itertools.product("ab", repeat=3))
    assert circuit.model_count() == expected


def test_labels(agrees):
    assert agrees(regex("ab", length=2, labels={"0=a": "first"})).labels == ("first", "0=b", "1=a", "1=b")
    assert automaton(_even(), length=1, labels=["p", "q"]).labels == ("p", "q")
    with pytest.raises(LabelError, match="has 1 names for 2 labels"):
        automaton(_even(), length=1, labels=["p"])
    with pytest.raises(LabelError, match="renames '7=a', which is not one of its labels"):
        automaton(_even(), length=1, labels={"7=a": "p"})
    with pytest.raises(CompilationBudgetError, match="2,000,000,000 labels"):
        automaton(_even(), length=10**9)


def test_errors():
    with pytest.raises(ParseError, match=r"'\(a' is not a regular expression"):
        regex("(a", length=2)
    with pytest.raises(ParseError, match="must be a string"):
        regex(3, length=2)
    with pytest.raises(ValueError, match="length must be a whole number of at least 1"):
        regex("a", length=0)
    with pytest.raises(ValueError, match="encoding must be"):
        regex("a", length=1, encoding="unary")
    with pytest.raises(LabelError, match="'a' is listed twice"):
        regex("a", length=1, alphabet="aa")
    with pytest.raises(LabelError, match="expected a DFA or NFA, not str"):
        automaton("a*", length=2)


def test_missing_library(monkeypatch):
    monkeypatch.setitem(sys.modules, "automata.fa", None)
    monkeypatch.setitem(sys.modules, "automata", None)
    with pytest.raises(SemprolaError, match=r"pip install 'semprola\[automata\]'"):
        regex("a", length=1)


@pytest.mark.parametrize("times", ["{0}", "{0,0}", "{,0}", "{ 0 , 0 }"])
def test_a_repetition_of_zero_times_is_refused(times):
    """automata-lib 9.2 reads it as "at most once"."""
    pytest.importorskip("automata")
    with pytest.raises(sp.ParseError, match="repeats something zero times: leave that part of the pattern out"):
        sp.constraints.regex(f"ba{times}", length=2, alphabet="ab")
    assert sp.compile(sp.constraints.regex("ba{0,10}", length=2, alphabet="ab")).model_count() == 1
