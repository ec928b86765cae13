"""Ontologies in OBO, OWL and SKOS files; projections compared with truth tables."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import semprola as sp
from semprola.compiler import Budget
from semprola.errors import FormatError, LabelError, PropertyError
from semprola.rules.ontologies.projection import projected

pytest.importorskip("rdflib")
pytest.importorskip("obonet")

OBO = """format-version: 1.2
ontology: zoo

[Term]
id: Z:1
name: thing

[Term]
id: Z:2
name: animal
is_a: Z:1 ! thing

[Term]
id: Z:3
name: pet
is_a: Z:2 ! animal

[Term]
id: Z:4
name: cat
is_a: Z:3
relationship: part_of Z:7 ! household

[Term]
id: Z:5
name: dog
is_a: Z:3
disjoint_from: Z:4 ! cat

[Term]
id: Z:6
name: catdog
is_a: Z:4
is_a: Z:5

[Term]
id: Z:7
name: household

[Term]
id: Z:8
name: kitten
intersection_of: Z:4 ! cat
intersection_of: Z:9 ! young

[Term]
id: Z:9
name: young

[Term]
id: Z:10
name: hound
is_obsolete: true
replaced_by: Z:5
"""

OWL = """@prefix : <http://zoo.org/z#> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:A a owl:Class ; rdfs:label "animal" . :C a owl:Class ; rdfs:subClassOf :P . :P a owl:Class ; rdfs:subClassOf :A .
:D a owl:Class ; rdfs:subClassOf [ a owl:Class ; owl:intersectionOf ( :P
    [ a owl:Restriction ; owl:onProperty :eats ; owl:someValuesFrom :A ] ) ] .
