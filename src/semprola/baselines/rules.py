"""Normal rules, in which a conjunction of literals implies a label, sorted into strata; for CCN."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from semprola.compiler.sources import formula_of
from semprola.constraints.hierarchy.family import OPTIONS, Hierarchy
from semprola.errors import PropertyError
from semprola.logic import Formula, Kind
from semprola.logic.rules import conjuncts, literal_of

_CCN = "CCN takes rules of the form 'a & !b -> c'"


@dataclass(frozen=True)
class Rule:
    """If all of `positive` are on and all of `negative` are off, then `head` is on.

    Attributes:
        positive, negative: the labels of the body.
        head: the label that is implied.
        text: the rule as the user wrote it.
    """

    positive: tuple[str, ...]
    negative: tuple[str, ...]
    head: str
    text: str


def normal_rules(source: Formula | str | Iterable[Formula | str], *, taker: str = _CCN) -> list[Rule]:
    """Read rules of the form ``a & !b -> c`` from a formula, its text, a hierarchy, or a list of these.

    Also accepted: a conjunction of rules, a conclusion that is a conjunction, an equivalence of conjunctions of labels,
    a label on its own (it is always on), and a clause with exactly one label that is not negated.

    Args:
        source: the rules.
        taker: the beginning of the error: which method takes rules, and of which form.

    Raises:
        PropertyError: if a rule has another form; the message names it.

    Example:
        >>> for rule in normal_rules("(a & !b -> c) & (!c | d)"):
        ...     print(rule.positive, rule.negative, rule.head)
        ('a',) ('b',) c
        ('c',) () d
    """
    parts: list[Any] = [source] if isinstance(source, Formula | str | os.PathLike) else list(source)
    rules: list[Rule] = []
    for part in parts:
        for conjunct in conjuncts(formula_of(part, "a layer of rules")):
            rules += [] if conjunct.kind is Kind.TRUE else _read(conjunct, taker)
    return rules


def strata(rules: Sequence[Rule], labels: Sequence[str]) -> list[list[Rule]]:
    """Rules in an order such that every label that a rule negates is settled before the rule is applied.

    The rules of a group depend only on each other and on earlier groups. A group whose labels imply each other in a
    cycle has to be repeated until nothing changes.

    Raises:
        PropertyError: if a label depends on its own negation; the message names a rule of the cycle.
    """
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(labels)
    for rule in rules:
        graph.add_edges_from((name, rule.head) for name in (*rule.positive, *rule.negative))
    part_of = {name: number for number, part in enumerate(nx.strongly_connected_components(graph)) for name in part}
    for rule in rules:
        if any(part_of[name] == part_of[rule.head] for name in rule.negative):
            raise PropertyError(
                f"the rules are not stratified: in {rule.text!r}, {rule.head!r} depends on its own negation"
            )
    parts = nx.condensation(graph)
    depth: dict[int, int] = {}
    for part in nx.topological_sort(parts):
        depth[part] = 1 + max((depth[before] for before in parts.predecessors(part)), default=-1)
    mapping = parts.graph["mapping"]
    groups: dict[int, list[Rule]] = {}
    for rule in rules:
        groups.setdefault(depth[mapping[rule.head]], []).append(rule)
    return [groups[level] for level in sorted(groups)]


def _read(formula: Formula, taker: str) -> list[Rule]:
    text = str(formula)
    if isinstance(formula, Hierarchy) and not any(getattr(formula, name) for name in OPTIONS):
        names = formula.names
        return [
            Rule((names[child],), (), names[parent], f"{names[child]} -> {names[parent]}")
            for parent, children in enumerate(formula.children_of)
            for child in children
        ]
    if formula.kind is Kind.IMPLIES:
        body, heads = _literals(formula.args[0]), _literals(formula.args[1])
        if body is not None and heads is not None and heads and all(on for _, on in heads):
            return [_rule(body, head, text) for head, _ in heads]
    elif formula.kind is Kind.IFF and len(formula.args) == 2:
        sides = [_literals(side) for side in formula.args]
        if all(side and all(on for _, on in side) for side in sides):
            left, right = (side or [] for side in sides)
            return [_rule(left, head, text) for head, _ in right] + [_rule(right, head, text) for head, _ in left]
    else:
        clause = [literal_of(part) for part in (formula.args if formula.kind is Kind.OR else (formula,))]
        known = [literal for literal in clause if literal is not None]
        heads = [literal for literal in known if literal[1]]
        if len(known) == len(clause) and len(heads) == 1:
            return [_rule([(name, not on) for name, on in known if not on], heads[0][0], text)]
    raise PropertyError(f"{taker}, but {text[:200]!r} is not one: rewrite it, or use sp.SPL, which takes any formula")


def _rule(body: Sequence[tuple[str, bool]], head: str, text: str) -> Rule:
    return Rule(tuple(n for n, on in body if on), tuple(n for n, on in body if not on), head, text)


def _literals(formula: Formula) -> list[tuple[str, bool]] | None:
    """The literals of a conjunction; None if it is another formula."""
    found = [literal_of(part) for part in conjuncts(formula) if part.kind is not Kind.TRUE]
    kept = [literal for literal in found if literal is not None]
    return kept if len(kept) == len(found) else None
