"""The PySDD back end: conjuncts become a program that runs over a vtree chosen for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from semprola.circuit import Circuit, Vtree
from semprola.compiler.backends import Components
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.sdd.program import Program
from semprola.compiler.budget import Budget
from semprola.compiler.join import join_vtrees
from semprola.compiler.parts import leaf_circuits
from semprola.compiler.vtree_choice import choose_vtree
from semprola.errors import UnsatisfiableError
from semprola.logic import Cnf, Formula, Kind
from semprola.logic.rules import literal_of


def compile_sdd(components: Components, budget: Budget, given: Collection[str] = ()) -> Circuit:
    """A circuit structured by a vtree; see `Backend`."""
    return run(*translated(components, budget), budget)


_CHECK_EVERY = 2048
_SIDE_BY_SIDE = 8


def translated(components: Components, budget: Budget) -> tuple[Program, list[int], Vtree, tuple[str, ...]]:
    """A conjunction as a program.

    Returns:
        The program, the steps of the groups, a vtree over all variables, and their names.
    """
    program = Program()
    names: list[str] = []
    vtrees = []
    roots = []
    for component in components:
        budget.check("choosing a variable order")
        own = list(dict.fromkeys(name for conjunct in component for name in conjunct.labels))
        circuits = leaf_circuits(component, budget)
        solvable = {leaf: circuit for leaf, circuit in circuits.items() if circuit is not None}
        vtree = choose_vtree(component, own, solvable, lambda: budget.check("choosing a variable order"))
        translation = _Translation(
            program, {name: v for v, name in enumerate(own)}, len(names), vtree, circuits, budget
        )
        roots.append(translation.conjunction(component))
        vtrees.append((vtree, np.arange(len(own)) + len(names)))
        names.extend(own)
    whole = join_vtrees(vtrees, ())
    if whole is None:
        raise UnsatisfiableError("the constraint has no model")
    return program, roots, whole, tuple(names)


class _Translation:
    """Translates formulas over one vtree to steps of a program: no recursion, and each part once per sign needed."""

    def __init__(
        self,
        program: Program,
        index: Mapping[str, int],
        offset: int,
        vtree: Vtree,
        circuits: Mapping[Formula, Circuit | None],
        budget: Budget,
    ) -> None:
        self.program, self.index, self.offset, self.vtree = program, index, offset, vtree
        self.circuits, self.budget = circuits, budget
        self.position = vtree.position.tolist()
        self.known: dict[tuple[Formula, bool], int] = {}
        self.spans: dict[Formula, tuple[int, int]] = {}
        self.expanded: dict[Formula, Formula] = {}
        self.count = 0

    def conjunction(self, conjuncts: Sequence[Formula]) -> int:
        """All conjuncts, joined from the bottom of the vtree to its top, which keeps intermediate results small."""
        steps = [self.translate(conjunct) for conjunct in conjuncts]
        spans = np.array([self.span(conjunct) for conjunct in conjuncts], dtype=np.int32)
        home = self.vtree.lowest_covering(spans[:, 0], spans[:, 1]).tolist()
        waiting: dict[int, list[int]] = {}
        for step, node in zip(steps, home, strict=True):
            waiting.setdefault(node, []).append(step)
        left, right = self.vtree.left.tolist(), self.vtree.right.tolist()
        done: list[int] = []
        for node in range(len(self.vtree)):
            result = self.program.true
            if left[node] >= 0:
                result = self.program.conjoin(done[left[node]], done[right[node]])
            for step in waiting.get(node, ()):
                result = self.program.conjoin(result, step)
            done.append(result)
        return done[-1]

    def translate(self, formula: Formula) -> int:
        """The step that computes a formula."""
        stack = [(formula, True)]
        while stack:
            goal = stack[-1]
            if goal in self.known:
                stack.pop()
                continue
            parts = self._parts(*goal)
            missing = [part for part in parts if part not in self.known]
            if missing:
                stack.extend(reversed(missing))
                continue
            self.known[goal] = self._combine(*goal, parts)
            stack.pop()
            self.count += 1
            if self.count % _CHECK_EVERY == 0:
                self.budget.check("translating the formula", 0)
        return self.known[formula, True]

    def span(self, formula: Formula) -> tuple[int, int]:
        """The first and last position of a formula's variables in the vtree's order."""
        stack = [formula]
        while stack:
            node = stack[-1]
            if node in self.spans:
                stack.pop()
                continue
            missing = [arg for arg in node.args if arg not in self.spans]
            if missing:
                stack.extend(missing)
                continue
            names = (node.name,) if node.kind is Kind.ATOM else node.labels if node.kind is Kind.CUSTOM else ()
            places = [self.position[self.index[name]] for name in names]
            ends = [self.spans[arg] for arg in node.args]
            first = min([*places, *(end[0] for end in ends)], default=len(self.position) - 1)
            last = max([*places, *(end[1] for end in ends)], default=0)
            self.spans[node] = (first, max(first, last))
            stack.pop()
        return self.spans[formula]

    def _parts(self, node: Formula, positive: bool) -> list[tuple[Formula, bool]]:
        """The parts, each with its sign, that must be known before a node can be combined."""
        if node.kind is Kind.NOT:
            return [(node.args[0], not positive)]
        if node.kind in (Kind.AND, Kind.OR):
            return [(arg, positive) for arg in node.args]
        if node.kind is Kind.IMPLIES:
            return [(node.args[0], not positive), (node.args[1], positive)]
        if isinstance(node, Cnf):
            return [(self.expanded.setdefault(node, node.to_formula()), positive)]
        return [(arg, True) for arg in node.args]

    def _combine(self, node: Formula, positive: bool, parts: Sequence[tuple[Formula, bool]]) -> int:
        program = self.program
        steps = [self.known[part] for part in parts]
        kind = node.kind
        if kind in (Kind.TRUE, Kind.FALSE):
            return program.constant((kind is Kind.TRUE) == positive)
        if kind is Kind.ATOM:
            variable = self.index[node.name] + self.offset + 1
            return program.literal(variable if positive else -variable)
        if kind is Kind.NOT or isinstance(node, Cnf):
            return steps[0]
        if kind in (Kind.AND, Kind.OR, Kind.IMPLIES):
            return self._lattice(parts, conjunctive=(kind is Kind.AND) == positive)
        if kind is Kind.IFF:
            return program.choose(steps[0], *self._signed(steps[1], positive))
        if kind is Kind.CUSTOM:
            return self._custom(node, positive)
        ordered = [self.known[part] for part in self._bottom_up(parts)]
        if kind is Kind.XOR:
            result = program.constant(not positive)
            for step in ordered:
                result = program.choose(step, *reversed(self._signed(result, True)))
            return result
        return self._count(ordered, *node.bounds, positive)

    def _signed(self, step: int, positive: bool) -> tuple[int, int]:
        negative = self.program.negate(step)
        return (step, negative) if positive else (negative, step)

    def _bottom_up(self, parts: Sequence[tuple[Formula, bool]]) -> list[tuple[Formula, bool]]:
        """Parts from the end of the vtree's order to its start: those added later are above."""
        return sorted(parts, key=lambda part: self.span(part[0])[0], reverse=True)

    def _lattice(self, parts: Sequence[tuple[Formula, bool]], conjunctive: bool) -> int:
        """A conjunction or disjunction: literals are joined one by one from below, many larger parts in pairs."""
        join = self.program.conjoin if conjunctive else self.program.disjoin
        steps = [self.known[part] for part in self._bottom_up(parts)]
        if len(steps) > _SIDE_BY_SIDE and any(literal_of(part) is None for part, _ in parts):
            while len(steps) > 1:
                pairs = [join(*steps[i : i + 2]) for i in range(0, len(steps) - 1, 2)]
                steps = pairs + steps[2 * len(pairs) :]
            return steps[0]
        result = self.program.constant(conjunctive)
        for step in steps:
            result = join(result, step)
        return result

    def _count(self, steps: Sequence[int], lo: int, hi: int, positive: bool) -> int:
        """Whether lo <= number of true steps <= hi: one function per number counted above; decided ones are shared."""
        choose, yes, no = self.program.choose, self.program.constant(positive), self.program.constant(not positive)
        below: list[int] = []
        for remaining, step in enumerate((-1, *steps)):
            above = len(steps) - remaining
            states = []
            for seen in range(above + 1):
                if seen > hi or seen + remaining < lo:
                    states.append(no)
                elif seen >= lo and seen + remaining <= hi:
                    states.append(yes)
                else:
                    states.append(choose(step, below[seen + 1], below[seen]))
            below = states
            self.budget.check("translating the formula", 0)
        return below[0]

    def _custom(self, leaf: Formula, positive: bool) -> int:
        circuit = self.circuits[leaf]
        if circuit is None:
            return self.program.constant(not positive)
        rename = np.array([self.index[name] + self.offset for name in circuit.variables], dtype=np.int64)
        step = self.program.add_circuit(circuit, rename)
        return step if positive else self.program.negate(step)
