"""Straight-line programs over Boolean functions, which PySDD runs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from semprola.circuit import Circuit, Vtree
from semprola.circuit.fold import fold
from semprola.circuit.transforms import smooth
from semprola.compiler.backends.sdd.worker import AND, CONSTANT, ITE, NOT, OR
from semprola.compiler.backends.sdd.worker import LITERAL as VARIABLE


class Program:
    """A straight-line program over Boolean functions, built bottom-up; equal steps are shared, constants are folded."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, int, int, int]] = []
        self._known: dict[tuple[int, int, int, int], int] = {}
        self.false = self._step(CONSTANT, 0)
        self.true = self._step(CONSTANT, 1)

    def __len__(self) -> int:
        return len(self.steps)

    def literal(self, signed: int) -> int:
        """The function of a literal, +(v + 1) or -(v + 1)."""
        return self._step(VARIABLE, signed)

    def constant(self, value: bool) -> int:
        """True or false."""
        return self.true if value else self.false

    def conjoin(self, a: int, b: int) -> int:
        """a and b."""
        if a == b or b == self.true:
            return a
        if a == self.true:
            return b
        if self.false in (a, b) or self._opposite(a, b):
            return self.false
        return self._step(AND, min(a, b), max(a, b))

    def disjoin(self, a: int, b: int) -> int:
        """a or b."""
        if a == b or b == self.false:
            return a
        if a == self.false:
            return b
        if self.true in (a, b) or self._opposite(a, b):
            return self.true
        return self._step(OR, min(a, b), max(a, b))

    def negate(self, a: int) -> int:
        """not a."""
        kind, value = self.steps[a][:2]
        if kind == CONSTANT:
            return self.constant(not value)
        if kind == VARIABLE:
            return self.literal(-value)
        return value if kind == NOT else self._step(NOT, a)

    def choose(self, test: int, yes: int, no: int) -> int:
        """if test then yes else no."""
        if yes == no:
            return yes
        if self.steps[test][0] == CONSTANT:
            return yes if test == self.true else no
        if yes in (self.true, self.false):
            return self.disjoin(test, no) if yes == self.true else self.conjoin(self.negate(test), no)
        if no in (self.true, self.false):
            return self.disjoin(self.negate(test), yes) if no == self.true else self.conjoin(test, yes)
        return self._step(ITE, test, yes, no)

    def add_circuit(self, circuit: Circuit, rename: npt.NDArray[np.int64]) -> int:
        """The function of a circuit, its variable v renamed to rename[v]."""
        if np.any(circuit.zero_suppressed):
            circuit = smooth(circuit, circuit.zero_suppressed)

        def literal(signed: int) -> int:
            v = int(rename[abs(signed) - 1]) + 1
            return self.literal(v if signed > 0 else -v)

        def product(_: int, parts: list[int]) -> int:
            result = self.true
            for part in reversed(parts):
                result = self.conjoin(result, part)
            return result

        def either(_: int, parts: list[int]) -> int:
            result = self.false
            for part in reversed(parts):
                result = self.disjoin(result, part)
            return result

        return fold(circuit, literal, product, either)

    def _opposite(self, a: int, b: int) -> bool:
        (kind_a, value_a), (kind_b, value_b) = self.steps[a][:2], self.steps[b][:2]
        if kind_a == kind_b == VARIABLE:
            return value_a == -value_b
        return (kind_a == NOT and value_a == b) or (kind_b == NOT and value_b == a)

    def _step(self, kind: int, a: int, b: int = 0, c: int = 0) -> int:
        key = (kind, a, b, c)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = len(self.steps)
            self.steps.append(key)
        return known


def request_arrays(program: Program, roots: list[int], vtree: Vtree) -> dict[str, npt.NDArray[np.integer]]:
    """The steps of the program that the roots need, and the vtree; they are checked, since a C library reads them."""
    table = np.array(program.steps, dtype=np.int32).reshape(-1, 4)
    op, a, b, c = (np.ascontiguousarray(column) for column in table.T)
    uses = [np.isin(op, kinds) for kinds in ((AND, OR, NOT, ITE), (AND, OR, ITE), (ITE,))]
    needed = np.zeros(len(op), dtype=bool)
    needed[roots] = True
    listed = needed.tolist()
    for i in range(len(op) - 1, -1, -1):
        if listed[i]:
            for column, used in zip((a, b, c), uses, strict=True):
                if used[i]:
                    listed[column[i]] = True
    kept = np.flatnonzero(np.array(listed))
    renumber = np.zeros(len(op), dtype=np.int32)
    renumber[kept] = np.arange(len(kept), dtype=np.int32)
    columns = [
        np.where(used, renumber[np.where(used, column, 0)], column)[kept]
        for column, used in zip((a, b, c), uses, strict=True)
    ]
    variable = np.abs(columns[0][op[kept] == VARIABLE])
    if np.any(variable < 1) or np.any(variable > vtree.num_variables):
        raise ValueError("a literal of the program is not a variable of the vtree")
    return {
        "left": vtree.left,
        "right": vtree.right,
        "variable": vtree.variable,
        "op": op[kept].astype(np.int8),
        "a": columns[0].astype(np.int32),
        "b": columns[1].astype(np.int32),
        "c": columns[2].astype(np.int32),
        "roots": renumber[np.asarray(roots, dtype=np.int64)],
    }
