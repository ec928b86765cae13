"""Words of a fixed length that an automaton or a regular expression accepts."""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.constraints.family import Family, label_names, renamed, whole_number
from semprola.errors import LabelError, ParseError, SemprolaError, UnsatisfiableError
from semprola.logic.messages import brief

_ENCODINGS = ("one-hot", "binary")
_NO_TIMES = re.compile(r"\{\s*(?:0+\s*(?:,\s*0+\s*)?|,\s*0+\s*)\}")
"""A repetition of zero times, which automata-lib takes for "at most once"."""
States = frozenset[int]
Table = tuple[tuple[States, ...], ...]


def regex(
    pattern: str,
    *,
    length: int,
    alphabet: Iterable[str] | None = None,
    encoding: str = "one-hot",
    labels: Iterable[str] | Mapping[str, str] | None = None,
) -> Automaton:
    """Words of a fixed length that match a regular expression as a whole.

    Args:
        pattern: the expression, in the syntax of automata-lib: ``* + ? | & . ( ) [a-z] {2,3}`` and plain characters;
            but ``&`` binds more tightly than ``|``, as in formulas.
        length: the number of positions.
        alphabet: the symbols, one character each; by default those of the pattern.
        encoding, labels: see :func:`automaton`.

    Raises:
        SemprolaError: automata-lib is not installed.
        ParseError: the pattern is not a regular expression over the alphabet.
        LabelError, ValueError: as for :func:`automaton`.

    Example:
        >>> words = regex("a*b+", length=3, alphabet="ab")
        >>> words.labels
        ('0=a', '0=b', '1=a', '1=b', '2=a', '2=b')
        >>> words.to_circuit().model_count()
        3
    """
    if not isinstance(pattern, str):
        raise ParseError(f"regex: the pattern must be a string, not {type(pattern).__name__}")
    if never := _NO_TIMES.search(pattern):
        raise ParseError(f"regex: {never[0]} repeats something zero times: leave that part of the pattern out")
    symbols = None if alphabet is None else label_names(list(alphabet), "regex alphabet")
    library = _library("regex")
    try:
        nfa = library.NFA.from_regex(_and_before_or(pattern), input_symbols=None if symbols is None else set(symbols))
    except Exception as error:
        raise ParseError(
            f"regex: {brief(pattern)} is not a regular expression over the alphabet: {_line(error)}"
        ) from None
    return automaton(nfa, length=length, alphabet=symbols, encoding=encoding, labels=labels)


def automaton(
    machine: Any,
    *,
    length: int,
    alphabet: Iterable[str] | None = None,
    encoding: str = "one-hot",
    labels: Iterable[str] | Mapping[str, str] | None = None,
) -> Automaton:
    """Words of a fixed length that a finite automaton accepts.

    With one-hot symbols, label ``"t=s"`` says that position t (from 0) has symbol s, and each position has exactly one.
    With binary symbols, label ``"t.b"`` is bit b, most significant first, of the symbol's number in the alphabet. For a
    deterministic automaton, the diagram has at most 2 · length · states · symbols nodes; length 1,000 is fine. A
    nondeterministic one is made deterministic while the diagram is built, within its budget and only as far as words of
    this length require.

    Args:
        machine: a DFA or NFA of automata-lib, or any object with its attributes ``transitions``, ``initial_state`` and
            ``final_states``: ``transitions[state][symbol]`` is a state or a set of states; missing entries reject. A
            machine with sets of states may use the symbol ``""`` for steps that read nothing.
        length: the number of positions.
        alphabet: the symbols in the order of the labels; by default those of the machine, sorted.
        encoding: ``"one-hot"`` or ``"binary"``.
        labels: other names for the labels, in order, or a dict that renames some of them.

    Raises:
        LabelError: the machine is not an automaton, the alphabet is empty or lists a symbol twice, or `labels` does
            not fit.
        ValueError: the length or encoding is invalid.
        CompilationBudgetError: there would be more than a million labels.

    Example:
        >>> from automata.fa.dfa import DFA
        >>> even = DFA(states={0, 1}, input_symbols={"a", "b"}, initial_state=0, final_states={0},
        ...            transitions={0: {"a": 1, "b": 0}, 1: {"a": 0, "b": 1}})
        >>> automaton(even, length=10).to_circuit().model_count()
        512
    """
    positions = whole_number(length, "length", "automaton", 1)
    if encoding not in _ENCODINGS:
        raise ValueError(f"automaton: encoding must be 'one-hot' or 'binary', not {brief(encoding)}")
    if not all(hasattr(machine, name) for name in ("transitions", "initial_state", "final_states")):
        raise LabelError(f"automaton: expected a DFA or NFA, not {type(machine).__name__}")
    found = {symbol for row in machine.transitions.values() for symbol in row if symbol != ""}
    symbols = tuple(sorted(found, key=str) if alphabet is None else alphabet)
    shown = label_names([str(symbol) for symbol in symbols], "automaton alphabet")
    bits = max(1, (len(symbols) - 1).bit_length())
    parts = [f"={s}" for s in shown] if encoding == "one-hot" else [f".{b}" for b in range(bits)]

    def own() -> list[str]:
        return [f"{t}{part}" for t in range(positions) for part in parts]

    names = renamed(own, positions * len(parts), labels, "automaton")
    table, start, final = _tables(machine, symbols)
    return Automaton(shown, table, start, final, positions, encoding, names)


