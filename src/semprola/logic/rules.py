"""Rules as lists: the operands of a conjunction, and literals."""

from __future__ import annotations

from collections.abc import Iterator

from semprola.logic.cnf import Cnf
from semprola.logic.formula import Formula, Kind


def conjuncts(formula: Formula) -> Iterator[Formula]:
    """The operands of a conjunction in order, including those of nested conjunctions and the clauses of files.

    Example:
        >>> from semprola.logic import parse
        >>> [str(part) for part in conjuncts(parse("a & (b & (c | d))"))]
        ['a', 'b', 'c | d']
    """
    stack = [formula]
    while stack:
        node = stack.pop()
        if node.kind is Kind.AND:
            stack.extend(reversed(node.args))
        elif isinstance(node, Cnf):
            yield from node.clause_formulas()
        else:
            yield node


def literal_of(formula: Formula) -> tuple[str, bool] | None:
    """The name and the sign of an atom or a negated atom; None for any other formula.

    Example:
        >>> from semprola.logic import parse
        >>> literal_of(parse("!a"))
        ('a', False)
    """
    if formula.kind is Kind.ATOM:
        return formula.name, True
    if formula.kind is Kind.NOT and formula.args[0].kind is Kind.ATOM:
        return formula.args[0].name, False
    return None
