"""Counting constraints over distinct labels, built directly."""

from __future__ import annotations

from collections.abc import Sequence

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.logic import Formula, Kind


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
    """The circuit of "between lo and hi of these literals hold": one flat sum for one of n labels, or else a diagram.

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
    count = len(names)
    if lo == 1 == hi and all(signs):
        builder = CircuitBuilder(names)
        root = builder.sum(builder.literal(v, True) for v in range(count))
        vtree = Vtree.right_linear(range(count))
        check = budget.checker("counting", count)
        return builder.build(root, zero_suppressed=[True] * count, vtree=vtree, check=check)
    # A literal that does not hold costs nothing. It should be free if there is only a lower bound (once that is met,
    # the rest is free), and suppressed otherwise (once an upper bound is reached, the rest is off).
    most = lo if hi >= count else hi + 1

    def add(seen: int, place: int, value: int) -> int | None:
        seen = min(seen + (value == signs[place]), most)
        return seen if seen <= hi and seen + count - place - 1 >= lo else None

    return decision_diagram(
        names,
        0,
        add,
        lambda seen: lo <= seen <= hi,
        zero_suppressed=hi < count and all(signs),
        budget=budget.part("the count", "count fewer labels"),
    )
