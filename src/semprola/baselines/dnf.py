"""Disjunctive normal forms with a limit on the number of terms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod

from semprola.compiler.families import FamilyReader
from semprola.errors import CompilationBudgetError, UnsatisfiableError
from semprola.logic import Formula
from semprola.logic.algebra import read

Term = frozenset[tuple[str, bool]]
"""A conjunction of literals: names and signs."""


def terms_of(formula: Formula, most: int) -> list[Term]:
    """The terms of a disjunctive normal form, sorted, without those that another term subsumes.

    Raises:
        CompilationBudgetError: if the expanded formula has more than `most` terms; the message says how many.
        UnsatisfiableError: if there is no term.

    Example:
        >>> from semprola.logic import parse
        >>> [sorted(term) for term in terms_of(parse("a -> b & c"), 10)]
        [[('a', False)], [('b', True), ('c', True)]]
    """
    families, counting, writing = FamilyReader(), _Counting(), _Writing(most)
    try:
        terms = read(formula, writing, families.through(writing))
    except _TooMany:
        count = read(formula, counting, families.through(counting))
        shown = f"{count:,}" if count < 10**12 else f"about 10^{len(str(count)) - 1}"
        raise CompilationBudgetError(
            f"the constraint's disjunctive normal form has up to {shown} terms, more than {most:,}: "
            "raise max_terms, or use sp.SPL, which does not need it",
            resource="terms",
            limit=most,
            spent=float(count) if count < 10**300 else float("inf"),
            phase="disjunctive normal form",
        ) from None
    if not terms:
        raise UnsatisfiableError("the constraint has no model: no term of its disjunctive normal form is possible")
    return sorted(terms, key=lambda term: (len(term), sorted(term)))


class _Counting:
    """The largest possible number of terms, before any is dropped."""

    true, false = 1, 0

    def literal(self, name: str, positive: bool) -> int:
        return 1

    def both(self, parts: Sequence[int]) -> int:
        return prod(parts)

    def either(self, parts: Sequence[int]) -> int:
        return sum(parts)


class _TooMany(Exception):
    """There are more terms than allowed."""


class _Writing:
    """The terms themselves, as long as they are few."""

    true: frozenset[Term] = frozenset([frozenset()])
    false: frozenset[Term] = frozenset()

    def __init__(self, most: int) -> None:
        self.most = most

    def literal(self, name: str, positive: bool) -> frozenset[Term]:
        return frozenset([frozenset([(name, positive)])])

    def both(self, parts: Sequence[frozenset[Term]]) -> frozenset[Term]:
        product = self.true
        for part in parts:
            joined = (a | b for a in product for b in part)
            product = self._few(term for term in joined if not any((name, not on) in term for name, on in term))
        return product

    def either(self, parts: Sequence[frozenset[Term]]) -> frozenset[Term]:
        return self._few(frozenset().union(*parts))

    def _few(self, terms: Iterable[Term]) -> frozenset[Term]:
        """The terms that no other subsumes."""
        kept: set[Term] = set()
        for term in sorted(set(terms), key=len):
            if not any(other <= term for other in kept):
                kept.add(term)
                if len(kept) > self.most:
                    raise _TooMany
        return frozenset(kept)
