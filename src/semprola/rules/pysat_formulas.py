"""Formulas of python-sat as constraints."""

from __future__ import annotations

from typing import Any

from semprola.errors import FormatError
from semprola.logic import Cnf
from semprola.logic.messages import brief


def from_pysat(formula: Any) -> Cnf:
    """The clauses of a CNF or WCNF object of python-sat.

    Soft clauses of a WCNF are preferences, not rules, so they are refused unless there are none.

    Args:
        formula: a ``pysat.formula.CNF`` or ``WCNF``. Its atoms of cardinality solvers ("atmosts") must be encoded
            as clauses before.

    Returns:
        The formula; its labels are "1".."n", as those of a DIMACS file.

    Raises:
        FormatError: there are soft clauses, or constraints that are not clauses.
        TypeError: this is no such object.

    Example:
        >>> from pysat.formula import CNF
        >>> from_pysat(CNF(from_clauses=[[1, -2], [2, 3]])).clauses
        [[1, -2], [2, 3]]
    """
    clauses = getattr(formula, "clauses", getattr(formula, "hard", None))
    if clauses is None or not hasattr(formula, "nv"):
        raise TypeError(f"from_pysat takes a CNF or WCNF of python-sat, not {brief(formula)}")
    soft = getattr(formula, "soft", ())
    if soft:
        raise FormatError(f"the WCNF has {len(soft):,} soft clauses, which are not rules; w.hard has the others")
    if getattr(formula, "atmosts", None) or getattr(formula, "atms", None):
        raise FormatError("the formula has native cardinality constraints: encode them with pysat.card.CardEnc")
    return Cnf(formula.nv, clauses)
