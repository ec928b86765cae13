"""What an ontology says about its terms, in propositional logic."""

from __future__ import annotations

import difflib
import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import networkx as nx

from semprola.compiler.backends.topdown.backend import assertions
from semprola.compiler.budget import Budget
from semprola.constraints import hierarchy
from semprola.errors import LabelError
from semprola.logic import And, Bool, Formula, Iff, Or
from semprola.logic.messages import brief
from semprola.logic.rules import placed
from semprola.rules.listing import Rule, RuleList, listed
from semprola.rules.ontologies.conflicts import Conflict, conflicts
from semprola.rules.ontologies.projection import Clause, projected
from semprola.rules.solving import new_solver

By = Literal["id", "name"]


@dataclass(frozen=True)
class Axiom:
    """A statement about terms.

    Attributes:
        formula: over the ids of the terms.
        place: where it is in the file.
    """

    formula: Formula
    place: str


@dataclass(frozen=True)
class Ontology:
    """The terms of an ontology and what it says about them, as far as that is propositional. ``print`` shows a summary.

    A row is about one thing: a label is 1 if the thing is an instance of the term. Subclass axioms are implications.

    Attributes:
        source: the name of the file.
        terms: the name of each term, by id.
        axioms: the statements.
        left_out: statements that are not propositional or not followed, by kind, and how many there are.
        obsolete: the ids of obsolete terms, which are not among the terms, and what replaces each ("" if nothing does).
    """

    source: str
    terms: Mapping[str, str]
    axioms: Sequence[Axiom]
    left_out: Counter[str] = field(default_factory=Counter)
    obsolete: Mapping[str, str] = field(default_factory=dict)

    @functools.cached_property
    def equivalent(self) -> list[list[str]]:
        """Groups of terms that imply each other: they are declared equivalent, or on a cycle of subclasses."""
        graph = _implications(self._clauses)
        groups = [sorted(group) for group in nx.strongly_connected_components(graph) if len(group) > 1]
        return sorted([self._ids[v] for v in group] for group in groups)

    @functools.cached_property
    def dead(self) -> list[str]:
        """Terms that can have no instance: the axioms about them contradict each other."""
        clauses = self._clauses
        # only what is more than a hierarchy of terms can make a term impossible
        special = {abs(v) for c in clauses if not _is_edge(c) for v in c}
        graph = _implications(clauses)
        if not special:
            return []
        below = set(special)
        for variable in special & set(graph):
            below |= nx.ancestors(graph, variable)
        solver = new_solver(
            max([len(self._ids), *(abs(v) for c in clauses for v in c)]), map(sorted, clauses), Budget(progress=False)
        )
        return [self._ids[v] for v in sorted(below) if v in self._ids and not solver.solve([v])]

    @functools.cached_property
    def conflicts(self) -> list[Conflict]:
        """Why terms can have no instance: the highest such terms, and axioms that are to blame, with their places."""
        if not self.dead:
            return []
        graph = nx.relabel_nodes(_implications(self._clauses), self._ids)
        graph.add_nodes_from(self.dead)
        rules = [Rule(str(axiom.formula), axiom.place, axiom.formula) for axiom in self.axioms]
        return conflicts(rules, self.dead, graph, self.terms)

    def rules(self, terms: Iterable[str] | None = None, by: By = "id") -> Formula:
        """The rules over terms, as a hierarchy and what is said beside it.

        Args:
            terms: the terms to speak about, by id or name; all by default. What they imply for each other through terms
                that are left out is kept.
            by: whether labels are the ids or the names of terms.

        Raises:
            LabelError: a term is unknown or obsolete, or two terms have the same name.
            TypeError: terms is a text.
        """
        if isinstance(terms, str):
            raise TypeError(f"terms must be a list of terms, not {terms!r:.60}")
        chosen = list(self.terms) if terms is None else [self.id_of(term) for term in terms]
        label = self._labels(chosen, by)
        number = {term: v for v, term in self._ids.items()}
        kept = [number[term] for term in dict.fromkeys(chosen)]
        clauses = self._clauses if terms is None else projected(self._clauses, kept, Budget(progress=False))
        names = {v: label[self._ids[v]] for v in kept}
        if terms is None and any(abs(v) not in names for clause in clauses for v in clause):
            return And(_renamed(axiom.formula, label) for axiom in self.axioms)
        return _as_rules(clauses, names)

    def listed(self, by: By = "id") -> RuleList:
        """All axioms as a list of rules with their places, for reports."""
        label = self._labels(self.terms, by)
        return listed([placed(_renamed(axiom.formula, label), axiom.place) for axiom in self.axioms])

    def id_of(self, term: str) -> str:
        """The id of a term, from its id or its name.

        Raises:
            LabelError: the term is unknown or obsolete, or several have this name.
        """
        if term in self.terms:
            return term
        if term in self.obsolete:
            instead = self.obsolete[term]
            raise LabelError(f"{self.source}: {term!r} is obsolete" + (f": use {instead!r}" if instead else ""))
        found = self._by_name.get(term, ())
        if not found:
            close = difflib.get_close_matches(str(term), [*self._by_name, *self.terms], 1)
            hint = f": did you mean {close[0]!r}?" if close else ""
            raise LabelError(f"{self.source}: there is no term {brief(term)}{hint}")
        if len(found) > 1:
            raise LabelError(
                f"{self.source}: {len(found)} terms are named {term!r} ({', '.join(found[:3])}): use an id"
            )
        return found[0]

    def __str__(self) -> str:
        lines = [f"{self.source}: {len(self.terms):,} terms, {len(self.axioms):,} axioms"]
        if self.left_out:
            what = ", ".join(f"{kind} ({count:,})" for kind, count in self.left_out.most_common())
            lines.append(f"not propositional or not followed: {what}")
        if self.obsolete:
            lines.append(f"obsolete terms: {len(self.obsolete):,}")
        if self.equivalent:
            lines += [
                "terms that imply each other:",
                *(f"  {' = '.join(map(self._shown, g))}" for g in self.equivalent),
            ]
        if self.dead:
            lines += ["terms that can have no instance:", *(f"  {conflict}" for conflict in self.conflicts)]
        return "\n".join(lines)

    def _shown(self, term: str) -> str:
        return f"{term} ({self.terms[term]})" if self.terms[term] != term else term

    def _labels(self, terms: Iterable[str], by: By) -> dict[str, str]:
        if by not in ("id", "name"):
            raise ValueError(f'by must be "id" or "name", not {by!r}')
        label = {term: term if by == "id" else self.terms[term] for term in terms}
        twice = [name for name, count in Counter(label.values()).items() if count > 1]
        if twice:
            raise LabelError(f"{self.source}: several terms are named {twice[0]!r}: use by='id'")
        return label

    @functools.cached_property
    def _by_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for term, name in self.terms.items():
            found.setdefault(name, []).append(term)
        return found

    @functools.cached_property
    def _encoded(self) -> tuple[dict[int, str], set[Clause]]:
        """The terms by variable; all clauses, which may also speak about further variables that stand for parts."""
        encoding, asserted = assertions([axiom.formula for axiom in self.axioms], Budget(progress=False))
        ids = dict(enumerate(encoding.names, start=1))
        mentioned = set(encoding.names)
        further = [term for term in self.terms if term not in mentioned]
        ids |= dict(enumerate(further, start=encoding.num_vars + 1))
        return ids, {frozenset(c) for c in (*encoding.clauses, *(c for clauses in asserted for c in clauses))}

    @property
    def _ids(self) -> dict[int, str]:
        return self._encoded[0]

    @property
    def _clauses(self) -> set[Clause]:
        return self._encoded[1]


