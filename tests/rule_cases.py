"""Random lists of rules, and their truth tables."""

from __future__ import annotations

import importlib.util
import itertools
import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

import semprola as sp

_SHAPES = (
    "{a} -> {b}",
    "~({a} & {b})",
    "{a} | {b}",
    "{a} <-> {b}",
    "{a}",
    "~{a}",
    "exactly(1, {a}, {b}, {c})",
    "{a} & {b} -> {c}",
    "{a} ^ {b} ^ {c}",
)


@dataclass(frozen=True)
class Case:
    """Rules, the states [states, labels] and which of them each rule allows [rules, states]."""

    rules: list[str]
    labels: str
    states: NDArray[np.bool_]
    allowed: NDArray[np.bool_]

    def holds(self, rules: Iterable[int]) -> NDArray[np.bool_]:
        """Which states some of the rules allow."""
        chosen = [*rules]
        return self.allowed[chosen].all(0)

    @property
    def models(self) -> NDArray[np.bool_]:
        """The states that all rules allow."""
        return self.states[self.holds(range(len(self.rules)))]


def cases(count: int, seed: int, *, satisfiable: bool | None = None) -> Iterator[Case]:
    """Random lists of rules over three to six labels."""
    chance = random.Random(seed)
    while count:
        labels = "abcdef"[: chance.randint(3, 6)]
        rules = [
            chance.choice(_SHAPES).format(**dict(zip("abc", chance.sample(labels, 3), strict=True)))
            for _ in range(chance.randint(2, 8))
        ]
        if chance.random() < 0.3:
            rules.append(chance.choice(["a | ~a", "exactly(1, a, b) | ~(a ^ b)", "a & b -> b"]))
        case = made(rules, labels)
        if satisfiable is None or satisfiable == bool(len(case.models)):
            yield case
            count -= 1


def made(rules: Sequence[str], labels: str) -> Case:
    """A case with these rules."""
    states = np.array(list(itertools.product([False, True], repeat=len(labels))))
    allowed = np.array([sp.parse(rule).evaluate(states, labels=list(labels)) for rule in rules])
    return Case([*rules], labels, states, allowed)


SOLVERS = pytest.mark.parametrize("solver", ["python-sat", "compiler"])


def use_solver(solver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use python-sat, or do as if it were not installed."""
    if solver == "compiler":
        find = importlib.util.find_spec
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pysat" else find(name))
    else:
        pytest.importorskip("pysat")
