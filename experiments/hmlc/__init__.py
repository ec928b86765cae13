"""Hierarchical multi-label classification: twelve data sets, and the Gene Ontology version of one."""
