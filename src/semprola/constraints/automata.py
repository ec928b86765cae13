"""Words of a fixed length that an automaton or a regular expression accepts."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.constraints.budget import Budget
from semprola.constraints.diagram import decision_diagram
from semprola.constraints.family import Family, label_names, whole_number
from semprola.errors import LabelError, ParseError, SemprolaError, UnsatisfiableError
from semprola.logic.messages import brief

_ENCODINGS = ("one-hot", "binary")


def regex(pattern: str, *, length: int, alphabet: Iterable[str] | None = None, encoding: str = "one-hot") -> Automaton:
    """Words of a fixed length that match a regular expression as a whole.

    Args:
        pattern: in the syntax of automata-lib: ``* + ? | & . ( ) [a-z] {2,3}`` and plain characters.
        length: the number of positions.
        alphabet: the symbols, one character each; by default those of the pattern.
        encoding: see :func:`automaton`.

    Raises:
        SemprolaError: automata-lib is not installed.
        ParseError: the pattern is not a regular expression over the alphabet.
        LabelError, ValueError: as for :func:`automaton`.

    Example:
        >>> words = regex("a*b+", length=3, alphabet="ab")
        >>> words.labels()
        ('0=a', '0=b', '1=a', '1=b', '2=a', '2=b')
        >>> words.to_circuit().model_count()
        3
    """
    if not isinstance(pattern, str):
        raise ParseError(f"regex: the pattern must be a string, not {type(pattern).__name__}")
    symbols = None if alphabet is None else label_names(list(alphabet), "regex alphabet")
    library = _library("regex")
    try:
        nfa = library.NFA.from_regex(pattern, input_symbols=None if symbols is None else set(symbols))
    except Exception as error:
        raise ParseError(
            f"regex: {brief(pattern)} is not a regular expression over the alphabet: {_line(error)}"
        ) from None
    return automaton(nfa, length=length, alphabet=symbols, encoding=encoding)


def automaton(
    machine: Any, *, length: int, alphabet: Iterable[str] | None = None, encoding: str = "one-hot"
) -> Automaton:
    """Words of a fixed length that a finite automaton accepts.

    With one-hot symbols label ``"t=s"`` says that symbol s stands at position t (from 0), and exactly one does. With
    binary symbols label ``"t.b"`` is bit b, the most significant first, of the number of the symbol in the alphabet.
    The diagram has at most 2 · length · states · symbols nodes; length 1,000 is fine.

    Args:
        machine: a DFA or NFA of automata-lib, or any object with its attributes ``transitions``, ``initial_state`` and
            ``final_states``, deterministic: ``transitions[state][symbol]`` is a state, missing ones reject.
        length: the number of positions.
        alphabet: the symbols in the order of the labels; by default those of the machine, sorted.
        encoding: ``"one-hot"`` or ``"binary"``.

    Raises:
        SemprolaError: an NFA is passed and automata-lib is not installed.
        LabelError: the machine is not one, or the alphabet lists a symbol twice or is empty.
        ValueError: length or encoding make no sense.

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
    steps = [state for row in machine.transitions.values() for state in row.values()]
    if any(isinstance(state, set | frozenset) for state in steps) and not set(steps) <= set(machine.transitions):
        machine = _library("automaton").DFA.from_nfa(machine)
    found = sorted({symbol for row in machine.transitions.values() for symbol in row}, key=str)
    symbols = tuple(found if alphabet is None else alphabet)
    names = label_names([str(symbol) for symbol in symbols], "automaton alphabet")
    table, start, final = _tables(machine, symbols)
    return Automaton(names, table, start, final, positions, encoding)


