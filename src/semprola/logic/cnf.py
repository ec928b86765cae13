"""A formula in conjunctive normal form over numbered variables, held as flat arrays."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from semprola.errors import FormatError, PropertyError
from semprola.logic.connectives import And, Bool, Or
from semprola.logic.formula import Formula
from semprola.logic.leaf import Leaf
from semprola.logic.messages import brief

# More than any compiler can handle; a larger number in a header is a mistake or an attack on memory.
MAX_VARIABLES = 10_000_000

# Bytes of literal values held at a time during evaluation.
_BLOCK_BYTES = 1 << 26


class Cnf(Leaf):
    """A conjunction of clauses over the variables 1..n; its labels are "1".."n", including unused ones.

    Literals are written as in DIMACS: ``v`` is variable v, ``-v`` its negation.

    Attributes:
        num_vars: the number n of declared variables.
        literals: the concatenated clauses, int32 ``[literals]``, read-only.
        offsets: clause i is ``literals[offsets[i]:offsets[i + 1]]``, int64 ``[clauses + 1]``, read-only.
        weights: the weight of each literal that has one, exact.
        show: the variables to project on, or None if there is no projection.

    Example:
        >>> cnf = Cnf(3, [[1, -2], [2, 3]])
        >>> cnf
        cnf(3 variables, 2 clauses)
        >>> cnf.labels
        ('1', '2', '3')
        >>> cnf.evaluate([[1, 1, 0], [0, 1, 0]])
        array([ True, False])
    """

    __slots__ = ("_digest", "literals", "num_vars", "offsets", "show", "weights")

    num_vars: int
    literals: NDArray[np.int32]
    offsets: NDArray[np.int64]
    weights: Mapping[int, Fraction]
    show: tuple[int, ...] | None
    _digest: bytes

    def __init__(
        self,
        num_vars: int,
        clauses: Iterable[Sequence[int]],
        *,
        weights: Mapping[int, Fraction] | None = None,
        show: Iterable[int] | None = None,
    ) -> None:
        """Check and store the clauses.

        Args:
            num_vars: the number of variables.
            clauses: each a sequence of literals; an empty clause makes the formula unsatisfiable.
            weights: weights of literals.
            show: variables to project on.

        Raises:
            FormatError: a literal is 0 or out of range.
        """
        if (
            isinstance(num_vars, bool)
            or not isinstance(num_vars, int | np.integer)
            or not 0 <= num_vars <= MAX_VARIABLES
        ):
            raise FormatError(f"the number of variables must be from 0 to {MAX_VARIABLES:,}, got {brief(num_vars)}")
        flat: list[int] = []
        ends = [0]
        for index, clause in enumerate(clauses):
            for literal in clause:
                flat.append(_checked(literal, int(num_vars), f"clause {index}"))
            ends.append(len(flat))
        self._store(int(num_vars), np.array(flat, dtype=np.int32), np.array(ends, dtype=np.int64), weights, show)

    @classmethod
    def from_arrays(
        cls,
        num_vars: int,
        literals: NDArray[np.int32],
        offsets: NDArray[np.int64],
        weights: Mapping[int, Fraction] | None = None,
        show: Iterable[int] | None = None,
    ) -> Cnf:
        """Return the formula with these arrays, whose literals the caller has checked."""
        cnf = cls.__new__(cls)
        cnf._store(num_vars, literals.astype(np.int32), offsets.astype(np.int64), weights, show)
        return cnf

    @property
    def clauses(self) -> list[list[int]]:
        """The clauses as lists of literals, rebuilt on each access."""
        flat, ends = self.literals.tolist(), self.offsets.tolist()
        return [flat[start:end] for start, end in pairwise(ends)]

    @property
    def num_clauses(self) -> int:
        """The number of clauses."""
        return len(self.offsets) - 1

    def to_formula(self) -> Formula:
        """Return the same constraint built from atoms; its labels leave out variables that occur in no clause.

        Example:
            >>> Cnf(2, [[1, -2], [2]]).to_formula()
            (1 | ~2) & 2
        """
        return And(self.clause_formulas())

    def clause_formulas(self) -> Iterator[Formula]:
        """Yield the clauses as formulas."""
        flat, ends = self.literals.tolist(), self.offsets.tolist()
        for start, end in pairwise(ends):
            yield Or([Bool(str(v)) if v > 0 else ~Bool(str(-v)) for v in flat[start:end]])

    @property
    def names(self) -> tuple[str, ...]:  # type: ignore[override]
        """("1", ..., "n")."""
        return tuple(map(str, range(1, self.num_vars + 1)))

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        """Return which rows satisfy every clause."""
        truth = np.ones(rows, dtype=bool)
        if self.num_clauses == 0:
            return truth
        if (np.diff(self.offsets) == 0).any():
            return ~truth
        used, variable = np.unique(np.abs(self.literals), return_inverse=True)
        negative = self.literals < 0
        table = [columns[str(v)] for v in used.tolist()]
        block = max(1, _BLOCK_BYTES // len(self.literals))
        for start in range(0, rows, block):
            values = np.stack([column[start : start + block] for column in table])
            holds = values[variable] ^ negative[:, None]
            truth[start : start + block] = np.logical_or.reduceat(holds, self.offsets[:-1], axis=0).all(axis=0)
        return truth

    def to_circuit(self) -> NoReturn:
        """Refuse: clauses need a general compiler."""
        raise PropertyError("a CNF has no direct construction as a circuit; compile it with semprola.compile")

    def describe(self) -> str:
        """Return the numbers of variables and clauses."""
        return f"cnf({self.num_vars} variables, {self.num_clauses} clauses)"

    def key(self) -> bytes:
        """Return a digest of the variables, clauses, weights and projection."""
        return self._digest

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle the arrays; what is derived from them is computed again."""
        return Cnf.from_arrays, (self.num_vars, self.literals, self.offsets, dict(self.weights), self.show)

    def _store(
        self,
        num_vars: int,
        literals: NDArray[np.int32],
        offsets: NDArray[np.int64],
        weights: Mapping[int, Fraction] | None,
        show: Iterable[int] | None,
    ) -> None:
        for array in (literals, offsets):
            array.setflags(write=False)
        self.num_vars, self.literals, self.offsets = num_vars, literals, offsets
        self.weights = MappingProxyType(
            {_checked(literal, num_vars, "weights"): Fraction(weight) for literal, weight in (weights or {}).items()}
        )
        self.show = None if show is None else tuple([abs(_checked(variable, num_vars, "show")) for variable in show])
        digest = hashlib.sha256()
        # Hexadecimal, because Python refuses the decimal text of very long integers.
        weighted = [f"{literal} {w.numerator:x} {w.denominator:x}" for literal, w in sorted(self.weights.items())]
        digest.update(repr((num_vars, len(offsets), self.show, weighted)).encode())
        digest.update(np.ascontiguousarray(offsets, dtype="<i8").tobytes())
        digest.update(np.ascontiguousarray(literals, dtype="<i4").tobytes())
        self._digest = digest.digest()


def _checked(literal: object, num_vars: int, where: str) -> int:
    if isinstance(literal, bool) or not isinstance(literal, int | np.integer) or not 0 < abs(literal) <= num_vars:
        raise FormatError(f"{where}: expected a literal from 1 to {num_vars} or its negative, got {brief(literal)}")
    return int(literal)
