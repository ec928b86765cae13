"""Evaluates the families inside a formula in an algebra, through their circuits and those of their negations."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from semprola.circuit import Circuit
from semprola.circuit.fold import fold
from semprola.circuit.transforms import smooth
from semprola.compiler.pipeline import compile
from semprola.errors import UnsatisfiableError
from semprola.logic import Formula, Not
from semprola.logic.algebra import Algebra

Value = TypeVar("Value")


class FamilyReader:
    """Reads families through their circuits; each circuit is compiled once, when it is first needed."""

    def __init__(self) -> None:
        self._circuits: dict[tuple[Formula, bool], Circuit | None] = {}

    def through(self, algebra: Algebra[Value]) -> Callable[[Formula, bool], Value]:
        """The `leaf` argument for `semprola.logic.algebra.read`: the value of a family or of its negation."""

        def value(leaf: Formula, positive: bool) -> Value:
            if (leaf, positive) not in self._circuits:
                self._circuits[leaf, positive] = _spelled_out(leaf if positive else Not(leaf))
            return _value(self._circuits[leaf, positive], algebra)

        return value


def _spelled_out(formula: Formula) -> Circuit | None:
    """A circuit that mentions every literal it needs; None if there is no model."""
    try:
        circuit = compile(formula, labels=formula.labels, given=())
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
