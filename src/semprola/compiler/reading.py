"""Families inside a formula, as and-or graphs: for readings that need both a family and its negation."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from semprola.circuit import Circuit
from semprola.circuit.fold import fold
from semprola.circuit.transforms import smooth
from semprola.compiler.pipeline import compile
from semprola.errors import UnsatisfiableError
from semprola.logic import Formula, Leaf, Not
from semprola.logic.reading import Algebra

Value = TypeVar("Value")


class FamilyReader:
    """Reads the families of a formula through their circuits, which are compiled once.

    Args:
        formula: what they are part of.
    """

    def __init__(self, formula: Formula) -> None:
        leaves = [node for node in formula.nodes() if isinstance(node, Leaf)]
        self._circuits: dict[Formula, tuple[Circuit | None, Circuit | None]] = {
            leaf: (_spelled_out(leaf), _spelled_out(Not(leaf))) for leaf in leaves
        }

    def through(self, algebra: Algebra[Value]) -> Callable[[Formula], tuple[Value, Value]]:
        """What `semprola.logic.reading.read` asks of a family: its value and that of its negation."""

        def values(leaf: Formula) -> tuple[Value, Value]:
            positive, negative = self._circuits[leaf]
            return _value(positive, algebra), _value(negative, algebra)

        return values


def _spelled_out(formula: Formula) -> Circuit | None:
    """A circuit that mentions every literal it needs; None if there is no model."""
    try:
        circuit = compile(formula, labels=formula.labels(), given=())
    except UnsatisfiableError:
        return None
    return smooth(circuit) if circuit.zero_suppressed.any() else circuit


def _value(circuit: Circuit | None, algebra: Algebra[Value]) -> Value:
    if circuit is None:
        return algebra.false
    names = circuit.variables
    return fold(
        circuit,
        lambda signed: algebra.literal(names[abs(signed) - 1], signed > 0),
        lambda _, parts: algebra.both(parts) if parts else algebra.true,
        lambda _, parts: algebra.either(parts),
    )
