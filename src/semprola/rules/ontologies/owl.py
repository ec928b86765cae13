"""OWL ontologies: the part that is propositional, and a count of the rest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from semprola.errors import FormatError
from semprola.logic import FALSE, TRUE, And, Bool, Formula, Iff, Kind, Or, at_most
from semprola.rules.ontologies.graphs import name_of, read_graph, short_ids
from semprola.rules.ontologies.ontology import Axiom, Ontology

_OWL, _RDFS = "http://www.w3.org/2002/07/owl#", "http://www.w3.org/2000/01/rdf-schema#"
_RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
_RESTRICTIONS = (
    "someValuesFrom", "allValuesFrom", "hasValue", "hasSelf", "minCardinality", "maxCardinality", "cardinality",
    "minQualifiedCardinality", "maxQualifiedCardinality", "qualifiedCardinality", "oneOf", "onDatatype",
)  # fmt: skip
_OTHER_AXIOMS = (
    "inverseOf", "propertyChainAxiom", "equivalentProperty", "propertyDisjointWith", "hasKey", "sameAs",
    "differentFrom",
)  # fmt: skip
_OTHER_TYPES = (
    "TransitiveProperty", "SymmetricProperty", "AsymmetricProperty", "ReflexiveProperty", "IrreflexiveProperty",
    "FunctionalProperty", "InverseFunctionalProperty", "AllDifferent", "AllDisjointProperties",
    "NegativePropertyAssertion", "NamedIndividual",
)  # fmt: skip


def read_owl(path: str | os.PathLike[str]) -> Ontology:
    """The classes and axioms of an OWL file, see :func:`semprola.rules.from_owl`."""
    try:
        return _Reader(Path(path), read_graph(path)).read()
    except RecursionError:
        raise FormatError(f"{path}: a class expression contains itself, or is nested too deeply") from None


class _Reader:
    def __init__(self, path: Path, graph: Any) -> None:
        from rdflib import URIRef

        self.path, self.graph = path, graph
        self.owl: Callable[[str], Any] = lambda name: URIRef(_OWL + name)
        self.rdfs: Callable[[str], Any] = lambda name: URIRef(_RDFS + name)
        self.type = URIRef(_RDF + "type")
        self.is_named: Callable[[Any], bool] = lambda node: isinstance(node, URIRef)
        self.nil = URIRef(_RDF + "nil")
        self.left_out: Counter[str] = Counter()
        self.unknown: dict[Any, str] = {}
        declared = set(graph.subjects(self.type, self.owl("Class")))
        between = ("equivalentClass", "disjointWith", "complementOf")
        for predicate in (self.rdfs("subClassOf"), *map(self.owl, between)):
            declared.update(node for pair in graph.subject_objects(predicate) for node in pair)
        declared -= {self.owl("Thing"), self.owl("Nothing"), *graph.subjects(self.type, self.rdfs("Datatype"))}
        declared = set(filter(self.is_named, declared))
        old = {n for n in declared if str(graph.value(n, self.owl("deprecated"))).lower() in ("true", "1")}
        self.ids = short_ids(declared)
        self.classes, self.old = declared - old, old

    def read(self) -> Ontology:
        if not self.classes:
            raise FormatError(f"{self.path}: there is no owl:Class in it")
        axioms: list[Axiom] = []
        for name, make in (("rdfs:subClassOf", self._below), ("owl:equivalentClass", self._same)):
            predicate = (self.rdfs if name.startswith("rdfs") else self.owl)(name.split(":")[1])
            for first, second in sorted(self.graph.subject_objects(predicate), key=str):
                axioms += self._placed(first, make(first, second))
        for first, second in sorted(self.graph.subject_objects(self.owl("disjointWith")), key=str):
            axioms += self._placed(first, self._apart([first, second]))
        for node, members in sorted(self.graph.subject_objects(self.owl("disjointUnionOf")), key=str):
            parts = self._items(members)
            low, high = Or([self._lower(part) for part in parts]), Or([self._upper(part) for part in parts])
            union = self._meaning(self._lower(node), self._upper(node), low, high)
            axioms += self._placed(node, [*union, *self._apart(parts)])
        for node in sorted(self.graph.subjects(self.type, self.owl("AllDisjointClasses")), key=str):
            members = self.graph.value(node, self.owl("members"))
            axioms += self._placed(node, self._apart(self._items(members)))
        for name in ("unionOf", "intersectionOf", "complementOf", "oneOf"):  # directly at a named class, as in OWL 1
            for node in sorted(self.graph.subjects(self.owl(name), None), key=str):
                if node in self.ids:
                    own, low, high = Bool(self.ids[node]), self._expression(node, True), self._expression(node, False)
                    axioms += self._placed(node, self._meaning(own, own, low, high))
                elif self.is_named(node):
                    self.left_out[name] += 1
        self._count_others()
        terms = {self.ids[n]: name_of(self.graph, n, self.rdfs("label"), self.ids[n]) for n in sorted(self.classes)}
        obsolete = {self.ids[node]: "" for node in self.old}
        known = [axiom for axiom in axioms if set(axiom.formula.labels) <= terms.keys()]
        if len(known) < len(axioms):
            self.left_out["axioms about deprecated classes"] += len(axioms) - len(known)
        return Ontology(self.path.name, terms, known, self.left_out, obsolete)

    def _items(self, node: Any) -> list[Any]:
        """The members of an RDF list."""
        from rdflib.collection import Collection

        try:
            found = list(Collection(self.graph, node))
        except ValueError:
            found = []
        if not found and node not in (None, self.nil):
            raise FormatError(f"{self.path}: {node} is not a list of classes, but is used as one")
        return found

    def _below(self, first: Any, second: Any) -> list[Formula]:
        return [self._lower(first) >> self._upper(second)]

    def _same(self, first: Any, second: Any) -> list[Formula]:
        return self._meaning(self._lower(first), self._upper(first), self._lower(second), self._upper(second))

    def _meaning(self, low: Formula, high: Formula, other_low: Formula, other_high: Formula) -> list[Formula]:
        """Two classes are the same, each known between two bounds."""
        return (
            [Iff(low, other_low)] if low == high and other_low == other_high else [low >> other_high, other_low >> high]
        )

    def _apart(self, nodes: Sequence[Any]) -> list[Formula]:
        parts = [self._lower(node) for node in nodes]
        if len(parts) > 2 and all(part.kind is Kind.ATOM for part in parts) and len(set(parts)) == len(parts):
            return [at_most(1, parts)]
        return [~(one & other) for one, other in combinations(parts, 2)]

    def _lower(self, node: Any) -> Formula:
        """Instances that surely belong to a class, as far as that is propositional."""
        named = self._named(node)
        return self._expression(node, low=True) if named is None else named

    def _upper(self, node: Any) -> Formula:
        """Instances that may belong to a class."""
        named = self._named(node)
        return self._expression(node, low=False) if named is None else named

    def _named(self, node: Any) -> Formula | None:
        if node == self.owl("Thing"):
            return TRUE
        if node == self.owl("Nothing"):
            return FALSE
        return Bool(self.ids[node]) if node in self.ids else None

    def _expression(self, node: Any, low: bool) -> Formula:
        bound = self._lower if low else self._upper
        for name, join in (("unionOf", Or), ("intersectionOf", And)):
            members = self.graph.value(node, self.owl(name))
            if members is not None:
                return join([bound(part) for part in self._items(members)])
        other = self.graph.value(node, self.owl("complementOf"))
        if other is not None:
            return ~(self._upper(other) if low else self._lower(other))
        kinds = [name for name in _RESTRICTIONS if self.graph.value(node, self.owl(name)) is not None]
        self.unknown[node] = kinds[0] if kinds else "class expression"
        return FALSE if low else TRUE

    def _placed(self, node: Any, formulas: Sequence[Formula]) -> list[Axiom]:
        place = f"{self.path} {self.ids[node]}" if node in self.ids else str(self.path)
        plain = [formula.simplify() for formula in formulas]
        return [Axiom(formula, place) for formula in plain if formula.kind is not Kind.TRUE]

    def _count_others(self) -> None:
        self.left_out.update(self.unknown.values())
        predicates = {name: self.owl(name) for name in _OTHER_AXIOMS}
        predicates |= {name: self.rdfs(name) for name in ("subPropertyOf", "domain", "range")}
        for name, predicate in predicates.items():
            self.left_out[name] += len(list(self.graph.subject_objects(predicate)))
        for name in _OTHER_TYPES:
            self.left_out[name] += len(list(self.graph.subjects(self.type, self.owl(name))))
        kinds = self.graph.objects(None, self.type)
        self.left_out["class of an individual"] = sum(kind in self.ids for kind in kinds)
        for name in ("ObjectProperty", "DatatypeProperty"):
            for own in self.graph.subjects(self.type, self.owl(name)):
                self.left_out["property of an individual"] += len(list(self.graph.subject_objects(own)))
        self.left_out = +self.left_out
