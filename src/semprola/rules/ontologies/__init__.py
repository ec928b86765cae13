"""Ontologies: what is propositional in OBO, OWL and SKOS files, as rules over their terms."""
