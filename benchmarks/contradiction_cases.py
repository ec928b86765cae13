"""Constraints without a model, small and large: formulas, families and mixtures."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass

import semprola as sp
from semprola.logic import And, Bool, Formula, Not

C = sp.constraints


@dataclass(frozen=True)
class Contradictory:
    """A constraint without a model.

    Attributes:
        name: what it is.
        fewest: how many rules a smallest contradiction has.
        rules: makes the rules.
    """

    name: str
    fewest: int
    rules: Callable[[], list[Formula]]

    def build(self) -> Formula:
        """The constraint."""
        return And(self.rules())


def cases() -> list[Contradictory]:
    """All of them."""
    return [
        Contradictory("chain of implications", 10_000, chain),
        Contradictory("four rules among random clauses", 4, needle),
        Contradictory("four rules among clauses, counts and sums", 4, mixture),
        Contradictory("three rules among families", 3, families),
        Contradictory("hierarchy of 5,000 labels with rules", 4, hierarchy),
        Contradictory("roster: 15 shifts, 6 nurses, at most 2 each", 19, lambda: roster(6, 15, 2)),
        Contradictory("roster: 5 days of 3 shifts, 6 nurses, at most 2 each", 19, lambda: shifts(6, 5, 2)),
        Contradictory("roster: 60 shifts, 20 nurses, at most 2 each", 61, lambda: roster(20, 60, 2)),
        Contradictory("roster: 365 shifts, 30 nurses, at most 12 each", 391, lambda: roster(30, 365, 12)),
    ]


def chain(count: int = 10_000) -> list[Formula]:
    labels = [Bool(f"x{i}") for i in range(count - 1)]
    return [a >> b for a, b in itertools.pairwise(labels)] + [labels[0], ~labels[-1]]


def needle(count: int = 10_000) -> list[Formula]:
    rng = random.Random(1)
    rules = [_clause(rng, 5000) for _ in range(count - 4)]
    a, b, c, d = (Bool(f"v{v}") for v in (1, 2, 3, 7))
    return [*rules, a >> b, b >> c, sp.at_most(1, [a, c, d]), a]


def mixture(count: int = 10_000) -> list[Formula]:
    rng = random.Random(2)
    rules: list[Formula] = []
    for number in range(count - 4):
        some = [f"v{v}" for v in rng.sample(range(20_000), 5)]
        if number % 4 == 0:
            rules.append(sp.at_most(3, some))
        elif number % 4 == 1:
            rules.append(C.linear({name: rng.randint(1, 3) for name in some}, "<=", 9))
        else:
            rules.append(_clause(rng, 20_000))
    a, b, c, d = (Bool(f"v{v}") for v in (1, 2, 3, 7))
    return [
        *rules,
        a >> b,
        C.linear({"v1": 2, "v2": 2, "v3": 1}, "<=", 4),
        C.hierarchy([("v2", "v3")]),
        a | (c & d & a),
    ]


def families(groups: int = 2_500) -> list[Formula]:
    rules: list[Formula] = []
    for g in range(groups):
        a, b, c, d = (f"{name}{g}" for name in "abcd")
        rules += [sp.one_hot([a, b, c, d]), C.hierarchy([(a, b)])]
        rules += [C.linear({a: 2, b: 3, c: 1, d: 1}, "<=", 4), Bool(c) | Bool(d) if g else Bool(a)]
    return rules


def hierarchy(count: int = 5_000) -> list[Formula]:
    rng = random.Random(3)
    edges = [(f"v{v}", f"v{rng.randrange(v)}") for v in range(1, count)]
    parent = dict(edges)
    child = f"v{count - 1}"
    other = parent[child]
    rules: list[Formula] = [C.hierarchy(edges), *(_clause(rng, count) for _ in range(count - 4))]
    return [*rules, Bool("first") >> Bool(child), Bool("first"), ~(Bool(other) & Bool("first"))]


def roster(nurses: int, shifts: int, most: int) -> list[Formula]:
    """One nurse on every shift; no nurse on too many; some rest."""
    days = range(shifts)
    rules = [sp.one_hot([f"n{n}d{d}" for n in range(nurses)]) for d in days]
    rules += [C.cardinality([f"n{n}d{d}" for d in days], at_most=most) for n in range(nurses)]
    return [*rules, *(~(Bool(f"n{n}d0") & Bool(f"n{n}d1")) for n in range(nurses))]


def shifts(nurses: int, days: int, most: int) -> list[Formula]:
    """Three shifts a day, at most one of them for a nurse."""
    rules = [sp.one_hot([f"n{n}d{d}s{s}" for n in range(nurses)]) for d in range(days) for s in range(3)]
    rules += [sp.at_most(1, [f"n{n}d{d}s{s}" for s in range(3)]) for n in range(nurses) for d in range(days)]
    for n in range(nurses):
        rules.append(sp.at_most(most, [f"n{n}d{d}s{s}" for d in range(days) for s in range(3)]))
    return rules


def _clause(rng: random.Random, labels: int) -> Formula:
    first, *others = (Bool(f"v{v}") for v in rng.sample(range(labels), 3))
    return sp.Or([Not(first), *others])