:eats a owl:ObjectProperty , owl:TransitiveProperty ; rdfs:domain :A .
:Q a owl:Class ; owl:equivalentClass [ a owl:Class ; owl:unionOf ( :C :D ) ] .
:N a owl:Class ; rdfs:subClassOf [ a owl:Class ; owl:complementOf :A ] .
[] a owl:AllDisjointClasses ; owl:members ( :C :D :E ) . :E owl:disjointWith owl:Nothing .
:tom a :C ; :eats :ann . :Age a rdfs:Datatype ; owl:equivalentClass [ a rdfs:Datatype ; owl:onDatatype :years ] .
:X a owl:Class ; rdfs:subClassOf :Y . :Y a owl:Class ; rdfs:subClassOf :X .
:Z a owl:Class ; rdfs:subClassOf :C , :N .
"""


def states_of(formula: sp.Formula, labels: list[str]) -> set[tuple[bool, ...]]:
    every = np.array(list(itertools.product([False, True], repeat=len(labels))))
    return {tuple(row) for row in every[formula.evaluate(every, labels=labels)].tolist()}


def test_projection_is_the_shadow_of_the_models() -> None:
    chance = random.Random(0)
    for _ in range(300):
        n = chance.randint(2, 7)
        longest = chance.choice([2, 2, 3])
        clauses = [
            [chance.choice([-1, 1]) * chance.randint(1, n) for _ in range(chance.randint(1, longest))]
            for _ in range(chance.randint(1, 10))
        ]
        keep = sorted(chance.sample(range(1, n + 1), chance.randint(1, n)))
        every = list(itertools.product([False, True], repeat=n))

        def holds(found: object, row: tuple[bool, ...]) -> bool:
            return all(any(row[abs(v) - 1] == (v > 0) for v in clause) for clause in found)  # type: ignore[attr-defined]

        shadow = {tuple(row[v - 1] for v in keep) for row in every if holds(clauses, row)}
        found = projected(clauses, keep, Budget())
        assert all(abs(v) in keep for clause in found for v in clause)
        assert {tuple(row[v - 1] for v in keep) for row in every if holds(found, row)} == shadow


def test_restrict_a_hierarchy() -> None:
    chance = random.Random(1)
    for nonempty in (False, True):
        for _ in range(15):
            names = "abcdefg"
            pairs = [(c, p) for i, c in enumerate(names) for p in names[:i] if chance.random() < 0.35]
            full = sp.constraints.hierarchy(pairs, labels=[*names], edges="child-parent", nonempty=nonempty)
            terms = chance.sample(names, 4)
            small = full.restrict(terms)
            assert small.labels == tuple(terms)
            places = [names.index(term) for term in terms]
            shadow = {tuple(row[place] for place in places) for row in states_of(full, [*names])}
            assert states_of(small, terms) == shadow
            assert nx.transitive_reduction(graph := nx.DiGraph(small.edges)).size() == graph.size()
    with pytest.raises(LabelError, match=r"which is not listed: .*\.restrict\(labels\) keeps what it implies"):
        sp.compile(full, labels=["a", "b"])
    with pytest.raises(LabelError, match="'z' is not a label of the hierarchy"):
        full.restrict(["z"])
    with pytest.raises(PropertyError, match="exclusive_siblings"):
        sp.constraints.hierarchy([("a", "b")], exclusive_siblings=True).restrict(["a"])


def test_obo(tmp_path: Path) -> None:
    path = tmp_path / "zoo.obo"
    path.write_text(OBO)
    zoo = sp.rules.read_ontology(path)
    assert zoo.dead == ["Z:6"]
    assert zoo.left_out == {"part_of": 1}
    assert zoo.obsolete == {"Z:10": "Z:5"}
    with pytest.warns(UserWarning, match=r"zoo.obo: not part of the rules: part_of \(1\)"):
        rules = sp.rules.from_obo(path, ["cat", "animal", "dog", "kitten"], by="name")
    expected = sp.parse("(cat -> animal) & (dog -> animal) & ~(cat & dog) & (kitten -> cat)")
    names = ["cat", "animal", "dog", "kitten"]
    assert states_of(rules, names) == states_of(expected, names)
    both = sp.rules.from_obo(path, ["Z:8", "Z:7"], ("is_a", "part_of"))
    assert states_of(both, ["Z:8", "Z:7"]) == states_of(sp.parse('"Z:8" -> "Z:7"'), ["Z:8", "Z:7"])
    everything = zoo.rules()
    by_axiom = sp.logic.And([axiom.formula for axiom in zoo.axioms])
    assert states_of(everything, [*zoo.terms]) == states_of(by_axiom, [*zoo.terms])
    forced = sp.rules.review(zoo)
    assert forced.forced == {"Z:6": 0}
    assert str(forced.rules[3]) == f"Z:5 -> Z:3 [{path}:25 Z:5]"
    with pytest.raises(LabelError, match=r"zoo.obo: 'Z:10' is obsolete: use 'Z:5'"):
        zoo.rules(["Z:10"])
    with pytest.raises(LabelError, match="there is no term 'fish'"):
        zoo.rules(["fish"])
    with pytest.raises(LabelError, match=r"there is no term 'kiten': did you mean 'kitten'\?"):
        zoo.rules(["kiten"])
    with pytest.raises(TypeError, match="terms must be a list of terms, not 'cat'"):
        zoo.rules("cat")
    with pytest.raises(LabelError, match="no term has the relation 'partof'; there are is_a, part_of"):
        sp.rules.from_obo(path, relations=("partof",))
    assert sp.rules.read_ontology(path, relations="part_of").left_out["is_a"] > 0


@pytest.mark.parametrize("kind", ["turtle", "xml", "nt"])
def test_owl(kind: str, tmp_path: Path) -> None:
    import rdflib

    path = tmp_path / {"turtle": "zoo.ttl", "xml": "zoo.owl", "nt": "zoo.nt"}[kind]
    rdflib.Graph().parse(data=OWL, format="turtle").serialize(path, format=kind, encoding="utf-8")
    zoo = sp.rules.read_ontology(path)
    others = {"class of an individual": 1, "property of an individual": 1, "onDatatype": 1, "class expression": 1}
    assert zoo.left_out == {"someValuesFrom": 1, "TransitiveProperty": 1, "domain": 1, **others}
    assert zoo.equivalent == [["X", "Y"]]
    assert zoo.dead == ["Z"]
    assert zoo.terms["A"] == "animal"
    with pytest.warns(UserWarning, match=r"someValuesFrom \(1\)"):
        rules = sp.rules.from_owl(path)
    expected = sp.parse(
        "(C -> P) & (P -> A) & (D -> P) & (Q <-> C | D) & (N -> ~A) & at_most(1, C, D, E) & (X <-> Y) & (Z -> C & N)"
    )
    assert states_of(rules, [*zoo.terms]) == states_of(expected, [*zoo.terms])
    for terms in (["D", "A", "N"], ["Q", "animal"], ["X", "Y", "E"], ["C", "D", "Q"], ["Z", "E"]):
        ids = [zoo.id_of(term) for term in terms]
        places = [[*zoo.terms].index(term) for term in ids]
        shadow = {tuple(row[place] for place in places) for row in states_of(expected, [*zoo.terms])}
        assert states_of(zoo.rules(terms), ids) == shadow


def test_skos(tmp_path: Path) -> None:
    path = tmp_path / "zoo.ttl"
    path.write_text("""@prefix : <http://zoo.org/> . @prefix skos: <http://www.w3.org/2004/02/skos/core#> .
    :cat a skos:Concept ; skos:prefLabel "Katze"@de , "cat"@en ; skos:broader :pet .
    :animal skos:narrower :pet . :pet skos:related :house .
    """)
    with pytest.warns(UserWarning, match=r"related \(1\)"):
        rules = sp.rules.from_skos(path, ["cat", "animal"])
    assert states_of(rules, ["cat", "animal"]) == states_of(sp.parse("cat -> animal"), ["cat", "animal"])
    assert sp.rules.read_ontology(path, "skos").terms["cat"] == "cat"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.obo", "no ontology", r"a\.obo: (not an OBO file|there is no \[Term\])"),
        ("a.ttl", "<<", r"a\.ttl: cannot be read as turtle"),
        ("a.owl", "<html>", r"a\.owl: cannot be read as xml"),
        ("a.nt", "", r"a\.nt: there is no owl:Class in it"),
    ],
)
def test_files_that_are_something_else(name: str, text: str, message: str, tmp_path: Path) -> None:
    tmp_path.joinpath(name).write_text(text)
    with pytest.raises(FormatError, match=message):
        sp.rules.read_ontology(tmp_path / name)
    with pytest.raises(FormatError, match="no such file"):
        sp.rules.read_ontology(tmp_path / f"no{name}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[ owl:unionOf _:l ] . _:l rdf:first :A ; rdf:rest _:l", "is not a list of classes"),
        ("[ owl:unionOf :B ]", "z#B is not a list of classes"),
        ("_:u . _:u owl:unionOf ( :A _:u )", "contains itself"),
        ("_:u . _:u owl:complementOf _:u", "contains itself"),
    ],
)
def test_broken_class_expressions_are_refused(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    rdf = "@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .\n"
    path.write_text(f"{OWL.splitlines()[0]}\n{OWL.splitlines()[1]}\n{rdf}:A a owl:Class ; rdfs:subClassOf {text} .")
    with pytest.raises(FormatError, match=message):
        sp.rules.read_ontology(path)


def test_what_is_no_class_is_no_term(tmp_path: Path) -> None:
    path = tmp_path / "a.ttl"
    more = ':X owl:unionOf ( :A :B ) . :D a rdfs:Datatype ; owl:oneOf ( "a" ) . :A rdfs:subClassOf "text" .'
    path.write_text(f"{OWL.splitlines()[0]}\n{OWL.splitlines()[1]}\n:A a owl:Class . {more}")
    found = sp.rules.read_ontology(path)
    assert [*found.terms] == ["A"]
    assert found.left_out == {"unionOf": 1, "oneOf": 1, "class expression": 1}
