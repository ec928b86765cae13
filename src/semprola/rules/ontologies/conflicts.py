"""Why terms of an ontology can have no instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import networkx as nx

from semprola.compiler.budget import Budget
from semprola.logic import And
from semprola.rules.listing import Rule, RuleList
from semprola.rules.questions import Questions


@dataclass(frozen=True)
class Conflict:
    """Axioms that leave a term without instances.

    Attributes:
        term: the term; no term above it is without instances.
        name: its name.
        terms: it, its equivalents, and the terms below, which have no instance for the same reason.
        because: axioms, each of which is needed for that, with their places.
    """

    term: str
    name: str
    terms: tuple[str, ...]
    because: tuple[Rule, ...]

    def __str__(self) -> str:
        more = f" and {len(self.terms) - 1} more below" if len(self.terms) > 1 else ""
        shown = self.term if self.term == self.name else f"{self.term} ({self.name})"
        return f"{shown}{more}  because of {'; '.join(map(str, self.because))}"


def conflicts(
    rules: Sequence[Rule], dead: Sequence[str], above: nx.DiGraph, names: Mapping[str, str]
) -> list[Conflict]:
    """The highest of the terms that can have no instance, and why."""
    condensed = nx.condensation(above.subgraph(dead))
    members = {node: sorted(group) for node, group in condensed.nodes(data="members")}
    by_label: dict[str, list[int]] = {}
    for number, rule in enumerate(rules):
        for label in rule.formula.labels:
            by_label.setdefault(label, []).append(number)
    found = []
    for node in sorted((node for node in condensed if not condensed.out_degree(node)), key=lambda n: members[n][0]):
        below = sorted(term for other in nx.ancestors(condensed, node) for term in members[other])
        term = members[node][0]
        because = _because(term, rules, by_label, above)
        found.append(Conflict(term, names[term], (*members[node], *below), because))
    return found


def _because(
    term: str, rules: Sequence[Rule], by_label: Mapping[str, Sequence[int]], above: nx.DiGraph
) -> tuple[Rule, ...]:
    """Axioms that together deny the term; those about the terms above it are tried before others."""
    near = {term, *nx.descendants(above, term)}
    while True:
        touched = sorted({number for label in near for number in by_label.get(label, ())})
        inside = [number for number in touched if near.issuperset(rules[number].formula.labels)]
        labels = tuple(dict.fromkeys(label for number in inside for label in rules[number].formula.labels))
        known = RuleList(tuple(rules[number] for number in inside), (), labels, And())
        asked = Questions(known, Budget(progress=False))
        literals = asked.literals({term: 1})
        if literals and not asked.has_model(asked.everything, literals):
            return tuple(rules[inside[place]] for place in asked.against(asked.everything, literals))
        near |= {label for number in touched for label in rules[number].formula.labels}