class Automaton(Family):
    """Accepted words of a fixed length; see :func:`automaton` and :func:`regex`.

    Attributes:
        symbols: the alphabet.
        table: ``table[state][symbol]`` is the next state, -1 for none.
        start, final: the first state and the accepting ones.
        positions: the length of the words.
    """

    advice = "take a smaller automaton"

    def __init__(
        self,
        symbols: tuple[str, ...],
        table: tuple[tuple[int, ...], ...],
        start: int,
        final: frozenset[int],
        positions: int,
        encoding: str,
    ) -> None:
        self.symbols, self.table, self.start, self.final = symbols, table, start, final
        self.positions, self.encoding = positions, encoding
        self.bits = max(1, (len(symbols) - 1).bit_length())
        parts = [f"={s}" for s in symbols] if encoding == "one-hot" else [f".{b}" for b in range(self.bits)]
        self.names = tuple(f"{t}{part}" for t in range(positions) for part in parts)

    def labels(self) -> tuple[str, ...]:
        return self.names

    def key(self) -> Hashable:
        return self.symbols, self.table, self.start, self.final, self.positions, self.encoding

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
        dead = len(self.table)
        step = np.array([*self.table, [-1] * len(self.symbols)], np.int64)
        step[step < 0] = dead
        state = np.full(rows, self.start)
        for t in range(self.positions):
            state = step[state, word[:, t]]
        return np.asarray(holds & np.isin(state, sorted(self.final)), bool)

    def _build(self, budget: Budget) -> Circuit:
        alive = self._alive()
        if self.start not in alive[0]:
            raise UnsatisfiableError(f"{budget.what} accepts no word")
        one_hot = self.encoding == "one-hot"
        step = self._one_hot_step(alive) if one_hot else self._binary_step(alive)
        return decision_diagram(
            self.names, (self.start, 0), step, lambda _: True, zero_suppressed=one_hot, budget=budget
        )

    def _alive(self) -> list[set[int]]:
        """For each position the states from which a word of the remaining length is accepted."""
        alive = [set(self.final)]
        for _ in range(self.positions):
            alive.append({q for q, row in enumerate(self.table) if any(after in alive[-1] for after in row)})
        return alive[::-1]

    def _one_hot_step(self, alive: list[set[int]]) -> Any:
        width, table = len(self.symbols), self.table

        # A state is that of the automaton, and whether the symbol of this position was read.
        def step(state: tuple[int, int], position: int, value: int) -> tuple[int, int] | None:
            q, chosen = state
            t, symbol = divmod(position, width)
            if value:
                if chosen:
                    return None
                q, chosen = table[q][symbol], 1
                if q not in alive[t + 1]:
                    return None
            if symbol == width - 1:
                return (q, 0) if chosen else None
            return q, chosen

        return step

    def _binary_step(self, alive: list[set[int]]) -> Any:
        bits, table, count = self.bits, self.table, len(self.symbols)

        # A state is that of the automaton, and the number that the bits read so far at this position make.
        def step(state: tuple[int, int], position: int, value: int) -> tuple[int, int] | None:
            q, number = state
            t, bit = divmod(position, bits)
            number = 2 * number + value
            if bit < bits - 1:
                return q, number
            if number >= count or table[q][number] not in alive[t + 1]:
                return None
            return table[q][number], 0

        return step


def _tables(machine: Any, symbols: tuple[Any, ...]) -> tuple[tuple[tuple[int, ...], ...], int, frozenset[int]]:
    """The reachable states, numbered from the first one on."""
    number = {machine.initial_state: 0}
    queue = [machine.initial_state]
    table: list[tuple[int, ...]] = []
    for state in queue:
        row = machine.transitions.get(state, {})
        after: list[int] = []
        for symbol in symbols:
            if symbol not in row:
                after.append(-1)
                continue
            if row[symbol] not in number:
                number[row[symbol]] = len(number)
                queue.append(row[symbol])
            after.append(number[row[symbol]])
        table.append(tuple(after))
    return tuple(table), 0, frozenset(number[q] for q in machine.final_states if q in number)


def _library(what: str) -> Any:
    try:
        from automata.fa import dfa, nfa
    except ImportError:
        raise SemprolaError(f"{what} needs automata-lib: pip install 'semprola[automata]'") from None

    class Library:
        DFA, NFA = dfa.DFA, nfa.NFA

    return Library


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
