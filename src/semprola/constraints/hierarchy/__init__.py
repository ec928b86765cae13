"""Hierarchies: if a label is on, its parents are on."""

from semprola.constraints.hierarchy.family import Hierarchy, hierarchy
from semprola.constraints.hierarchy.minimum_cut import hierarchy_mode
from semprola.constraints.hierarchy.suggestions import Suggestion, suggest

__all__ = ["Hierarchy", "Suggestion", "hierarchy", "hierarchy_mode", "suggest"]
