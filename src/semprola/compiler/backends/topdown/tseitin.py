"""Any constraint as clauses, with auxiliary variables where there would be too many plain clauses.

A part that is a clause, or a handful of them, is written as such. Everything else is named: an auxiliary variable is
made equivalent to a part. The labels determine its value in every model, so it can be projected out again without
changing a count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod

from semprola.circuit import Circuit
from semprola.circuit.fold import fold
from semprola.circuit.transforms import smooth
from semprola.compiler.budget import Budget
from semprola.logic import Cnf, Formula, Kind, Leaf

_MOST_CLAUSES = 12
"""A part with more clauses than this gets a name, so that the parts above do not multiply them."""
_MOST_LITERALS = 4096
_MOST_SUBSETS = 600
"""A counting constraint that needs no more clauses than this without auxiliary variables gets none."""
_CHECK_EVERY = 4096

_TRUE = 1 << 40
"""The literal that always holds; its negation never does. Neither appears in a clause."""

Clause = tuple[int, ...]
Clauses = tuple[Clause, ...]
_Goal = tuple[Formula, bool]


@dataclass(frozen=True)
class Encoding:
    """Clauses over the variables 1 … num_vars.

    Attributes:
        names: the labels; they are the first variables, in this order.
        num_vars: the number of variables, including auxiliary ones.
        clauses: DIMACS literals.
    """

    names: tuple[str, ...]
    num_vars: int
    clauses: list[Clause]

    @property
    def auxiliary(self) -> range:
        """The variables that are not labels; the labels determine them in every model."""
        return range(len(self.names) + 1, self.num_vars + 1)


def encode_clauses(
    conjuncts: Sequence[Formula],
    circuits: Mapping[Formula, Circuit | None] | None = None,
    budget: Budget | None = None,
) -> Encoding:
    """Clauses with the same models as a conjunction, once auxiliary variables are projected out.

    Args:
        circuits: the circuit of every family inside them; None for a family without a model.
    """
    names = tuple(dict.fromkeys(name for conjunct in conjuncts for name in conjunct.labels))
    encoder = _Encoder(names, circuits or {}, budget or Budget())
    for conjunct in conjuncts:
        encoder.require(conjunct)
    return Encoding(names, encoder.num_vars, encoder.clauses)


def encode_apart(
    rules: Sequence[Formula], circuits: Mapping[Formula, Circuit | None], budget: Budget
) -> tuple[Encoding, list[list[Clause]]]:
    """Definitions that all rules share and that always have a model, and the clauses that assert each rule."""
    names = tuple(dict.fromkeys(name for rule in rules for name in rule.labels))
    encoder = _Encoder(names, circuits, budget)
    asserted = [encoder.assertion(rule) for rule in rules]
    return Encoding(names, encoder.num_vars, encoder.clauses), asserted


class _Encoder:
    """Writes formulas and their negations as small sets of clauses: no recursion, and each part once per sign."""

    def __init__(self, names: Sequence[str], circuits: Mapping[Formula, Circuit | None], budget: Budget) -> None:
        self.index = {name: v for v, name in enumerate(names, start=1)}
        self.circuits, self.budget = circuits, budget
        self.num_vars = len(names)
        self.clauses: list[Clause] = []
        self._known: dict[_Goal, Clauses] = {}
        self._named: dict[object, int] = {}
        self._steps = 0

    def require(self, formula: Formula) -> None:
        """Add clauses that make a formula hold."""
        self.clauses.extend(self.assertion(formula))

    def assertion(self, formula: Formula) -> list[Clause]:
        """Clauses that make a formula hold; only the definitions of the names in them are added."""
        if isinstance(formula, Cnf):
            listed = (_clause(map(self._renumbered, literals)) for literals in formula.clauses)
            return [clause for clause in listed if clause is not None]
        plain = self._plain(formula)
        if plain is not None:
            clause = _clause(plain)
            return [] if clause is None else [clause]
        short = formula.as_clauses() if isinstance(formula, Leaf) else None
        if short is not None:
            own = [self.index[name] for name in formula.labels]
            return [tuple(own[v - 1] if v > 0 else -own[-v - 1] for v in literals) for literals in short]
        if formula.kind is Kind.CARDINALITY:
            plain = self._literals([(arg, True) for arg in formula.args])
            if plain is None:
                self._settle([(arg, True) for arg in formula.args])
                plain = [self._literal(self._known[arg, True]) for arg in formula.args]
            found = self._count(plain, *formula.bounds, _MOST_SUBSETS)
        else:
            self._settle(self._parts(formula, True))
            found = self._combine(formula, True)
        return [clause for literals in found if (clause := _clause(literals)) is not None]

    def _plain(self, formula: Formula) -> list[int] | None:
        """The literals of a formula that is a clause as it stands, like most rules; None if it is not."""
        if formula.kind is Kind.OR:
            parts = [(arg, True) for arg in formula.args]
        elif formula.kind is Kind.IMPLIES:
            parts = [(formula.args[0], False), (formula.args[1], True)]
        else:
            return None
        return self._literals(parts)

    def _literals(self, parts: Iterable[_Goal]) -> list[int] | None:
        """Formulas with signs as literals of labels; None if one is more than a literal."""
        literals = []
        for part, sign in parts:
            if part.kind is Kind.NOT:
                part, sign = part.args[0], not sign
            if part.kind is not Kind.ATOM:
                return None
            literals.append(self.index[part.name] if sign else -self.index[part.name])
        return literals

    # one part at a time ---------------------------------------------------------------------------------------------

    def _settle(self, goals: Iterable[_Goal]) -> None:
        stack = list(goals)
        while stack:
            goal = stack[-1]
            if goal in self._known:
                stack.pop()
                continue
            opposite = self._known.get((goal[0], not goal[1]))
            if opposite is not None and len(opposite) == 1 and len(opposite[0]) == 1:
                self._known[goal] = ((-opposite[0][0],),)
                continue
            missing = [part for part in self._parts(*goal) if part not in self._known]
            if missing:
                stack.extend(reversed(missing))
                continue
            self._known[goal] = self._capped(self._combine(*goal))
            self._tick()

    def _parts(self, node: Formula, positive: bool) -> list[_Goal]:
        if node.kind is Kind.NOT:
            return [(node.args[0], not positive)]
        if node.kind in (Kind.AND, Kind.OR):
            return [(arg, positive) for arg in node.args]
        if node.kind is Kind.IMPLIES:
            return [(node.args[0], not positive), (node.args[1], positive)]
        if node.kind is Kind.IFF:
            return [(arg, sign) for arg in node.args for sign in (True, False)]
        return [(arg, True) for arg in node.args]

    def _combine(self, node: Formula, positive: bool) -> Clauses:
        kind = node.kind
        if kind in (Kind.TRUE, Kind.FALSE):
            return () if (kind is Kind.TRUE) == positive else ((),)
        if kind is Kind.ATOM:
            variable = self.index[node.name]
            return ((variable if positive else -variable,),)
        if kind is Kind.CUSTOM:
            literal = self._leaf(node)
            return _unit(literal if positive else -literal)
        parts = [self._known[part] for part in self._parts(node, positive)]
        if kind is Kind.NOT:
            return parts[0]
        if kind in (Kind.AND, Kind.OR, Kind.IMPLIES):
            return _union(parts) if (kind is Kind.AND) == positive else self._either(parts)
        if kind is Kind.IFF:
            left, not_left, right, not_right = parts
            if positive:
                return _union([self._either([not_left, right]), self._either([left, not_right])])
            return _union([self._either([left, right]), self._either([not_left, not_right])])
        literals = [self._literal(part) for part in parts]
        if kind is Kind.XOR:
            return self._parity(literals, positive)
        found = self._count(literals, *node.bounds, _MOST_CLAUSES)
        return found if positive else _unit(-self._literal(found))

    def _either(self, parts: Sequence[Clauses]) -> Clauses:
        """At least one of several parts: all unions of one clause from each; parts with too many clauses get a name."""
        sizes = [len(part) for part in parts]
        if 0 in sizes:
            return ()
        choices = list(parts)
        for place in sorted(range(len(parts)), key=sizes.__getitem__, reverse=True):
            if sizes[place] == 1 or prod(min(size, 64) for size in sizes if size > 1) <= _MOST_CLAUSES:
                break
            choices[place] = _unit(self._literal(parts[place]))
            sizes[place] = 1
        joined = (_clause(literal for part in pick for literal in part) for pick in product(*choices))
        return tuple(dict.fromkeys(clause for clause in joined if clause is not None))

    def _parity(self, literals: Sequence[int], odd: bool) -> Clauses:
        """An odd (or even) number of literals hold: three at a time get a new name, the last few become clauses."""
        rest = [literal for literal in literals if abs(literal) != _TRUE]
        odd ^= sum(literal == _TRUE for literal in literals) % 2 == 1
        while len(rest) > 4:
            groups = [rest[i : i + 3] for i in range(0, len(rest), 3)]
            rest = [
                literal for group in groups for literal in ([self._parity_name(group)] if len(group) > 2 else group)
            ]
            self._tick(len(rest))
        return _parity(rest, odd)

    def _parity_name(self, literals: Sequence[int]) -> int:
        return self._equivalent(("xor", *literals), lambda name: _parity([name, *literals], False))

    def _count(self, literals: Sequence[int], lo: int, hi: int, most: int) -> Clauses:
        """Between lo and hi literals hold: clauses over subsets if there are few, otherwise one name per count."""
        certain = sum(literal == _TRUE for literal in literals)
        rest = [literal for literal in literals if abs(literal) != _TRUE]
        lo, hi = lo - certain, min(hi - certain, len(rest))
        if lo > hi or hi < 0:
            return ((),)
        needed = (comb(len(rest), hi + 1) if hi < len(rest) else 0) + (
            comb(len(rest), len(rest) - lo + 1) if lo > 0 else 0
        )
        if needed <= most:
            above = combinations([-literal for literal in rest], hi + 1) if hi < len(rest) else ()
            below = combinations(rest, len(rest) - lo + 1) if lo > 0 else ()
            found = [_clause(subset) for subset in (*above, *below)]
            return tuple(clause for clause in found if clause is not None)
        # states[k]: the rest fits if k of the literals before it hold; beyond `last` nothing changes
        last = hi + 1 if hi < len(rest) else lo
        states = [_TRUE if lo <= k <= hi else -_TRUE for k in range(last + 1)]
        for place in range(len(rest) - 1, -1, -1):
            before = range(min(place, last) + 1)
            states = [self._choice(rest[place], states[min(k + 1, last)], states[k]) for k in before]
            self._tick(len(states))
        return _unit(states[0])

    def _leaf(self, leaf: Formula) -> int:
        if isinstance(leaf, Cnf):
            clauses = (_clause(map(self._renumbered, clause)) for clause in leaf.clauses)
            return self._literal(tuple(clause for clause in clauses if clause is not None))
        circuit = self.circuits[leaf]
        if circuit is None:
            return -_TRUE
        if circuit.zero_suppressed.any():
            circuit = smooth(circuit, circuit.zero_suppressed)
        variables = [self.index[name] for name in circuit.variables]

        def literal(signed: int) -> int:
            variable = variables[abs(signed) - 1]
            return variable if signed > 0 else -variable

        def named(_: int, parts: list[int]) -> int:
            self._tick()
            return self._all(parts)

        def either(_: int, parts: list[int]) -> int:
            self._tick()
            return -self._all([-part for part in parts])

        return fold(circuit, literal, named, either)

    # names ----------------------------------------------------------------------------------------------------------

    def _literal(self, clauses: Clauses) -> int:
        """A literal equivalent to a set of clauses."""
        return self._all([-self._all([-literal for literal in clause]) for clause in clauses])

    def _all(self, literals: Iterable[int]) -> int:
        """A literal equivalent to a conjunction of literals."""
        distinct = {literal for literal in literals if literal != _TRUE}
        if -_TRUE in distinct or any(-literal in distinct for literal in distinct):
            return -_TRUE
        parts = sorted(distinct)
        if len(parts) < 2:
            return parts[0] if parts else _TRUE
        return self._equivalent(
            tuple(parts), lambda name: [*((-name, part) for part in parts), (name, *(-part for part in parts))]
        )

    def _choice(self, test: int, yes: int, no: int) -> int:
        """A literal equivalent to "if test then yes else no"."""
        if yes == no:
            return yes
        if _TRUE in (abs(yes), abs(no)):
            if abs(yes) == _TRUE:
                return -self._all([-test, -no]) if yes > 0 else self._all([-test, no])
            return -self._all([test, -yes]) if no > 0 else self._all([test, yes])
        return self._equivalent(
            ("if", test, yes, no),
            lambda name: [
                (-test, -yes, name),
                (-test, yes, -name),
                (test, -no, name),
                (test, no, -name),
                # these follow from the others, but unit propagation does not find them
                (-yes, -no, name),
                (yes, no, -name),
            ],
        )

    def _equivalent(self, key: object, definition: Callable[[int], Iterable[Clause]]) -> int:
        name = self._named.get(key)
        if name is None:
            self.num_vars += 1
            name = self._named[key] = self.num_vars
            for clause in definition(name):
                self._add(clause)
        return name

    def _add(self, literals: Iterable[int]) -> None:
        clause = _clause(literals)
        if clause is not None:
            self.clauses.append(clause)

    def _capped(self, clauses: Clauses) -> Clauses:
        if len(clauses) <= _MOST_CLAUSES and sum(map(len, clauses)) <= _MOST_LITERALS:
            return clauses
        return _unit(self._literal(clauses))

    def _renumbered(self, literal: int) -> int:
        variable = self.index[str(abs(literal))]
        return variable if literal > 0 else -variable

    def _tick(self, steps: int = 1) -> None:
        self._steps += steps
        if self._steps >= _CHECK_EVERY:
            self._steps = 0
            self.budget.check("writing clauses", 0)


def _unit(literal: int) -> Clauses:
    if abs(literal) == _TRUE:
        return () if literal > 0 else ((),)
    return ((literal,),)


def _union(parts: Sequence[Clauses]) -> Clauses:
    return tuple(dict.fromkeys(clause for part in parts for clause in part))


def _clause(literals: Iterable[int]) -> Clause | None:
    """A clause without repetitions or literals that never hold; None if it always holds."""
    kept = dict.fromkeys(literal for literal in literals if literal != -_TRUE)
    if _TRUE in kept or any(-literal in kept for literal in kept):
        return None
    return tuple(kept)


def _parity(literals: Sequence[int], odd: bool) -> Clauses:
    """The clauses that forbid every assignment of the wrong parity."""
    clauses = []
    for signs in product((1, -1), repeat=len(literals)):
        if (sum(sign < 0 for sign in signs) % 2 == 1) != odd:
            clauses.append(_clause(sign * literal for sign, literal in zip(signs, literals, strict=True)))
    return tuple(clause for clause in clauses if clause is not None)
