"""Families of constraints built directly, without a general compiler; each combines with any formula by ``& | ~``."""

from semprola.constraints.automata import Automaton, automaton, regex
from semprola.constraints.cardinality import Cardinality, OneHot, cardinality, one_hot
from semprola.constraints.family import Family
from semprola.constraints.hierarchy import Hierarchy, hierarchy
from semprola.constraints.linear import Linear, linear
from semprola.constraints.paths import SimplePaths, cycles, simple_paths
from semprola.constraints.permutation import Permutation, permutation, ranking
from semprola.constraints.subgraphs import Matchings, SpanningTrees, matchings, spanning_trees
from semprola.constraints.sudoku import Sudoku, sudoku
from semprola.constraints.table import Table, table
from semprola.constraints.variables import Categorical, Integer

__all__ = [
    "Automaton",
    "Cardinality",
    "Categorical",
    "Family",
    "Hierarchy",
    "Integer",
    "Linear",
    "Matchings",
    "OneHot",
    "Permutation",
    "SimplePaths",
    "SpanningTrees",
    "Sudoku",
    "Table",
    "automaton",
    "cardinality",
    "cycles",
    "hierarchy",
    "linear",
    "matchings",
    "one_hot",
    "permutation",
    "ranking",
    "regex",
    "simple_paths",
    "spanning_trees",
    "sudoku",
    "table",
]
