"""Families of constraints that build their own circuits; combine them with any formula using ``& | ~``."""

from semprola.constraints.automata import Automaton, automaton, regex
from semprola.constraints.cardinalities import cardinality, one_hot
from semprola.constraints.expressions import Expression
from semprola.constraints.family import Family
from semprola.constraints.hierarchy import Hierarchy, Suggestion, hierarchy, hierarchy_mode, suggest
from semprola.constraints.linear_sums import Linear, linear
from semprola.constraints.numbers import all_different, element, maximum, minimum, number
from semprola.constraints.paths import SimplePaths, cycles, simple_paths
from semprola.constraints.permutations import Permutation, permutation, ranking
from semprola.constraints.subgraphs import Matchings, SpanningTrees, matchings, spanning_trees
from semprola.constraints.tables import Table, table
from semprola.constraints.tagging import bio
from semprola.constraints.variables import Categorical, Integer

__all__ = [
    "Automaton",
    "Categorical",
    "Expression",
    "Family",
    "Hierarchy",
    "Integer",
    "Linear",
    "Matchings",
    "Permutation",
    "SimplePaths",
    "SpanningTrees",
    "Suggestion",
    "Table",
    "all_different",
    "automaton",
    "bio",
    "cardinality",
    "cycles",
    "element",
    "hierarchy",
    "hierarchy_mode",
    "linear",
    "matchings",
    "maximum",
    "minimum",
    "number",
    "one_hot",
    "permutation",
    "ranking",
    "regex",
    "simple_paths",
    "spanning_trees",
    "suggest",
    "table",
]
