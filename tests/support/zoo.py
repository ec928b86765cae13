"""The test zoo: small constraints of every kind, so small that everything can be checked by enumeration.

A new constraint is tested against every query and every layer by listing it once in ``CASES``.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import networkx as nx

import semprola as sp


@dataclass(frozen=True)
class Case:
    """One constraint and how it is compiled.

    Args:
        name: what it shows; the id of its tests.
        make: makes the formula or family; called late, so that one that fails takes down its own tests only.
        labels: column order of y; empty for the constraint's own order.
        given: names of the inputs x.
        large: more than six labels, so tried with some of the layers only.
        structured: whether the products of its circuit follow a vtree.
    """

    name: str
    make: Callable[[], Any] = field(repr=False)
    labels: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    large: bool = False
    structured: bool = True

    @property
    def formula(self) -> Any:
        return _formula(self)

    @property
    def circuit(self) -> Any:
        """The compiled constraint; compiled once a process."""
        return _circuit(self)

    @property
    def columns(self) -> tuple[str, ...]:
        """The labels, in the column order of y."""
        return self.labels or tuple(name for name in self.formula.labels if name not in self.given)


@cache
def _formula(case: Case) -> Any:
    return case.make()


@cache
def _circuit(case: Case) -> Any:
    return sp.compile(case.formula, labels=list(case.columns), given=list(case.given))


def case(name: str) -> Case:
    """The case of that name."""
    return next(c for c in CASES if c.name == name)


# generators ----------------------------------------------------------------------------------------------------------


def names(count: int) -> list[str]:
    """The first letters: ``a b c …``."""
    return [chr(ord("a") + i) for i in range(count)]


def random_cnf(seed: int, atoms: int, clauses: int, width: int = 3) -> Any:
    """A random CNF that has at least one model: every clause agrees with one hidden assignment somewhere."""
    rng = random.Random(seed)
    variables = [sp.Bool(name) for name in names(atoms)]
    hidden = [rng.random() < 0.5 for _ in variables]
    made: list[Any] = []
    while len(made) < clauses:
        chosen = rng.sample(range(atoms), width)
        signs = [rng.random() < 0.5 for _ in chosen]
        if any(sign == hidden[i] for i, sign in zip(chosen, signs, strict=True)):
            made.append(sp.Or(_literal(variables[i], sign) for i, sign in zip(chosen, signs, strict=True)))
    return sp.And(made)


def random_dnf(seed: int, atoms: int, terms: int, width: int = 3) -> Any:
    """A random DNF; its terms overlap, so that a circuit which forgets determinism counts models twice."""
    rng = random.Random(seed)
    variables = [sp.Bool(name) for name in names(atoms)]
    return sp.Or(
        sp.And(_literal(variables[i], rng.random() < 0.5) for i in rng.sample(range(atoms), width))
        for _ in range(terms)
    )


def random_nested(seed: int, atoms: int, depth: int) -> Any:
    """A random formula over all connectives that is neither true nor false everywhere."""
    for attempt in itertools.count():
        rng = random.Random(1000 * seed + attempt)
        formula = _nested(rng, names(atoms), depth)
        rows = list(itertools.product([0, 1], repeat=len(formula.labels)))
        if 0 < sum(bool(v) for v in formula.evaluate(rows)) < len(rows):
            return formula


def _nested(rng: random.Random, atoms: Sequence[str], depth: int) -> Any:
    if depth == 0:
        return _literal(sp.Bool(rng.choice(atoms)), rng.random() < 0.5)
    parts = [_nested(rng, atoms, depth - 1) for _ in range(rng.randint(2, 3))]
    connectives: list[Callable[[], Any]] = [
        lambda: sp.And(parts),
        lambda: sp.Or(parts),
        lambda: sp.Xor(parts),
        lambda: sp.Implies(parts[0], parts[1]),
        lambda: sp.Iff(parts[0], parts[1]),
        lambda: sp.Not(sp.And(parts)),
        lambda: sp.exactly(1, parts),
        lambda: sp.at_most(1, parts),
        lambda: sp.at_least(2, parts),
    ]
    return rng.choice(connectives)()


def _literal(formula: Any, sign: bool) -> Any:
    return formula if sign else ~formula


# hand-written --------------------------------------------------------------------------------------------------------


def parsed(text: str) -> Callable[[], Any]:
    return lambda: sp.parse(text)


def permutation(n: int) -> Any:
    """Every row and every column of an n × n matrix has one 1."""
    cell = [[sp.Bool(f"y{i}{j}") for j in range(n)] for i in range(n)]
    return sp.And([sp.one_hot(row) for row in cell] + [sp.one_hot(list(column)) for column in zip(*cell, strict=True)])


def grid_path_rows(rows: int, columns: int) -> tuple[list[str], list[list[int]]]:
    """Edge names of a grid and, as 0/1 rows, its simple paths from corner to corner."""
    graph = nx.grid_2d_graph(rows, columns)
    edges = [frozenset(edge) for edge in graph.edges]
    paths = nx.all_simple_paths(graph, (0, 0), (rows - 1, columns - 1))
    used = [{frozenset(step) for step in itertools.pairwise(path)} for path in paths]
    return [f"e{i}" for i in range(len(edges))], [[int(edge in path) for edge in edges] for path in used]


def rows_formula(labels: Sequence[str], rows: Iterable[Sequence[int]]) -> Any:
    """The disjunction of complete terms: a table written as a formula."""
    atoms = [sp.Bool(name) for name in labels]
    return sp.Or(sp.And(_literal(a, bool(v)) for a, v in zip(atoms, row, strict=True)) for row in rows)


def pigeonhole(pigeons: int, holes: int) -> Any:
    """Every pigeon has at least one hole and no hole has two pigeons."""
    cell = [[sp.Bool(f"p{i}{j}") for j in range(holes)] for i in range(pigeons)]
    shared = [sp.at_most(1, list(column)) for column in zip(*cell, strict=True)]
    return sp.And([sp.Or(row) for row in cell] + shared)


def colouring(edges: Sequence[tuple[int, int]], nodes: int, colours: int) -> Any:
    """One colour a node, different ones at the two ends of an edge."""
    cell = [[sp.Bool(f"n{i}c{j}") for j in range(colours)] for i in range(nodes)]
    clashes = [~(cell[u][j] & cell[v][j]) for u, v in edges for j in range(colours)]
    return sp.And([sp.one_hot(row) for row in cell] + clashes)


def hidden_edges() -> Any:
    """Paths of the 2 × 3 grid over those edges only that the input leaves in."""
    labels, rows = grid_path_rows(2, 3)
    present = [sp.Bool(name) >> sp.Bool(f"has {name}") for name in labels[:3]]
    return rows_formula(labels, rows) & sp.And(present)


def given_paths() -> Any:
    """Paths of a triangle between ends and over edges that are inputs."""
    return sp.constraints.simple_paths(nx.cycle_graph(3), endpoints="given")


_GRID_LABELS, _GRID_ROWS = grid_path_rows(2, 3)
_TREE = [("cat", "mammal"), ("dog", "mammal"), ("mammal", "animal"), ("bird", "animal")]
_TRIANGLE_INPUTS = ("end 0", "end 1", "end 2", "has 0-1", "has 0-2", "has 1-2")
_DAG = [("c", "a"), ("c", "b"), ("d", "a"), ("d", "b")]
_TREE_ORDER = ("bird", "free", "animal", "mammal", "cat", "dog")

HAND_WRITTEN = [
    Case("cat_dog_animal", lambda: sp.parse("(cat -> animal) & (dog -> animal)"), ("cat", "dog", "animal")),
    Case("other_column_order", parsed("(cat -> animal) & (dog -> animal)"), ("animal", "dog", "cat")),
    Case("single_label_true", lambda: sp.Bool("a")),
    Case("single_label_false", lambda: ~sp.Bool("a")),
    Case("single_label_free", parsed("a | !a"), ("a",)),
    Case("single_model", parsed("a & !b & c & !d")),
    Case("tautology", parsed("(a -> b) | (b -> c) | (c -> a)")),
    Case("constant_true", lambda: sp.logic.TRUE, ("a", "b", "c")),
    Case("free_labels", parsed("a ^ c"), ("u", "a", "v", "c", "w")),
    Case("free_and_forced", parsed("a & (b | !b)"), ("z", "b", "a")),
    Case("implication_chain", lambda: sp.And(sp.Bool(a) >> sp.Bool(b) for a, b in itertools.pairwise(names(6)))),
    Case("implication_cycle", parsed("(a -> b) & (b -> c) & (c -> d) & (d -> a) & (a | e)")),
    Case("exactly_two_of_five", lambda: sp.exactly(2, [~sp.Bool(names(5)[0]), *names(5)[1:]])),
    Case("two_labels_of_five", lambda: sp.exactly(2, names(5))),
    Case("at_most_one_of_six", lambda: sp.at_most(1, names(6))),
    Case("at_least_three_of_five", lambda: sp.at_least(3, names(5))),
    Case("one_hot_of_four", lambda: sp.one_hot(names(4)), ("d", "b", "a", "c")),
    Case("two_groups", lambda: sp.one_hot(["a", "b", "c"]) & sp.one_hot(["d", "e"]) & sp.parse("a -> e")),
    Case("cardinality_of_formulas", parsed("exactly(2, a & b, b | c, !d, a ^ d, c)")),
    Case("parity_odd", lambda: sp.Xor(sp.Bool(n) for n in names(5))),
    Case("parity_even", lambda: ~sp.Xor(sp.Bool(n) for n in names(4))),
    Case("iff_pairs", parsed("(a <-> b) & (c <-> !d)"), ("a", "c", "b", "d")),
    Case("iff_chain", parsed("a <-> (b <-> (c <-> d))")),
    Case("nested_choice", parsed("(a & (b | (c & (d ^ e)))) | (!a & ((b -> c) <-> d))")),
    Case("majority", parsed("(a & b) | (b & c) | (a & c)")),
    Case("permutation_3", lambda: permutation(3), large=True),
    Case("grid_paths_2x3", lambda: rows_formula(_GRID_LABELS, _GRID_ROWS), tuple(_GRID_LABELS), large=True),
    Case("tree_as_formula", lambda: sp.And(sp.Bool(c) >> sp.Bool(p) for c, p in _TREE)),
    Case("pigeonhole_2_in_3", lambda: pigeonhole(2, 3)),
    Case("pigeonhole_3_in_3", lambda: pigeonhole(3, 3), large=True),
    Case("colour_a_path", lambda: colouring([(0, 1), (1, 2)], 3, 3), large=True),
    Case("quoted_names", parsed("'01/01' -> '01' & 'Übergröße (XL)' ^ '01'")),
    Case("many_models", lambda: sp.at_least(2, names(10)), large=True),
    Case("ten_labels", lambda: sp.at_most(2, names(10)) & sp.parse("a -> j"), large=True),
]

RANDOM = [
    *(Case(f"random_cnf_{s}", partial(random_cnf, s, 6, 8 + s)) for s in range(4)),
    *(Case(f"random_dnf_{s}", partial(random_dnf, s, 6, 4 + s)) for s in range(4)),
    *(Case(f"random_nested_{s}", partial(random_nested, s, 6, 2 + s % 2)) for s in range(6)),
    Case("random_cnf_8", partial(random_cnf, 11, 8, 18), large=True),
    Case("random_2cnf", partial(random_cnf, 12, 7, 9, width=2), large=True),
]

WITH_INPUTS = [
    Case("given_switch", parsed("(x -> a & b) & (!x -> c | d)"), ("a", "b", "c", "d"), ("x",)),
    Case("given_in_one_branch", parsed("(a & (x | b)) | (!a & c)"), ("a", "b", "c"), ("x",)),
    Case("given_two", parsed("(x1 -> (a ^ b)) & (x2 -> (b ^ c)) & (a | b | c)"), ("c", "a", "b"), ("x2", "x1")),
    Case("given_unmentioned", parsed("(a | b) & (x -> a)"), ("a", "b"), ("w", "x")),
    Case("given_forces_all", parsed("(a <-> x1) & (b <-> x2) & (c <-> (x1 ^ x2))"), ("a", "b", "c"), ("x1", "x2")),
    Case("given_may_leave_none", lambda: sp.exactly(1, ["x", "y", "a", "b", "c"]), ("a", "b", "c"), ("x", "y")),
    Case("given_must_hold", parsed("x & (a -> b)"), ("b", "a", "free"), ("x",)),
    Case("given_parity", lambda: sp.Xor(sp.Bool(n) for n in "axbyc"), ("a", "b", "c"), ("x", "y")),
    Case(
        "given_budget", parsed("at_most(3, a, b, c, d, x1, x2, x3) & (x1 -> a | b)"), tuple("dcba"), ("x1", "x2", "x3")
    ),
    Case("given_too_much", parsed("at_most(1, a, b, x1, x2, x3) & (a | c)"), ("a", "b", "c"), ("x1", "x2", "x3")),
    Case("given_edges", hidden_edges, tuple(_GRID_LABELS), ("has e0", "has e1", "has e2"), large=True),
]

FAMILIES = [
    Case("family_hierarchy", lambda: sp.constraints.hierarchy(_TREE)),
    Case("family_hierarchy_free", lambda: sp.constraints.hierarchy(_TREE), _TREE_ORDER),
    Case("family_cardinality", lambda: sp.constraints.cardinality(names(6), at_least=2, at_most=4)),
    Case("family_permutation", lambda: sp.constraints.permutation(3), large=True),
    Case(
        "family_paths",
        lambda: sp.constraints.simple_paths(nx.grid_2d_graph(2, 3), source=(0, 0), target=(1, 2)),
        large=True,
    ),
    Case("family_table", lambda: sp.constraints.table(_GRID_ROWS, labels=_GRID_LABELS), large=True),
    Case("family_linear", lambda: sp.constraints.linear({"a": 3, "b": -2, "c": 1, "d": 2, "e": -1}, "<=", 2)),
    Case("family_nonempty_dag", lambda: sp.constraints.hierarchy(_DAG, nonempty=True), structured=False),
    Case("family_strict_tree", lambda: sp.constraints.hierarchy(_TREE, mandatory_leaf=True, exclusive_siblings=True)),
    Case("family_matchings", lambda: sp.constraints.matchings(nx.cycle_graph(5))),
    Case("family_spanning_trees", lambda: sp.constraints.spanning_trees(nx.cycle_graph(4))),
    Case("family_given_paths", given_paths, ("0-1", "0-2", "1-2"), _TRIANGLE_INPUTS),
    Case("family_one_hot", lambda: sp.constraints.one_hot(["a", "b", "c"], ["d", "e"])),
    Case("family_regex", lambda: sp.constraints.regex("a(a|b)*", length=3, alphabet="ab")),
    Case("family_and_formula", lambda: sp.constraints.hierarchy(_TREE) & sp.parse("cat | bird | other")),
    Case("family_negated", lambda: ~sp.constraints.cardinality(names(5), at_least=2, at_most=3)),
]

CASES = HAND_WRITTEN + RANDOM + WITH_INPUTS + FAMILIES
CORE = (
    *("cat_dog_animal", "single_label_free", "single_model", "free_labels", "exactly_two_of_five", "nested_choice"),
    *("permutation_3", "random_dnf_1", "random_nested_2", "given_two", "given_may_leave_none", "given_budget"),
    *("family_hierarchy_free", "family_cardinality", "family_table", "family_nonempty_dag", "family_given_paths"),
    "family_and_formula",
)
"""One case of each kind: what is tried where all cases would take too long. The others are for `make test-all`."""
