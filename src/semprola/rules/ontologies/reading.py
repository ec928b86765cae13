"""Reads ontologies: OBO files with obonet, OWL and SKOS files with rdflib."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import Any

from semprola.logic import Formula
from semprola.rules.ontologies.obo import read_obo
from semprola.rules.ontologies.ontology import By, Ontology
from semprola.rules.ontologies.owl import read_owl
from semprola.rules.ontologies.skos import read_skos

Path = str | os.PathLike[str]


def from_obo(
    path: Path, terms: Iterable[str] | None = None, relations: Sequence[str] = ("is_a",), *, by: By = "id"
) -> Formula:
    """The rules of an ontology in an OBO file: a term implies its parents (extra `ontology`).

    Args:
        path: the file; .gz, .bz2 and .xz files are unpacked.
        terms: the terms to speak about, by id or name; all by default. What they imply for each other through terms
            that are left out is kept.
        relations: the relations that mean "implies", such as ``("is_a", "part_of")``.
        by: whether labels are the ids or the names of terms.

    Returns:
        A hierarchy, with further rules (disjoint terms, definitions) if there are any. What the file says beyond that
        is counted in a warning; :func:`read_ontology` returns it, with places, cycles and impossible terms.

    Raises:
        FormatError: the file is not OBO.
        LabelError: a term is unknown or obsolete, or no term has one of the relations.
    """
    return _rules(read_obo(path, relations), terms, by)


def from_owl(path: Path, terms: Iterable[str] | None = None, *, by: By = "id") -> Formula:
    """The propositional rules of an OWL ontology (extra `ontology`).

    These are subclass, equivalence and disjointness axioms between named classes and their unions, intersections and
    complements. All others are counted in a warning. An axiom that is propositional in part, such as "A is a subclass
    of B and some restriction", contributes that part, and the rest is counted.

    Args:
        path: a file that rdflib reads: RDF/XML (.owl, .rdf, .xml), Turtle (.ttl), N-Triples (.nt), JSON-LD, …
        terms: the classes to speak about, by short id or name (rdfs:label); all by default, see :func:`from_obo`.
        by: whether labels are the short ids (the part of the address after "#" or the last "/") or the names.

    Raises:
        FormatError: the file cannot be read as RDF.
        LabelError: a term is unknown or obsolete.
    """
    return _rules(read_owl(path), terms, by)


def from_skos(path: Path, terms: Iterable[str] | None = None, *, by: By = "id") -> Formula:
    """The rules of a SKOS vocabulary (extra `ontology`): a concept implies its broader concepts.

    Args:
        path: a file that rdflib reads, see :func:`from_owl`.
        terms: the concepts to speak about, by short id or name (skos:prefLabel); all by default, see :func:`from_obo`.
        by: whether labels are the short ids or the names.

    Raises:
        FormatError: the file cannot be read as RDF.
        LabelError: a term is unknown or obsolete.
    """
    return _rules(read_skos(path), terms, by)


def read_ontology(path: Path, kind: str | None = None, relations: Sequence[str] = ("is_a",)) -> Ontology:
    """An ontology with all that was found in it: places, equivalent and impossible terms, what is not propositional.

    ``print`` shows a summary; :func:`semprola.rules.review` takes it and names the place of each axiom.

    Args:
        path: the file.
        kind: "obo", "owl" or "skos"; by default "obo" for .obo files (also packed), otherwise "owl".
        relations: for OBO files, see :func:`from_obo`.

    Raises:
        FormatError: the file cannot be read.
    """
    kind = kind or ("obo" if ".obo" in os.fspath(path).lower() else "owl")
    if kind == "obo":
        return read_obo(path, relations)
    if kind not in ("owl", "skos"):
        raise ValueError(f'kind must be "obo", "owl" or "skos", not {kind!r}')
    return read_owl(path) if kind == "owl" else read_skos(path)


def _rules(ontology: Ontology, terms: Any, by: By) -> Formula:
    if ontology.left_out:
        what = ", ".join(f"{kind} ({count:,})" for kind, count in ontology.left_out.most_common(6))
        more = ", …" if len(ontology.left_out) > 6 else ""
        warnings.warn(f"{ontology.source}: not part of the rules: {what}{more}", UserWarning, stacklevel=3)
    return ontology.rules(terms, by)
