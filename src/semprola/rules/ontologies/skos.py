"""SKOS vocabularies: a concept implies its broader concepts."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

from semprola.errors import FormatError
from semprola.logic import Bool, Iff
from semprola.rules.ontologies.graphs import name_of, read_graph, short_ids
from semprola.rules.ontologies.ontology import Axiom, Ontology

_UP = ("broader", "broaderTransitive", "broadMatch", "broaderGeneric", "broaderInstantial", "broaderPartitive")
_DOWN = ("narrower", "narrowerTransitive", "narrowMatch", "narrowerGeneric", "narrowerInstantial", "narrowerPartitive")
_OTHERS = ("related", "closeMatch", "relatedMatch")


def read_skos(path: str | os.PathLike[str]) -> Ontology:
    """The concepts and broader relations of a SKOS file, see :func:`semprola.rules.from_skos`."""
    graph = read_graph(path)
    from rdflib import RDF, SKOS, URIRef

    source = Path(path)
    concepts = set(graph.subjects(RDF.type, SKOS.Concept))
    for name in (*_UP, *_DOWN):
        if "Match" not in name:
            concepts.update(node for pair in graph.subject_objects(URIRef(f"{SKOS}{name}")) for node in pair)
    if not concepts:
        raise FormatError(f"{source}: there is no skos:Concept in it")
    ids = short_ids(concepts)
    axioms: dict[Axiom, None] = {}
    left_out: Counter[str] = Counter()
    for names, is_up in ((_UP, True), (_DOWN, False)):
        for name in names:
            for one, other in sorted(graph.subject_objects(URIRef(f"{SKOS}{name}"))):
                child, parent = (one, other) if is_up else (other, one)
                if child in ids and parent in ids:
                    axioms[Axiom(Bool(ids[child]) >> Bool(ids[parent]), f"{source} {ids[child]}")] = None
                else:
                    left_out[f"{name} to another vocabulary"] += 1
    for one, other in sorted(graph.subject_objects(SKOS.exactMatch)):
        if one in ids and other in ids:
            axioms[Axiom(Iff(Bool(ids[one]), Bool(ids[other])), f"{source} {ids[one]}")] = None
        else:
            left_out["exactMatch to another vocabulary"] += 1
    for name in _OTHERS:
        left_out[name] += len(list(graph.subject_objects(URIRef(f"{SKOS}{name}"))))
    terms = {ids[node]: name_of(graph, node, SKOS.prefLabel, ids[node]) for node in sorted(concepts)}
    return Ontology(source.name, terms, list(axioms), +left_out)
