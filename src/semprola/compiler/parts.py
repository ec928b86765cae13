"""Takes a constraint apart: families and counts are built here without a compiler, the rest is grouped by variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from networkx.utils import UnionFind

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.circuit.builder import watched
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.errors import UnsatisfiableError
from semprola.logic import Cnf, Formula, Kind, Leaf, one_hot
from semprola.logic.rewrite import simplify
from semprola.logic.rules import literal_of, literals_of


@dataclass
class Parts:
    """A conjunction taken apart: no two facts, circuits or components share a variable."""

    facts: dict[str, bool] = field(default_factory=dict)
    circuits: list[Circuit] = field(default_factory=list)
    components: list[list[Formula]] = field(default_factory=list)


def conjuncts_of(formula: Formula, check: Callable[[], None] | None = None) -> list[Formula]:
    """Formulas whose conjunction is the formula: conjunctions, negated disjunctions and clause lists are taken apart.

    `check` is called from time to time and may raise an exception to stop.
    """
    found: dict[Formula, None] = {}
    seen: set[tuple[Formula, bool]] = set()
    stack = [(formula, True)]
    while stack:
        item = stack.pop()
        if item in seen:
            continue
        seen.add(item)
        node, positive = item
        if node.kind is Kind.NOT:
            stack.append((node.args[0], not positive))
        elif node.kind is (Kind.AND if positive else Kind.OR):
            stack.extend((arg, positive) for arg in reversed(node.args))
        elif node.kind is Kind.IMPLIES and not positive:
            stack.extend([(node.args[1], False), (node.args[0], True)])
        elif isinstance(node, Cnf) and positive:
            clauses = [(clause, True) for clause in watched(node.clause_formulas(), check)]
            stack.extend(reversed(clauses))
        elif node.kind is (Kind.TRUE if positive else Kind.FALSE):
            continue
        elif node.kind is (Kind.FALSE if positive else Kind.TRUE):
            raise UnsatisfiableError("the constraint has no model")
        else:
            found[node if positive else ~node] = None
    return list(found)


def split(conjuncts: Sequence[Formula], budget: Budget, direct: bool) -> Parts:
    """Group conjuncts that share variables, and build the groups that need no compiler.

    Args:
        direct: whether to build not only families here, but also other parts that the chosen back end could compile.
    """
    parts = Parts()
    check = budget.checker("grouping the rules")
    pending = _groups(conjuncts, check)[::-1]
    while pending:
        group = pending.pop()
        values = [(conjunct, literal_of(conjunct)) for conjunct in group]
        facts = dict(value for _, value in values if value is not None)
        others = [conjunct for conjunct, value in values if value is None]
        if len(facts) + len(others) < len(group):
            raise UnsatisfiableError("the constraint has no model: a label would have to be both on and off")
        others = _without_implied(others)
        circuit = _direct(others[0], budget, direct) if len(others) == 1 and (direct or not facts) else None
        if not others:
            parts.facts |= facts
        elif circuit is not None:
            # a family with some labels fixed needs no compiler: condition its own circuit
            parts.circuits.append(circuit.condition(facts) if facts else circuit)
            parts.facts |= {name: value for name, value in facts.items() if name in circuit.given}
        elif (spelled := _spelled_out(group)) is not None:
            pending.extend(_groups(spelled, check)[::-1])
        else:
            parts.components.append(group)
    return parts


def _without_implied(conjuncts: list[Formula]) -> list[Formula]:
    """Without "exactly one value" of variables, if the only other conjunct is a family that implies it."""
    leaves = [conjunct for conjunct in conjuncts if isinstance(conjunct, Leaf) and conjunct.whole]
    if len(leaves) != 1:
        return conjuncts
    implied = {one_hot(group) for group in leaves[0].whole}
    others = [conjunct for conjunct in conjuncts if conjunct not in implied]
    return others if others == leaves else conjuncts


def _spelled_out(group: Sequence[Formula]) -> list[Formula] | None:
    """A group with its families written as formulas, which are compiled with the others; None if none can be."""
    rules: dict[Formula, tuple[Formula, ...] | None] = {
        conjunct: conjunct.as_rules() for conjunct in group if isinstance(conjunct, Leaf)
    }
    if all(spelled is None for spelled in rules.values()):
        return None
    found: dict[Formula, None] = {}
    for conjunct in group:
        spelled = rules.get(conjunct)
        parts = [conjunct] if spelled is None else [part for rule in spelled for part in conjuncts_of(simplify(rule))]
        found.update(dict.fromkeys(parts))
    return list(found)


def _groups(conjuncts: Sequence[Formula], check: Callable[[], None]) -> list[list[Formula]]:
    sets = UnionFind()
    for conjunct in watched(conjuncts, check):
        sets.union(*conjunct.labels)
    groups: dict[str, list[Formula]] = {}
    for conjunct in watched(conjuncts, check):
        groups.setdefault(sets[conjunct.labels[0]], []).append(conjunct)
    return list(groups.values())


def _direct(formula: Formula, budget: Budget, direct: bool) -> Circuit | None:
    """The circuit of a formula that has a direct construction; None for any other."""
    if isinstance(formula, Leaf) and not isinstance(formula, Cnf):
        circuit = leaf_circuit(formula, budget)
        if circuit is None:
            raise UnsatisfiableError(f"the constraint has no model: {formula.describe()} cannot hold")
        return circuit
    counted = counted_literals(formula) if direct else None
    return None if counted is None else counting_circuit(*counted, *formula.bounds, budget)


def leaf_circuit(leaf: Leaf, budget: Budget) -> Circuit | None:
    """The circuit of a family; None if it has no model."""
    try:
        circuit = leaf.circuit_within(budget)
    except UnsatisfiableError:
        return None
    if not isinstance(circuit, Circuit) or set(circuit.variables) != set(leaf.labels):
        raise TypeError(f"{type(leaf).__name__}.to_circuit() must return a Circuit over the leaf's own labels")
    return circuit


def leaf_circuits(conjuncts: Iterable[Formula], budget: Budget) -> dict[Formula, Circuit | None]:
    """The circuit of every family inside these formulas; None for a family without a model."""
    circuits: dict[Formula, Circuit | None] = {}
    for conjunct in conjuncts:
        for node in conjunct.nodes():
            if isinstance(node, Leaf) and not isinstance(node, Cnf) and node not in circuits:
                circuits[node] = leaf_circuit(node, budget)
    return circuits


def counted_literals(formula: Formula) -> tuple[tuple[str, ...], tuple[bool, ...]] | None:
    """The labels and signs that a formula counts; None if it does not count literals of distinct labels."""
    found = literals_of(formula.args) if formula.kind is Kind.CARDINALITY else None
    return None if found is None else (tuple(found), tuple(found.values()))


def counting_circuit(names: Sequence[str], signs: Sequence[bool], lo: int, hi: int, budget: Budget) -> Circuit:
    """The circuit of "between lo and hi of these literals hold": one flat sum for one of n labels, or else a diagram.

    Example:
        >>> counting_circuit(["a", "b", "c"], [True] * 3, 1, 2, Budget()).model_count()
        6
    """
    count = len(names)
    if lo == 1 == hi and all(signs):
        builder = CircuitBuilder(names)
        root = builder.sum(builder.literal(v, True) for v in range(count))
        vtree = Vtree.right_linear(range(count))
        check = budget.checker("counting", count)
        return builder.build(root, zero_suppressed=[True] * count, vtree=vtree, check=check)
    # A literal that does not hold costs nothing. It should be free if there is only a lower bound (once that is met,
    # the rest is free), and suppressed otherwise (once an upper bound is reached, the rest is off).
    most = lo if hi >= count else hi + 1

    def add(seen: int, place: int, value: int) -> int | None:
        seen = min(seen + (value == signs[place]), most)
        return seen if seen <= hi and seen + count - place - 1 >= lo else None

    return decision_diagram(
        names,
        0,
        add,
        lambda seen: lo <= seen <= hi,
        zero_suppressed=hi < count and all(signs),
        budget=budget.part("the count", "count fewer labels"),
    )
