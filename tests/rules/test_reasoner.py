"""Entailment of ontologies, compared with HermiT, a reasoner for all of OWL 2.

HermiT comes with owlready2, which is in no extra, and needs Java: `pip install owlready2` before `make test-all`.
"""

from __future__ import annotations

import contextlib
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp

pytest.importorskip("rdflib")
owlready2 = pytest.importorskip("owlready2", reason="needs owlready2, which is for this test only")
from rdflib import OWL, RDF, RDFS, BNode, Graph, Namespace  # noqa: E402
from rdflib.collection import Collection  # noqa: E402

pytestmark = [
    pytest.mark.extensive,
    pytest.mark.skipif(shutil.which("java") is None, reason="needs Java"),
    pytest.mark.filterwarnings("ignore"),  # of owlready2
]
ZOO = Namespace("http://zoo.org/z#")


class Drawing:
    """A random ontology with everything of OWL that is propositional, and something that is not."""

    def __init__(self, seed: int, classes: int) -> None:
        self.chance = random.Random(seed)
        self.graph = Graph()
        self.names = [f"C{i}" for i in range(classes)]
        for name in self.names:
            self.graph.add((ZOO[name], RDF.type, OWL.Class))
        self.graph.add((ZOO.eats, RDF.type, OWL.ObjectProperty))
        for _ in range(classes):
            self._axiom()

    def _axiom(self) -> None:
        kind = self.chance.choice(["below"] * 6 + ["same", "apart", "all apart", "union", "restriction"])
        name = self._name()
        if kind == "below":
            self.graph.add((name, RDFS.subClassOf, self._class(2)))
        elif kind == "same":
            self.graph.add((name, OWL.equivalentClass, self._class(2)))
        elif kind == "apart":
            self.graph.add((name, OWL.disjointWith, self._name()))
        elif kind == "all apart":
            node = BNode()
            self.graph.add((node, RDF.type, OWL.AllDisjointClasses))
            self.graph.add((node, OWL.members, self._list([ZOO[n] for n in self.chance.sample(self.names, 3)])))
        elif kind == "union":
            self.graph.add((name, OWL.disjointUnionOf, self._list([ZOO[n] for n in self.chance.sample(self.names, 2)])))
        else:
            node = BNode()
            self.graph.add((node, RDF.type, OWL.Restriction))
            self.graph.add((node, OWL.onProperty, ZOO.eats))
            self.graph.add((node, OWL.someValuesFrom, OWL.Thing))  # alone, it implies nothing about named classes
            self.graph.add((name, RDFS.subClassOf, node))

    def _class(self, depth: int) -> Any:
        if not depth or self.chance.random() < 0.5:
            return self._name()
        node = BNode()
        self.graph.add((node, RDF.type, OWL.Class))
        kind = self.chance.choice([OWL.unionOf, OWL.intersectionOf, OWL.complementOf])
        parts = [self._class(depth - 1) for _ in range(1 if kind == OWL.complementOf else 2)]
        self.graph.add((node, kind, parts[0] if kind == OWL.complementOf else self._list(parts)))
        return node

    def _name(self) -> Any:
        return ZOO[self.chance.choice(self.names)]

    def _list(self, items: list[Any]) -> BNode:
        node = BNode()
        Collection(self.graph, node, items)
        return node


def entailed_by_hermit(path: Path, names: list[str]) -> dict[str, set[str]] | None:
    """All classes above each class, itself included; everything above one without instances. None: inconsistent."""
    world = owlready2.World()
    zoo = world.get_ontology(path.as_uri()).load()
    try:
        with zoo:
            owlready2.sync_reasoner_hermit(world, infer_property_values=False, debug=0)
    except owlready2.OwlReadyInconsistentOntologyError:
        return None
    dead = {each.name for each in world.inconsistent_classes()}
    made = {name: zoo.search_one(iri=str(ZOO[name])) for name in names}
    above = {name: {each.name for each in made[name].ancestors() if each.name in made} for name in names}
    return {name: {*names} if name in dead else found - dead for name, found in above.items()}


def entailed_by_rules(path: Path, names: list[str], terms: list[str]) -> dict[str, set[str]]:
    """The same by our rules, restricted to some terms."""
    with (
        pytest.warns(UserWarning, match="not part of the rules")
        if "someValuesFrom" in path.read_text()
        else contextlib.nullcontext()
    ):
        rules = sp.rules.from_owl(path, terms)
    p = sp.constrain(torch.zeros(len(terms), dtype=torch.float64), sp.compile(rules, labels=terms))
    found = {}
    for first in terms:
        evidence = torch.full((len(terms), len(terms)), np.nan, dtype=torch.float64)
        evidence[:, terms.index(first)] = 1.0
        for row, second in enumerate(terms):
            if second != first:
                evidence[row, terms.index(second)] = 0.0
        impossible = p.log_marginal(evidence).isinf()
        found[first] = {second for row, second in enumerate(terms) if impossible[row] or second == first}
    return found


@pytest.mark.parametrize("seed", range(6))
def test_entailment_is_that_of_a_reasoner(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "zoo.owl"
    drawing = Drawing(seed, classes=24)
    drawing.graph.serialize(path, format="xml", encoding="utf-8")
    expected = entailed_by_hermit(path, drawing.names)
    assert expected is not None
    ontology = sp.rules.read_ontology(path)
    assert {*ontology.dead} == {name for name in drawing.names if len(expected[name]) == len(drawing.names)}
    for terms in (drawing.names, random.Random(seed).sample(drawing.names, 8)):
        found = entailed_by_rules(path, drawing.names, terms)
        assert found == {term: expected[term] & {*terms} for term in terms}
    assert sum(len(above) for above in expected.values()) > 2 * len(drawing.names)
