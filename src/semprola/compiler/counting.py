"""Counting constraints over distinct labels, built directly: one node per position and number counted so far."""

from __future__ import annotations

from collections.abc import Sequence

from semprola.circuit import FALSE, Circuit, CircuitBuilder, Vtree
from semprola.compiler.budget import Budget
from semprola.logic import Formula, Kind

_BYTES_A_NODE = 600


def counted_literals(formula: Formula) -> tuple[tuple[str, ...], tuple[bool, ...]] | None:
    """The labels and signs that a formula counts; None if it does not count literals of distinct labels.

    Example:
        >>> from semprola.logic import parse
        >>> counted_literals(parse("exactly(1, a, ~b)"))
        (('a', 'b'), (True, False))
    """
    if formula.kind is not Kind.CARDINALITY:
        return None
    names, signs = [], []
    for arg in formula.args:
        atom = arg.args[0] if arg.kind is Kind.NOT else arg
        if atom.kind is not Kind.ATOM:
            return None
        names.append(atom.name)
        signs.append(atom is arg)
    return (tuple(names), tuple(signs)) if len(set(names)) == len(names) else None


def counting_circuit(names: Sequence[str], signs: Sequence[bool], lo: int, hi: int, budget: Budget) -> Circuit:
    """The circuit of "between lo and hi of these literals hold", as a decision diagram in their order.

    Args:
        names: distinct labels.
        signs: whether each label itself, or its negation, is counted.
        lo, hi: the bounds.
        budget: what may be used.

    Raises:
        UnsatisfiableError: no number is within the bounds.
        CompilationBudgetError: the budget ran out.

    Example:
        >>> counting_circuit(["a", "b", "c"], [True] * 3, 1, 2, Budget()).model_count()
        6
    """
    builder = CircuitBuilder(names)
    true = builder.true()
    # beyond `last` nothing changes: there are already too many, or enough
    last = hi + 1 if hi < len(names) else lo
    below = [true if lo <= seen <= hi else FALSE for seen in range(last + 1)]
    for place in range(len(names) - 1, -1, -1):
        no, yes = builder.literal(place, not signs[place]), builder.literal(place, signs[place])
        nodes = []
        for seen in range(min(place, last) + 1):
            same, more = below[seen], below[min(seen + 1, last)]
            if same == more:
                nodes.append(same)
            else:
                nodes.append(builder.sum([builder.product([no, same]), builder.product([yes, more])]))
        below = nodes
        budget.check("counting", len(builder))
        if budget.memory is not None and len(builder) * _BYTES_A_NODE > budget.memory:
            raise budget.error("memory")
    vtree = Vtree.right_linear(range(len(names)))
    return builder.build(below[0], vtree=vtree, check=lambda: budget.check("counting", len(builder)))