class Automaton(Family):
    """Accepted words of a fixed length; see :func:`automaton` and :func:`regex`.

    Attributes:
        symbols: the alphabet.
        table: ``table[state][symbol]`` are the next states; there are none if the word is rejected.
        start, final: the initial and the accepting states.
        positions: the length of the words.
        names: the labels.
    """

    advice = "take a smaller automaton or shorter words"

    def __init__(
        self,
        symbols: tuple[str, ...],
        table: Table,
        start: States,
        final: States,
        positions: int,
        encoding: str,
        names: tuple[str, ...],
    ) -> None:
        self.symbols, self.table, self.start, self.final = symbols, table, start, final
        self.positions, self.encoding, self.names = positions, encoding, names
        self.bits = max(1, (len(symbols) - 1).bit_length())

    def key(self) -> Hashable:
        return self.names, self.table, self.start, self.final, self.positions, self.encoding

    def describe(self) -> str:
        return f"automaton({len(self.table)} states, {len(self.symbols)} symbols, length {self.positions})"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        values = np.stack([columns[name] for name in self.names], axis=1)
        values = values.reshape(rows, self.positions, len(self.names) // self.positions)
        if self.encoding == "one-hot":
            holds = (values.sum(axis=2) == 1).all(axis=1)
            word = values.argmax(axis=2)
        else:
            word = values @ (1 << np.arange(self.bits)[::-1])
            holds = (word < len(self.symbols)).all(axis=1)
            word = np.minimum(word, len(self.symbols) - 1)
        state = np.zeros((rows, len(self.table)), bool)
        state[:, sorted(self.start)] = True
        for t in range(self.positions):
            after = np.zeros_like(state)
            for q, row in enumerate(self.table):
                for symbol, states in enumerate(row):
                    if states:
                        after[:, sorted(states)] |= (state[:, q] & (word[:, t] == symbol))[:, None]
            state = after
        return np.asarray(holds & state[:, sorted(self.final)].any(axis=1), bool)

    def _build(self, budget: Budget) -> Circuit:
        alive = self._alive(budget)
        first = self.start & alive[0]
        if not first:
            raise UnsatisfiableError(f"{budget.what} accepts no word")
        one_hot = self.encoding == "one-hot"
        step = self._one_hot_step(alive) if one_hot else self._binary_step(alive)
        return decision_diagram(self.names, (first, 0), step, lambda _: True, zero_suppressed=one_hot, budget=budget)

    def _alive(self, budget: Budget) -> list[States]:
        """For each position, the states from which some word of the remaining length is accepted."""
        alive = [self.final]
        for _ in range(self.positions):
            budget.check("the states that can accept")
            after = alive[-1]
            alive.append(frozenset(q for q, row in enumerate(self.table) if any(not after.isdisjoint(s) for s in row)))
        return alive[::-1]

    def _next(self, alive: list[States]) -> Callable[[States, int, int], States]:
        """A function from states, a position and a symbol to the next states that can still accept."""
        known: dict[tuple[States, int], States] = {}
        table = self.table

        def after(states: States, t: int, symbol: int) -> States:
            reached = known.get((states, symbol))
            if reached is None:
                reached = known[states, symbol] = frozenset().union(*(table[q][symbol] for q in states))
            return reached & alive[t + 1]

        return after

    def _one_hot_step(self, alive: list[States]) -> Any:
        width, after = len(self.symbols), self._next(alive)

        # A state holds the states that the automaton may be in, and whether the symbol of this position was read.
        def step(state: tuple[States, int], position: int, value: int) -> tuple[States, int] | None:
            states, chosen = state
            t, symbol = divmod(position, width)
            if value:
                if chosen:
                    return None
                states, chosen = after(states, t, symbol), 1
                if not states:
                    return None
            if symbol == width - 1:
                return (states, 0) if chosen else None
            return states, chosen

        return step

    def _binary_step(self, alive: list[States]) -> Any:
        bits, count, after = self.bits, len(self.symbols), self._next(alive)

        # A state holds the states that the automaton may be in, and the number that this position's bits form so far.
        def step(state: tuple[States, int], position: int, value: int) -> tuple[States, int] | None:
            states, number = state
            t, bit = divmod(position, bits)
            number = 2 * number + value
            if bit < bits - 1:
                return states, number
            states = after(states, t, number) if number < count else frozenset()
            return (states, 0) if states else None

        return step


def _and_before_or(pattern: str) -> str:
    """The pattern with parentheses around the operands of ``|``, because automata-lib ranks ``&`` and ``|`` equally."""
    if not {"&", "|"} <= set(pattern):
        return pattern
    pieces = re.split(r"(\[[^\]]*\]|[()|])", pattern)
    marked = {"(": "((", ")": "))", "|": ")|("}
    return "(" + "".join(marked.get(piece, piece) for piece in pieces) + ")"


def _tables(machine: Any, symbols: tuple[Any, ...]) -> tuple[Table, States, States]:
    """The reachable states, numbered from the initial one; steps that read nothing are merged into the others."""
    transitions = machine.transitions
    ends = [state for row in transitions.values() for state in row.values()]
    # the names of states may be sets: then every target is itself a state
    several = any(isinstance(end, set | frozenset) for end in ends) and not set(map(_key, ends)) <= set(transitions)
    number: dict[Any, int] = {}
    queue: list[Any] = []

    def closure(states: Iterable[Any]) -> States:
        reached = dict.fromkeys(states)
        waiting = list(reached)
        while waiting and several:
            for state in transitions.get(waiting.pop(), {}).get("", ()):
                if state not in reached:
                    reached[state] = None
                    waiting.append(state)
        for state in reached:
            if state not in number:
                number[state] = len(number)
                queue.append(state)
        return frozenset(number[state] for state in reached)

    start = closure([machine.initial_state])
    table: list[tuple[States, ...]] = []
    for state in queue:
        row = transitions.get(state, {})
        nexts = [row[s] if several else [row[s]] for s in symbols if s in row]
        known = iter([closure(after) for after in nexts])
        table.append(tuple(next(known) if s in row else frozenset() for s in symbols))
    return tuple(table), start, frozenset(number[q] for q in machine.final_states if q in number)


def _key(state: Any) -> Any:
    return frozenset(state) if isinstance(state, set) else state


def _library(what: str) -> Any:
    try:
        from automata.fa import nfa
    except ImportError:
        raise SemprolaError(f"{what} needs automata-lib: pip install 'semprola[automata]'") from None

    class Library:
        NFA = nfa.NFA

    return Library


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
