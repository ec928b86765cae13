"""Rules for tag sequences of any length, as one deterministic automaton."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from semprola.constraints.automata import automaton
from semprola.errors import LabelError
from semprola.logic import And, Formula
from semprola.logic.messages import brief
from semprola.logic.rules import conjuncts, unstated
from semprola.sequences.counts import count_machine, counts_in
from semprola.sequences.machines import TagMachine
from semprola.sequences.patterns import pattern_machine

_NONE = -1
"""Stands for the tag before the first and after the last position."""


def tag_machine(rules: Any, tags: Sequence[str]) -> TagMachine:
    """The smallest deterministic automaton of the rules.

    Args:
        rules: None for no rules; a regular expression over tag names, as text, see
            :func:`semprola.sequences.patterns.pattern_machine`; a DFA or NFA of automata-lib, or an object with
            its attributes; a formula over neighbouring tags or counts; an existing `TagMachine`; or a list of these,
            all of which must hold.
    """
    if isinstance(rules, list | tuple):
        machine = TagMachine.free(len(tags))
        for rule in rules:
            machine = machine & tag_machine(rule, tags)
        return machine.reduced()
    return _machine(rules, tags).reduced()


def _machine(rules: Any, tags: Sequence[str]) -> TagMachine:
    if rules is None:
        return TagMachine.free(len(tags))
    if isinstance(rules, TagMachine):
        if rules.num_tags != len(tags):
            raise LabelError(f"the automaton reads {rules.num_tags} tags, but there are {len(tags)}")
        return rules
    if isinstance(rules, str):
        return pattern_machine(rules, tags)
    if isinstance(rules, Formula):
        return _of_formula(rules, tags)
    if hasattr(rules, "transitions"):
        return _of_automaton(rules, tags)
    raise LabelError(
        "rules must be None, a regular expression, an automaton or a formula over neighbouring tags, "
        f"not {brief(rules)}"
    )


def _of_automaton(machine: Any, tags: Sequence[str]) -> TagMachine:
    found = [symbol for row in machine.transitions.values() for symbol in row]
    found += list(getattr(machine, "input_symbols", ()))
    own = {str(symbol): symbol for symbol in found if symbol != ""}
    unknown = next((name for name in own if name not in tags), None)
    if unknown is not None:
        raise LabelError(f"the automaton reads {brief(unknown)}, which is not a tag: the tags are {_listed(tags)}")
    words = automaton(machine, length=1, alphabet=[own.get(tag, tag) for tag in tags])
    return TagMachine.determinized(words.table, words.start, words.final)


def _of_formula(formula: Formula, tags: Sequence[str]) -> TagMachine:
    """The automaton of rules about counts over the whole sequence, and of all other rules, at every position."""
    machine, local = TagMachine.free(len(tags)), []
    for rule in conjuncts(formula):
        counts = counts_in(rule, tags)
        if counts:
            machine = (machine & count_machine(rule, counts, tags)).reduced()
        else:
            local.append(rule)
    return machine & _at_every_position(And(local), tags) if local else machine


def _at_every_position(formula: Formula, tags: Sequence[str]) -> TagMachine:
    """The automaton of a formula that must hold at every position, for its tag and those before and after it.

    If the formula mentions the next tag, a position is checked when that tag is read, or at the end. A state holds what
    this check needs: the tag, and also the tag before it if the formula looks back.
    """
    formula = unstated(formula)  # before the first position, no label of "prev" is on
    readers = {name: _reader(name, tags) for name in formula.labels}
    spoken = {place for place, _ in readers.values()}
    looks_back, looks_ahead = bool(spoken & {"prev", "first"}), bool(spoken & {"next", "last"})
    count = len(tags)
    before = np.arange(_NONE, count) if looks_back else np.array([_NONE])
    after = np.arange(_NONE, count) if looks_ahead else np.array([_NONE])
    grid = np.meshgrid(before, np.arange(count), after, indexing="ij")
    holds = _holds(formula, readers, *(axis.reshape(-1) for axis in grid)).reshape(grid[0].shape)
    # state 0 has read nothing; 1 + before * count + tag has read `tag` last
    here = np.arange(count)
    columns = [np.full(count, -1)]
    accepting = [True]  # without positions, the formula fails nowhere
    for p in range(len(before)):
        for tag in range(count):
            follow = 1 + (tag + 1 if looks_back else 0) * count + here
            allowed = holds[p, tag, 1:] if looks_ahead else np.full(count, holds[p, tag, 0])
            columns.append(np.where(allowed, follow, -1))
            accepting.append(bool(holds[p, tag, 0]))
    columns[0] = 1 + here
    return TagMachine(np.stack(columns), np.array(accepting))


def _reader(name: str, tags: Sequence[str]) -> tuple[str, int]:
    """The meaning of a variable of the formula: a place, and the tag at that place."""
    if name in tags:
        return "tag", tags.index(name)
    if name in ("first", "last"):
        return name, _NONE
    place, _, tag = name.partition("=")
    if place not in ("prev", "tag", "next"):
        raise LabelError(
            f"the rules mention {brief(name)}: "
            "expected 'first', 'last', a tag, or 'prev=', 'tag=' or 'next=' with a tag"
        )
    if tag not in tags:
        raise LabelError(
            f"the rules mention {brief(name)}, but {brief(tag)} is not a tag: the tags are {_listed(tags)}"
        )
    return place, tags.index(tag)


def _holds(
    formula: Formula, readers: dict[str, tuple[str, int]], prev: np.ndarray, tag: np.ndarray, after: np.ndarray
) -> np.ndarray:
    values = {"prev": prev, "tag": tag, "next": after, "first": prev, "last": after}
    columns = [values[place] == wanted for place, wanted in readers.values()]
    if not columns:
        return np.full(len(tag), bool(formula.evaluate({})))
    return np.asarray(formula.evaluate(np.stack(columns, axis=1), labels=list(readers)), bool)


def _listed(tags: Sequence[str]) -> str:
    return ", ".join(tags[:6]) + (", …" if len(tags) > 6 else "")
