"""The constraints of the compiler's suite: what people write, families and formulas side by side."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import networkx as nx
import numpy as np

import semprola as sp
from semprola.logic import And, Bool, Formula, Iff, Or, Xor

C = sp.constraints


@dataclass(frozen=True)
class Case:
    """One constraint.

    Attributes:
        kind: the kind of constraint.
        name: its name.
        build: makes it.
        labels: the order of its labels, if it differs from that of the rules.
    """

    kind: str
    name: str
    build: Callable[[], Formula]
    labels: tuple[str, ...] | None = None


def cases() -> list[Case]:
    """All of them, by kind."""
    kinds = (rosters, timetables, feature_models, hierarchies, arithmetic, clauses, puzzles, mixtures)
    return [case for kind in kinds for case in kind()]


# rosters: nurses, shifts, days ---------------------------------------------------------------------------------------


def on(nurse: int, shift: int, day: int) -> str:
    return f"n{nurse}s{shift}d{day}"


def slots(nurse: int, shifts: int = 3, days: int = 5) -> list[str]:
    return [on(nurse, s, d) for d in range(days) for s in range(shifts)]


def roster(nurses: int = 6, shifts: int = 3, days: int = 5) -> list[Formula]:
    """Every shift of every day has one nurse, and nobody has two shifts on the same day."""
    filled = [sp.one_hot([on(n, s, d) for n in range(nurses)]) for d in range(days) for s in range(shifts)]
    return filled + [sp.at_most(1, [on(n, s, d) for s in range(shifts)]) for n in range(nurses) for d in range(days)]


def teams(nurses: int = 6, shifts: int = 3, days: int = 5) -> list[Formula]:
    """Everybody has one shift per day, and no shift has more than three nurses."""
    busy = [sp.one_hot([on(n, s, d) for s in range(shifts)]) for n in range(nurses) for d in range(days)]
    return busy + [sp.at_most(3, [on(n, s, d) for n in range(nurses)]) for d in range(days) for s in range(shifts)]


def listed(major: str, nurses: int = 6, shifts: int = 3, days: int = 5) -> tuple[str, ...]:
    place = {"nurse": (0, 2, 1), "shift": (1, 0, 2), "day": (2, 1, 0)}[major]
    keys = itertools.product(range(nurses), range(shifts), range(days))
    return tuple(on(*key) for key in sorted(keys, key=lambda key: tuple(key[i] for i in place)))


def rosters() -> Iterator[Case]:
    def loads(n: int, days: int = 5) -> dict[str, int]:
        return {name: 1 + i % 3 for i, name in enumerate(slots(n, days=days))}

    def four(nurses: int = 6, days: int = 5) -> Formula:
        few = [C.cardinality(slots(n, days=days), at_most=3) for n in range(3)]
        return And([*roster(nurses, 3, days), *few, C.linear(loads(3, days), "<=", 6)])

    six = [sp.at_most(5, slots(n)) for n in range(6)]
    night = [sp.at_most(2, [on(n, 2, d) for d in range(5)]) for n in range(3)]
    rest = [Bool(on(n, 2, d)) >> ~Bool(on(n, 0, d + 1)) for n in range(6) for d in range(4)]
    yield Case("roster", "base", lambda: And(roster()), listed("nurse"))
    yield Case("roster", "at_most(3) for one", lambda: And([*roster(), sp.at_most(3, slots(0))]), listed("nurse"))
    yield Case(
        "roster", "cardinality, by shift", lambda: And([*roster(), C.cardinality(slots(0), at_most=3)]), listed("shift")
    )
    yield Case("roster", "linear, by day", lambda: And([*roster(), C.linear(loads(0), "<=", 6)]), listed("day"))
    yield Case("roster", "six redundant at_most(5)", lambda: And([*roster(), *six]), listed("nurse"))
    for major in ("nurse", "shift", "day"):
        yield Case("roster", f"four kinds of rules, by {major}", four, listed(major))
    yield Case("roster", "four kinds, 7 nurses, 7 days", lambda: four(7, 7))
    yield Case("roster", "teams", lambda: And(teams()))
    yield Case("roster", "teams, few nights", lambda: And([*teams(), *night]), listed("shift"))
    yield Case("roster", "teams, rest after nights", lambda: And([*teams(), *rest]))


# timetables: courses, hours ------------------------------------------------------------------------------------------


def at(course: int, hour: int) -> str:
    return f"c{course}h{hour}"


def timetables() -> Iterator[Case]:
    def table(courses: int, hours: int, clashes: int, rooms: int, seed: int) -> list[Formula]:
        rng = random.Random(seed)
        pairs = rng.sample(list(itertools.combinations(range(courses), 2)), clashes)
        rules = [sp.one_hot([at(c, h) for h in range(hours)]) for c in range(courses)]
        rules += [~(Bool(at(a, h)) & Bool(at(b, h))) for a, b in pairs for h in range(hours)]
        return rules + [sp.at_most(rooms, [at(c, h) for c in range(courses)]) for h in range(hours)]

    def before(a: int, b: int, hours: int) -> list[Formula]:
        return [Bool(at(a, h)) >> Or(Bool(at(b, k)) for k in range(h + 1, hours)) for h in range(hours)]

    ordered = [*before(0, 1, 5), *before(1, 2, 5)]
    places = C.permutation(6)
    yield Case("timetable", "8 courses, 4 hours", lambda: And(table(8, 4, 6, 3, 0)))
    yield Case("timetable", "10 courses, 5 hours", lambda: And(table(10, 5, 8, 3, 1)))
    yield Case("timetable", "12 courses, 4 hours, 5 rooms", lambda: And(table(12, 4, 8, 5, 2)))
    yield Case("timetable", "8 courses in order", lambda: And([*table(8, 5, 3, 3, 3), *ordered]))
    yield Case(
        "timetable",
        "8 courses, load",
        lambda: And([*table(8, 4, 4, 3, 4), C.linear({at(c, h): 1 + h for c in range(8) for h in range(4)}, "<=", 18)]),
    )
    yield Case(
        "timetable",
        "9 courses, mornings",
        lambda: And([*table(9, 4, 6, 4, 5), C.cardinality([at(c, h) for c in range(9) for h in (0, 1)], at_most=4)]),
    )
    yield Case("timetable", "6 courses as a permutation", lambda: places & ~Bool(places.labels[7]))


# feature models: what can be configured together ----------------------------------------------------------------------


def feature_models() -> Iterator[Case]:
    def model(features: int, crossing: int, seed: int) -> list[Formula]:
        rng = random.Random(seed)
        f = [Bool(f"f{i}") for i in range(features)]
        rules: list[Formula] = [f[0]]
        free = list(range(1, features))
        for parent in range(features):
            size = rng.randint(1, 4)
            children, free = free[:size], free[size:]
            if not children:
                break
            kind = rng.choice(["optional", "mandatory", "or", "alternative"])
            rules += [f[c] >> f[parent] for c in children]
            if kind == "mandatory":
                rules += [f[parent] >> f[c] for c in children]
            elif kind != "optional":
                rules.append(f[parent] >> Or(f[c] for c in children))
            if kind == "alternative":
                rules.append(sp.at_most(1, [f[c] for c in children]))
        for _ in range(crossing):
            a, b = rng.sample(range(1, features), 2)
            rules.append(f[a] >> f[b] if rng.random() < 0.5 else ~(f[a] & f[b]))
        return rules

    def priced(features: int, crossing: int, seed: int) -> Formula:
        rng = random.Random(seed)
        price = {f"f{i}": rng.randint(1, 5) for i in range(features)}
        return And([*model(features, crossing, seed), C.linear(price, "<=", sum(price.values()) // 3)])

    for features, crossing in ((30, 4), (60, 8), (120, 12), (200, 10)):
        build = partial(And, model(features, crossing, features))
        yield Case("feature model", f"{features}, {crossing} crossing", build)
    few = sp.at_most(20, [f"f{i}" for i in range(40)])
    yield Case("feature model", "40, at most 20", lambda: And([*model(40, 4, 7), few]))
    for features in (30, 50):
        yield Case("feature model", f"{features}, with prices", partial(priced, features, 4, features))


# hierarchies with further rules ---------------------------------------------------------------------------------------


def hierarchies() -> Iterator[Case]:
    def tree(size: int, seed: int = 0, reach: int = 8) -> list[tuple[str, str]]:
        rng = random.Random(seed)
        return [(f"n{i}", f"n{rng.randrange(max(0, i // 2 - reach), max(1, (i + 1) // 2))}") for i in range(1, size)]

    def dag(size: int, seed: int = 0) -> list[tuple[str, str]]:
        rng = random.Random(seed)
        return tree(size, seed) + [(f"n{i}", f"n{rng.randrange(i)}") for i in range(2, size) if rng.random() < 0.15]

    def names(size: int) -> list[str]:
        return [f"n{i}" for i in range(size)]

    causes = [Bool(f"n{i}") >> (Bool(f"n{i + 3}") | Bool(f"n{i + 5}")) for i in range(8, 70, 9)]
    other = [(f"m{i}", f"m{i // 3}") for i in range(1, 40)]
    links = [Iff(Bool(f"n{i}"), Bool(f"m{i}")) for i in (3, 9, 17)]
    yield Case("hierarchy", "tree of 60, at most 10", lambda: C.hierarchy(tree(60)) & sp.at_most(10, names(60)))
    yield Case("hierarchy", "tree of 120, at most 8", lambda: C.hierarchy(tree(120)) & sp.at_most(8, names(120)))
    yield Case(
        "hierarchy",
        "tree of 100, exclusions",
        lambda: And([C.hierarchy(tree(100)), *(~(Bool(f"n{i}") & Bool(f"n{i + 7}")) for i in range(20, 90, 5))]),
    )
    yield Case("hierarchy", "tree of 80, causes", lambda: And([C.hierarchy(tree(80)), *causes]))
    yield Case("hierarchy", "DAG of 60, not empty", lambda: C.hierarchy(dag(60)) & Or(Bool(n) for n in names(60)))
    yield Case("hierarchy", "DAG of 40, at most 6", lambda: C.hierarchy(dag(40)) & sp.at_most(6, names(40)))
    yield Case("hierarchy", "two trees, linked", lambda: And([C.hierarchy(tree(50)), C.hierarchy(other), *links]))


# arithmetic -----------------------------------------------------------------------------------------------------------


def arithmetic() -> Iterator[Case]:
    def adder(bits: int) -> list[Formula]:
        """x + y = z, with the carries as labels."""
        rules: list[Formula] = [~Bool("carry0")]
        for i in range(bits):
            x, y, c = Bool(f"x{i}"), Bool(f"y{i}"), Bool(f"carry{i}")
            rules.append(Iff(Bool(f"z{i}"), Xor(x, y, c)))
            rules.append(Iff(Bool(f"carry{i + 1}"), sp.at_least(2, [x, y, c])))
        return rules

    def multiplier(bits: int) -> Formula:
        a, b = range(2**bits), range(2**bits)
        rows = [[*_bits(x, bits), *_bits(y, bits), *_bits(x * y, 2 * bits)] for x in a for y in b]
        labels = [*(f"a{i}" for i in range(bits)), *(f"b{i}" for i in range(bits)), *(f"p{i}" for i in range(2 * bits))]
        return C.table(np.array(rows), labels=labels) & (Bool("a0") | Bool("b0"))

    def knapsack(items: int, seed: int, sides: int) -> Formula:
        rng = random.Random(seed)
        rules = []
        for _ in range(sides):
            weights = {f"i{k}": rng.randint(1, 9) for k in range(items)}
            rules.append(C.linear(weights, "<=", sum(weights.values()) // 2))
        return And(rules)

    def sums(size: int) -> Formula:
        """Rows and columns of a square have equal numbers of ones."""
        cells = [[f"q{i}{j}" for j in range(size)] for i in range(size)]
        return And([sp.exactly(size // 2, line) for line in (*cells, *zip(*cells, strict=True))])

    even = [~Bool("z0"), Or(Bool(f"z{i}") for i in range(5, 10))]
    yield Case("arithmetic", "adder of 8 bits", lambda: And(adder(8)))
    yield Case("arithmetic", "adder of 24 bits", lambda: And(adder(24)))
    yield Case("arithmetic", "adder, even result", lambda: And([*adder(10), *even]))
    yield Case("arithmetic", "product of 4 bits", lambda: multiplier(4))
    yield Case("arithmetic", "two knapsacks of 20", lambda: knapsack(20, 0, 2))
    yield Case("arithmetic", "three knapsacks of 15", lambda: knapsack(15, 1, 3))
    yield Case("arithmetic", "square of 5 with equal sums", lambda: sums(5))
    yield Case("arithmetic", "square of 6 with equal sums", lambda: sums(6))
    yield Case(
        "arithmetic",
        "parities of 40",
        lambda: And([Xor(Bool(f"x{i + k}") for k in range(6)) for i in range(0, 35, 3)]),
    )


def _bits(value: int, count: int) -> list[int]:
    return [value >> i & 1 for i in range(count)]


# clauses --------------------------------------------------------------------------------------------------------------


def clauses() -> Iterator[Case]:
    def random_clauses(variables: int, count: int, length: int, seed: int) -> Formula:
        rng = random.Random(seed)
        return And(
            Or([Bool(f"v{v}") if rng.random() < 0.5 else ~Bool(f"v{v}") for v in rng.sample(range(variables), length)])
            for _ in range(count)
        )

    def grid(side: int) -> Formula:
        cell = {(i, j): Bool(f"g{i},{j}") for i in range(side + 1) for j in range(side + 1)}
        return And(cell[i, j] >> (cell[i + 1, j] | cell[i, j + 1]) for i in range(side) for j in range(side))

    for variables, count in ((20, 60), (30, 90), (50, 150), (80, 240), (100, 260)):
        build = partial(random_clauses, variables, count, 3, variables)
        yield Case("clauses", f"random, {variables} of {count}", build)
    yield Case("clauses", "random pairs, 60", lambda: random_clauses(60, 70, 2, 5))
    for side in (6, 10):
        yield Case("clauses", f"grid of {side}", partial(grid, side))
    steps = [Bool(f"x{i}") >> (Bool(f"x{i + 1}") | Bool(f"x{i + 2}")) for i in range(300)]
    yield Case("clauses", "chain of 300", lambda: And(steps))


# puzzles --------------------------------------------------------------------------------------------------------------


def puzzles() -> Iterator[Case]:
    def queens(size: int) -> Formula:
        cell = {(i, j): f"q{i},{j}" for i in range(size) for j in range(size)}
        lines = [[cell[i, j] for j in range(size)] for i in range(size)]
        rules = [sp.one_hot(line) for line in (*lines, *zip(*lines, strict=True))]
        for first, second in itertools.combinations(cell, 2):
            if abs(first[0] - second[0]) == abs(first[1] - second[1]):
                rules.append(~(Bool(cell[first]) & Bool(cell[second])))
        return And(rules)

    def latin(size: int) -> Formula:
        cell = [[[f"l{i}{j}{k}" for k in range(size)] for j in range(size)] for i in range(size)]
        n = range(size)
        groups = [[cell[i][j][k] for k in n] for i in n for j in n]
        groups += [[cell[i][j][k] for j in n] for i in n for k in n]
        return And([sp.one_hot(group) for group in groups + [[cell[i][j][k] for i in n] for j in n for k in n]])

    def colours(graph: Any, count: int) -> Formula:
        rules: list[Formula] = [sp.one_hot([f"{v}:{k}" for k in range(count)]) for v in graph]
        return And([*rules, *(~(Bool(f"{a}:{k}") & Bool(f"{b}:{k}")) for a, b in graph.edges for k in range(count))])

    yield Case("puzzle", "queens on 6", lambda: queens(6))
    yield Case("puzzle", "queens on 8", lambda: queens(8))
    yield Case("puzzle", "Latin square of 4", lambda: latin(4))
    yield Case("puzzle", "colours of a 5 × 5 grid", lambda: colours(nx.grid_2d_graph(5, 5), 3))
    yield Case("puzzle", "colours of a random graph", lambda: colours(nx.gnm_random_graph(14, 24, seed=1), 3))


# mixtures of families and formulas ------------------------------------------------------------------------------------


def mixtures() -> Iterator[Case]:
    def paths(side: int) -> Any:
        return C.simple_paths(nx.grid_2d_graph(side, side), source=(0, 0), target=(side - 1, side - 1))

    def short(side: int, most: int) -> Formula:
        return And([paths(side), sp.at_most(most, paths(side).labels)])

    def toll(side: int) -> Formula:
        labels = paths(side).labels
        return And([paths(side), C.linear({name: 1 + i % 3 for i, name in enumerate(labels)}, "<=", 4 * side)])

    words = C.regex("(ab|ba|c)*", length=14, alphabet="abc")
    yield Case("mixture", "paths of a 4 × 4 grid, short", lambda: short(4, 8))
    yield Case("mixture", "paths of a 5 × 5 grid, short", lambda: short(5, 12))
    yield Case("mixture", "paths of a 4 × 4 grid, toll", lambda: toll(4))
    yield Case(
        "mixture",
        "paths, not both corners",
        lambda: paths(5) & ~(Bool(paths(5).labels[3]) & Bool(paths(5).labels[-4])),
    )
    yield Case(
        "mixture",
        "matchings of a 5 × 5 grid, few",
        lambda: And([C.matchings(nx.grid_2d_graph(5, 5)), sp.at_most(6, C.matchings(nx.grid_2d_graph(5, 5)).labels)]),
    )
    yield Case(
        "mixture",
        "permutation of 7, forbidden places",
        lambda: And([C.permutation(7), *(~Bool(C.permutation(7).labels[8 * i]) for i in range(7))]),
    )
    yield Case(
        "mixture",
        "table and clauses",
        lambda: And(
            [
                C.table(np.random.default_rng(0).integers(0, 2, (200, 24)), labels=[f"t{i}" for i in range(24)]),
                *(Bool(f"t{i}") >> (Bool(f"t{i + 9}") | Bool(f"s{i}")) for i in range(12)),
            ]
        ),
    )
    yield Case(
        "mixture",
        "words with a count",
        lambda: And([words, sp.at_most(6, words.labels[::3])]),
    )
    yield Case(
        "mixture",
        "one-hot, count, sum, hierarchy",
        lambda: And(
            [
                C.one_hot(*([f"g{i}{k}" for k in range(4)] for i in range(8))),
                C.cardinality([f"g{i}0" for i in range(8)], at_most=3),
                C.linear({f"g{i}{k}": k for i in range(8) for k in range(4)}, "<=", 11),
                C.hierarchy([(f"g{i}1", f"g{i + 1}2") for i in range(0, 7, 2)]),
            ]
        ),
    )
    yield Case(
        "mixture",
        "sum and clauses",
        lambda: And(
            [
                C.linear({f"x{i}": 1 + i % 5 for i in range(30)}, "==", 60),
                *(Bool(f"x{i}") | Bool(f"x{(i * 7 + 3) % 30}") for i in range(0, 30, 2)),
            ]
        ),
    )
