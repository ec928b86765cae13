"""Formulas: atoms, connectives, counting, text, DIMACS files, evaluation on data."""

from semprola.logic.cnf import Cnf
from semprola.logic.connectives import (
    And,
    Bool,
    Bools,
    Iff,
    Implies,
    Not,
    Or,
    Xor,
    at_least,
    at_most,
    count,
    exactly,
    one_hot,
)
from semprola.logic.dimacs import from_dimacs, to_dimacs, write_dimacs
from semprola.logic.formula import FALSE, TRUE, Formula, Kind
from semprola.logic.leaf import Leaf, Reader
from semprola.logic.parser import parse
from semprola.logic.quantifiers import Predicate, Variable, exists, forall
from semprola.logic.sympy_bridge import from_sympy

__all__ = [
    "FALSE",
    "TRUE",
    "And",
    "Bool",
    "Bools",
    "Cnf",
    "Formula",
    "Iff",
    "Implies",
    "Kind",
    "Leaf",
    "Not",
    "Or",
    "Predicate",
    "Reader",
    "Variable",
    "Xor",
    "at_least",
    "at_most",
    "count",
    "exactly",
    "exists",
    "forall",
    "from_dimacs",
    "from_sympy",
    "one_hot",
    "parse",
    "to_dimacs",
    "write_dimacs",
]