def _renamed(formula: Formula, label: Mapping[str, str]) -> Formula:
    return formula.substitute({term: Bool(label[term]) for term in formula.labels})


def _is_edge(clause: Clause) -> bool:
    return len(clause) == 2 and sum(v > 0 for v in clause) == 1


def _implications(clauses: Iterable[Clause]) -> nx.DiGraph:
    """The graph of implications between variables, from child to parent."""
    return nx.DiGraph((-min(clause), max(clause)) for clause in clauses if _is_edge(clause))


def _as_rules(clauses: set[Clause], names: Mapping[int, str]) -> Formula:
    """Clauses as a hierarchy without needless edges, equivalences, and clauses that the hierarchy does not imply."""
    graph = _implications(clauses)
    graph.add_nodes_from(names)
    condensed = nx.condensation(graph)
    groups = {node: sorted(members) for node, members in condensed.nodes(data="members")}
    first = {node: members[0] for node, members in groups.items()}
    reduced = nx.transitive_reduction(condensed)
    pairs = [(names[first[child]], names[first[parent]]) for child, parent in reduced.edges]
    labels = [names[v] for v in names]
    same = [Iff(Bool(names[v]), Bool(names[m[0]])) for m in groups.values() for v in m[1:]]
    same_as = {v: first[n] for n, members in groups.items() for v in members}
    others = {frozenset(same_as[v] if v > 0 else -same_as[-v] for v in c) for c in clauses if not _is_edge(c)}
    above = {first[n]: {first[m] for m in reduced.successors(n)} for n in reduced}
    stated = [
        Or([Bool(names[v]) if v > 0 else ~Bool(names[-v]) for v in sorted(clause, key=abs)])
        if any(v > 0 for v in clause) or len(clause) != 2
        else ~(And([Bool(names[-v]) for v in sorted(clause, key=abs)]))
        for clause in sorted(others, key=sorted)
        if not _is_implied(clause, others, above)
    ]
    return And([hierarchy(pairs, labels=labels, edges="child-parent"), *same, *stated])


def _is_implied(clause: Clause, others: set[Clause], above: Mapping[int, set[int]]) -> bool:
    """Whether a clause follows from the hierarchy and one with a parent in place of a label."""
    return any(
        (clause - {v}) | {-parent} in others and (clause - {v}) | {-parent} != clause
        for v in clause
        if v < 0
        for parent in above[-v]
    )
