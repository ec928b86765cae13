"""Ontologies: what is propositional in OBO, OWL and SKOS files, as rules over their terms."""

from semprola.rules.ontologies.ontology import Axiom, Ontology
from semprola.rules.ontologies.reading import from_obo, from_owl, from_skos, read_ontology

__all__ = ["Axiom", "Ontology", "from_obo", "from_owl", "from_skos", "read_ontology"]
