"""Random constraints as Python text: formulas over all connectives, numbers, families with every option."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Sequence
from typing import Any

import zoo

PLAIN = tuple("abcdefgh")
ODD = ("cat dog", "x=1", "Ü/ß", "not", "a|b", "1", "n>=0", "label 8")


class Draw:
    """A source of random constraints.

    Args:
        rng: decides everything.
        names: the labels to choose from.
    """

    def __init__(self, rng: random.Random, names: Sequence[str]) -> None:
        self.rng, self.names = rng, list(names)
        low = rng.randint(-1, 1)
        self.range = (low, low + rng.randint(1, 2))
        self.n, self.m = f"sp.Integer('n', {low}, {self.range[1]})", "sp.Integer('m', 0, 2)"

    # formulas ---------------------------------------------------------------------------------------------------------

    def constraint(self) -> str:
        """A formula, a family, or both."""
        chance = self.rng.random()
        if chance < 0.25:
            return self.formula(self.rng.randint(1, 3))
        if chance < 0.65:
            return self.family()
        if chance < 0.7:
            return self.dimacs()
        if chance < 0.78:
            return self.number()
        return self._joined([self.family(), self.rng.choice([self.formula, lambda _: self.family()])(1)])

    def formula(self, depth: int) -> str:
        if depth <= 0 or self.rng.random() < 0.1:
            return self.leaf()
        if self.rng.random() < 0.15:
            return self.text(depth)
        parts = [self.formula(depth - 1) for _ in range(self.rng.randint(2, 3))]
        listed = f"[{', '.join(parts)}]"
        k = self.rng.randint(0, len(parts))
        return self.rng.choice(
            [
                self._joined(parts[:2]),
                self._joined(parts[:2]),
                f"~({parts[0]})",
                f"sp.{self.rng.choice(['And', 'Or', 'Xor'])}({', '.join(parts)})",
                f"sp.{self.rng.choice(['And', 'Or', 'Xor', 'one_hot'])}({listed})",
                f"sp.{self.rng.choice(['Implies', 'Iff'])}({parts[0]}, {parts[1]})",
                f"sp.{self.rng.choice(['exactly', 'at_most', 'at_least'])}({k}, {listed})",
            ]
        )

    def leaf(self) -> str:
        chance = self.rng.random()
        if chance < 0.75:
            return f"sp.Bool({self.name()!r})"
        if chance < 0.78:
            return self.rng.choice(["sp.logic.TRUE", "sp.logic.FALSE"])
        return self.number()

    def number(self) -> str:
        """A comparison of variables with several values, or of expressions of them."""
        sign = self.rng.choice(["==", "!=", "<", "<=", ">", ">="])
        value = self.rng.randint(*self.range)
        colours = "sp.Categorical('colour', ['red', 'green', 'blue'])"
        pairs = [[self.rng.randint(*self.range), self.rng.randint(0, 2)] for _ in range(3)]
        return self.rng.choice(
            [
                f"({self.n} {sign} {value})",
                f"({self.expression()} {sign} {self.rng.randint(-1, 4)})",
                f"({self.expression()} {sign} {self.expression()})",
                f"{self.n}.isin({[v for v in range(*self.range) if self.rng.random() < 0.5]})",
                f"({colours} {self.rng.choice(['==', '!='])} 'red')",
                f"sp.constraints.all_different([{self.n}, {self.m}])",
                f"sp.constraints.table({pairs}, variables=[{self.n}, {self.m}])",
                f"sp.parse('{self.rng.randint(1, 3)} * n - m {sign} {value}', variables=[{self.n}, {self.m}])",
            ]
        )

    def expression(self) -> str:
        n, m, c = self.n, self.m, self.rng.randint(1, 3)
        return self.rng.choice(
            [
                *(
                    f"({n} + {m})",
                    f"({c} * {n} - {m})",
                    f"({c} - {m})",
                    f"abs({n} - {m})",
                    f"(({n} + {c}) // 2)",
                    f"({n} + {c})",
                ),
                *(
                    f"(({n} + {m}) % 2)",
                    f"-{m}",
                    f"sp.constraints.minimum({n}, {m})",
                    f"sp.constraints.maximum({n}, {c})",
                ),
                *(f"sp.constraints.element([3, 1, {c}], {m})", f"sp.constraints.number([{m}, {n}], base=3)"),
            ]
        )

    def text(self, depth: int) -> str:
        """The text of a formula; with lines, names of rules and comments."""
        lines = [self._text(depth) for _ in range(self.rng.choice([1, 1, 2]))]
        if len(lines) > 1 and self.rng.random() < 0.5:
            lines[1] += "  # a comment"
        return f"sp.parse({chr(10).join(lines)!r})"

    def _text(self, depth: int) -> str:
        if depth == 0:
            return self.rng.choice(["", "", "!"]) + f"'{self.name()}'"
        parts = [self._text(depth - 1) for _ in range(3)]
        if self.rng.random() < 0.15:
            return (
                f"{self.rng.choice(['exactly', 'at_most', 'at_least'])}({self.rng.randint(0, 3)}, {', '.join(parts)})"
            )
        return f"({parts[0]} {self.rng.choice(['&', '|', '^', '->', '<->'])} {parts[1]})"

    def dimacs(self) -> str:
        count = self.rng.randint(2, 6)
        chosen = [self.rng.sample(range(1, count + 1), min(count, self.rng.randint(1, 3))) for _ in range(3)]
        clauses = [" ".join(str(v * self.rng.choice([-1, 1])) for v in clause) for clause in chosen]
        text = "\n".join([f"p cnf {count} {len(clauses)}", *(f"{clause} 0" for clause in clauses)])
        return f"sp.from_dimacs({text!r})"

    def _joined(self, parts: Sequence[str]) -> str:
        return f"({parts[0]} {self.rng.choice(['&', '&', '&', '|', '^', '>>'])} {parts[1]})"

    # families ---------------------------------------------------------------------------------------------------------

    def family(self) -> str:
        """A family with random options; or an instance that the zoo lists."""
        if self.rng.random() < 0.1:
            small = [case.name for case in zoo.FAMILIES if not case.large]
            return f"zoo.case({self.rng.choice(small)!r}).formula"
        name = self.rng.choice([*sorted(FAMILIES), "hierarchy", "hierarchy", "hierarchy"])  # it has the most code
        return f"sp.constraints.{name}({', '.join(FAMILIES[name](self))})"

    def maybe(self, *options: str) -> list[str]:
        return [option for option in options if self.rng.random() < 0.4]

    def name(self) -> str:
        return self.rng.choice(self.names)

    def some(self, least: int = 1, most: int = 5) -> list[str]:
        return self.rng.sample(self.names, min(len(self.names), self.rng.randint(least, most)))

    def given_names(self, count: int) -> list[str]:
        """An option with other names for all labels, if there are enough of them."""
        return [f"labels={self.rng.sample(self.names, count)}"] if count <= len(self.names) else []

    def graph(self, *, directed: bool | None = None) -> tuple[str, list[tuple[int, int]], list[int]]:
        """Its source, edges and nodes."""
        nodes = list(range(self.rng.randint(2, 4)))
        pairs = [(u, v) for u in nodes for v in nodes if u < v]
        kind = self.rng.choice(["Graph", "DiGraph"]) if directed is None else ("DiGraph" if directed else "Graph")
        if kind == "DiGraph":
            pairs += [(v, u) for u, v in pairs]
        edges = self.rng.sample(pairs, min(len(pairs), self.rng.randint(1, 5)))
        source = f"nx.{kind}({edges})"
        known = {frozenset(e) if kind == "Graph" else e: e for e in edges}
        return source, list(known.values()), sorted({v for e in edges for v in e})


def _hierarchy(d: Draw) -> list[str]:
    names = d.some(2, 6)
    roots = d.rng.randint(1, max(1, len(names) // 2))
    pairs = [
        (names[i], p) for i in range(roots, len(names)) for p in d.rng.sample(names[:i], min(i, d.rng.randint(1, 2)))
    ]
    source: Any = pairs
    rules = d.rng.sample(["nonempty", "mandatory_leaf", "exclusive_siblings"], d.rng.choice([0, 1, 1, 1, 2, 3]))
    options = [f"{rule}=True" for rule in rules]
    form = d.rng.randrange(4)
    if form == 1:
        source = {child: [p for c, p in pairs if c == child] for child, _ in pairs}
    elif form == 2:
        source = [(parent, child) for child, parent in pairs]
        options.append("edges='parent-child'")
    elif d.rng.random() < 0.5:
        options.append("edges='child-parent'")
    used = list(dict.fromkeys(name for pair in pairs for name in pair))
    if d.rng.random() < 0.2:
        options.append(f"labels={d.rng.sample(used, len(used)) + [n for n in d.names if n not in used][:1]}")
    return [f"nx.DiGraph({source})" if form == 3 else repr(source), *options]


def _cardinality(d: Draw) -> list[str]:
    names = d.some(1, 6)
    low, high = sorted(d.rng.randint(0, len(names)) for _ in range(2))
    bounds = [f"exactly={low}"] if d.rng.random() < 0.3 else [*d.maybe(f"at_least={low}"), f"at_most={high}"]
    return [repr(names), *bounds]


def _one_hot(d: Draw) -> list[str]:
    names = d.some(1, 6)
    cut = d.rng.randint(1, len(names))
    return [repr(group) for group in (names[:cut], names[cut:]) if group]


def _table(d: Draw) -> list[str]:
    names = d.some(1, 5)
    rows = [[d.rng.randint(0, 1) for _ in names] for _ in range(d.rng.randint(1, 8))]
    return [repr(rows), f"labels={names}"]


def _linear(d: Draw) -> list[str]:
    numbers: list[Any] = [-3, -1, 0, 1, 2, 5, 0.1, 0.5, -2.5]
    sums = {name: d.rng.choice(numbers) for name in d.some(1, 6)}
    return [repr(sums), repr(d.rng.choice(["<=", ">=", "==", "<", ">", "!="])), repr(d.rng.choice(numbers))]


def _permutation(d: Draw) -> list[str]:
    n = d.rng.choice([1, 2, 2, 3])
    return [str(n), *(d.given_names(n * n) if d.rng.random() < 0.5 else [])]


def _ranking(d: Draw) -> list[str]:
    items = ["p", "q", "r"][: d.rng.randint(1, 3)]
    order = d.rng.sample(items, len(items))
    before = [pair for pair in itertools.pairwise(order) if d.rng.random() < 0.5]
    labels = d.given_names(len(items) ** 2) if len(items) < 3 and d.rng.random() < 0.5 else []
    return [repr(items), *d.maybe(f"before={before}", "ties=True"), *labels]


def _simple_paths(d: Draw) -> list[str]:
    graph, edges, nodes = d.graph()
    lengths = d.maybe(f"min_length={d.rng.randint(1, 2)}", f"max_length={d.rng.randint(2, 4)}")
    present = d.rng.choice(["True", "False", repr(d.rng.sample(edges, 1))])
    extra = d.maybe(f"given_edges={present}", f"order={d.rng.sample(edges, len(edges))}", *d.given_names(len(edges)))
    source, target = d.rng.sample(nodes, 2)
    ends = [f"endpoints={d.rng.choice(['any', 'given', 'labels'])!r}"]
    return [graph, *d.rng.choice([ends, [f"source={source}", f"target={target}"]]), *lengths, *extra]


def _cycles(d: Draw) -> list[str]:
    graph, edges, _ = d.graph()
    lengths = d.maybe(f"min_length={d.rng.randint(1, 3)}", f"max_length={d.rng.randint(3, 5)}")
    return [graph, *lengths, *d.maybe(f"order={d.rng.sample(edges, len(edges))}", *d.given_names(len(edges)))]


def _edge_sets(d: Draw) -> list[str]:
    graph, edges, _ = d.graph(directed=False)
    return [graph, *d.maybe(*d.given_names(len(edges)))]


def _regex(d: Draw) -> list[str]:
    pattern = d.rng.choice(["a*b+", "a(a|b)*", "(ab|ba)*a?", "a|b&a", "(a|b)*&.a.*", "b{1,2}a*", "[ab]*a", "a.?|b*"])
    length = d.rng.randint(1, 3)
    encoding = d.rng.choice(["one-hot", "binary"])
    size = length * (2 if encoding == "one-hot" else 1)
    return [
        *(repr(pattern), f"length={length}", "alphabet='ab'"),
        *d.maybe(f"encoding={encoding!r}"),
        *(d.given_names(size) if d.rng.random() < 0.2 and encoding == "one-hot" else []),
    ]


def _automaton(d: Draw) -> list[str]:
    symbols = ["u", "v", "w"][: d.rng.randint(2, 3)]
    rows = {s: {a: d.rng.choice([{0}, {1}, {0, 1}]) for a in symbols if d.rng.random() < 0.8} for s in (0, 1)}
    rows[0].setdefault("u", {1})
    encoding = d.rng.choice(["one-hot", "binary"])
    length, final = d.rng.randint(1, 3), {d.rng.randint(0, 1)}
    bits = len(symbols) if encoding == "one-hot" else (len(symbols) - 1).bit_length()
    options = [f"length={length}", f"alphabet={symbols}", f"encoding={encoding!r}"]
    return [f"Machine({rows}, 0, {final})", *options, *(d.given_names(length * bits) if d.rng.random() < 0.3 else [])]


FAMILIES: dict[str, Callable[[Draw], list[str]]] = {
    "automaton": _automaton,
    "cardinality": _cardinality,
    "cycles": _cycles,
    "hierarchy": _hierarchy,
    "linear": _linear,
    "matchings": lambda d: _edge_sets(d) + d.maybe("perfect=True"),
    "one_hot": _one_hot,
    "permutation": _permutation,
    "ranking": _ranking,
    "regex": _regex,
    "simple_paths": _simple_paths,
    "spanning_trees": _edge_sets,
    "table": _table,
}
"""Arguments of the constructors of families; `test_fuzz.py` sees that each option of each family is drawn."""
