"""Turns formulas and families into state machines along one order of the variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit, Vtree
from semprola.compiler.backends.automata.machine import (
    DEAD,
    TRUE,
    Machine,
    TooWideError,
    complement,
    conjoined,
    minimal,
    read,
)
from semprola.compiler.backends.sdd.diagrams import decisions
from semprola.compiler.backends.sdd.program import Program
from semprola.compiler.budget import Budget
from semprola.compiler.parts import counted_literals, leaf_circuit
from semprola.errors import CompilationBudgetError
from semprola.logic import Cnf, Formula, Kind, Leaf
from semprola.logic.rules import literals_of

_MOST_PARTS = 400
"""A formula with more parts is left to other back ends."""
_FEW = 8
"""A rule over at most this many variables is read from its truth table."""


class Machines:
    """The machine of every rule along one order; each is made once.

    Args:
        circuits: circuits of families that have already been built; shared between orders.
    """

    def __init__(
        self,
        index: Mapping[str, int],
        place: Sequence[int],
        most: int,
        budget: Budget,
        circuits: dict[Formula, Circuit | None],
    ) -> None:
        self.index, self.place, self.most, self.budget, self.circuits = index, place, most, budget, circuits
        self._known: dict[Formula, Machine | None] = {}

    def of(self, rule: Formula) -> Machine | None:
        """The machine of a rule; None if it cannot hold."""
        if rule not in self._known:
            direct = self._direct(rule)
            if isinstance(direct, Machine) or direct is None:
                self._known[rule] = direct
            else:
                self._compose(rule)
        return self._known[rule]

    def ordered(self, names: Sequence[str]) -> list[str]:
        """Names in the order of reading."""
        return sorted(names, key=lambda name: self.place[self.index[name]])

    def _direct(self, rule: Formula) -> Machine | str | None:
        """The machine of a rule, if it can be made without those of its parts; otherwise a text."""
        if rule.kind in (Kind.TRUE, Kind.FALSE):
            return TRUE if rule.kind is Kind.TRUE else None
        names = self.ordered(rule.labels)
        if len(names) <= _FEW:
            return self._tabulated(rule, names)
        literals = literals_of(rule.args) if rule.kind is Kind.OR else None
        if literals is not None:
            return self._count(tuple(literals), tuple(literals.values()), 1, len(literals))
        counted = counted_literals(rule)
        if counted is not None:
            return self._count(*counted, *rule.bounds)
        if rule.kind is Kind.XOR and all(arg.kind is Kind.ATOM for arg in rule.args):
            variables = [self.index[name] for name in names]
            return read(variables, 0, lambda odd, _, value: odd ^ value, bool, self.most)
        if isinstance(rule, Leaf) and not isinstance(rule, Cnf):
            return self._leaf(rule, names)
        return "by its parts"

    def _compose(self, rule: Formula) -> None:
        """The machines of a rule and its parts, from the bottom up."""
        nodes = rule.nodes()
        if len(nodes) > _MOST_PARTS:
            raise TooWideError
        for node in nodes:
            if node in self._known:
                continue
            direct = self._direct(node)
            if isinstance(direct, str):
                self.budget.check("following the rules along an order")
                direct = self._combined(node, [self._known[arg] for arg in node.args])
            self._known[node] = direct

    def _combined(self, node: Formula, parts: list[Machine | None]) -> Machine | None:
        if isinstance(node, Cnf):
            return self._all([self.of(clause) for clause in node.clause_formulas()])
        if node.kind is Kind.NOT:
            return complement(parts[0])
        if node.kind is Kind.AND:
            return self._all(parts)
        if node.kind is Kind.OR:
            return complement(self._all([complement(part) for part in parts]))
        if node.kind is Kind.IMPLIES:
            return complement(self._all([parts[0], complement(parts[1])]))
        if node.kind in (Kind.IFF, Kind.XOR):
            odd = reduce(self._differ, parts)
            return complement(odd) if node.kind is Kind.IFF else odd
        raise TooWideError  # a count of larger parts is left to other back ends

    def _all(self, parts: Sequence[Machine | None]) -> Machine | None:
        known = [part for part in parts if part is not None]
        return conjoined(known, self.place, self.most) if len(known) == len(parts) else None

    def _differ(self, a: Machine | None, b: Machine | None) -> Machine | None:
        ways = [self._all([a, complement(b)]), self._all([complement(a), b])]
        return complement(self._all([complement(way) for way in ways]))

    def _tabulated(self, rule: Formula, names: Sequence[str]) -> Machine | None:
        count = len(names)
        if not count:
            return TRUE if rule.evaluate({}) else None
        truth = rule.evaluate(_every_row(count), labels=names)
        low: list[npt.NDArray[np.int32]] = [np.arange(0, 2 << i, 2, dtype=np.int32) for i in range(count - 1)]
        high = [table + 1 for table in low]
        last = np.where(truth, 0, DEAD).astype(np.int32)
        variables = [self.index[name] for name in names]
        return minimal(variables, [*low, last[::2]], [*high, last[1::2]])

    def _count(self, names: Sequence[str], signs: Sequence[bool], lo: int, hi: int) -> Machine | None:
        """Between lo and hi literals hold."""
        sign = dict(zip(names, signs, strict=True))
        order = self.ordered(names)
        counts = [sign[name] for name in order]
        total = len(order)
        last = hi + 1 if hi < total else lo

        def step(seen: int, position: int, value: int) -> int | None:
            seen = min(seen + (value == counts[position]), last)
            return None if seen > hi or seen + total - position - 1 < lo else seen

        return read([self.index[name] for name in order], 0, step, lambda seen: lo <= seen <= hi, self.most)

    def _leaf(self, leaf: Leaf, names: Sequence[str]) -> Machine | None:
        reader = leaf.reader(names)
        variables = [self.index[name] for name in names]
        if reader is not None:
            return read(variables, reader.start, reader.step, reader.accept, self.most)
        if leaf not in self.circuits:
            self.circuits[leaf] = leaf_circuit(leaf, self.budget)
        circuit = self.circuits[leaf]
        return None if circuit is None else self._diagram(circuit, names, variables)

    def _diagram(self, circuit: Circuit, names: Sequence[str], variables: Sequence[int]) -> Machine | None:
        """The machine of any circuit along the order, made with PySDD."""
        if circuit.num_nodes > self.most:
            raise TooWideError
        number = {name: i for i, name in enumerate(names)}
        program = Program()
        root = program.add_circuit(circuit, np.array([number[name] for name in circuit.variables], dtype=np.int64))
        vtree = Vtree.right_linear(range(len(names)))
        try:
            start, branches = decisions(program, root, vtree, self.budget.limited(self.most))
        except CompilationBudgetError as error:
            if error.resource != "nodes":
                raise
            raise TooWideError from None

        def step(state: int, position: int, value: int) -> int | None:
            found = branches.get(state)
            if found is None or found[0] != position:
                return state
            return found[2] if value else found[1]

        return read(variables, start, step, lambda state: state == 0, self.most)


def _every_row(count: int) -> npt.NDArray[np.uint8]:
    """All assignments of some variables; the first variable changes slowest: [2^count, count]."""
    return (np.arange(1 << count)[:, None] >> np.arange(count - 1, -1, -1) & 1).astype(np.uint8)
