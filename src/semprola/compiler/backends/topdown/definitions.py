"""Finds and removes variables that the others determine: for counting, where only the number of models matters.

A circuit over all variables has to express every definition, which can take exponential size if there are hundreds of
definitions with shared inputs. The number of models does not depend on them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from semprola.circuit.builder import watched

Clause = frozenset[int]

_MOST_RESOLVENTS = 400
"""A variable with more pairs of clauses to resolve is kept."""


def defined_variables(
    clauses: Iterable[Sequence[int]], candidates: Iterable[int], check: Callable[[], None] | None = None
) -> list[int]:
    """Variables that are the conjunction or disjunction of other literals in every model.

    The remaining variables determine all of them: no definition is circular.
    """
    listed = [frozenset(clause) for clause in watched(clauses, check)]
    pairs = {clause for clause in listed if len(clause) == 2}
    holding: dict[int, list[Clause]] = {}
    for clause in watched(listed, check):
        for literal in clause:
            holding.setdefault(literal, []).append(clause)
    inputs: dict[int, set[int]] = {}
    for variable in watched(candidates, check):
        for literal in (variable, -variable):
            # the clause: if the literal is false, one of the others holds; the pairs: if it is true, none of them does
            found = next(
                (
                    clause
                    for clause in holding.get(literal, ())
                    if all(frozenset((-literal, -other)) in pairs for other in clause if other != literal)
                    and not _reaches(variable, {abs(other) for other in clause} - {variable}, inputs)
                ),
                None,
            )
            if found is not None:
                inputs[variable] = {abs(other) for other in found} - {variable}
                break
    return list(inputs)


def without(
    clauses: Iterable[Sequence[int]], hidden: Iterable[int], check: Callable[[], None] | None = None
) -> tuple[list[tuple[int, ...]], list[int]]:
    """Clauses with the same models over the other variables; hidden variables are eliminated if that adds no clauses.

    Eliminating a variable replaces its clauses by all their resolvents, which is existential quantification.

    Returns:
        The clauses, and the hidden variables that were not eliminated.
    """
    holding: dict[int, set[Clause]] = {}
    kept: dict[Clause, None] = {}

    def add(clause: Clause) -> None:
        if clause not in kept and not any(-literal in clause for literal in clause):
            kept[clause] = None
            for literal in clause:
                holding.setdefault(literal, set()).add(clause)

    def remove(clause: Clause) -> None:
        del kept[clause]
        for literal in clause:
            holding[literal].discard(clause)

    for listed in watched(clauses, check):
        add(frozenset(listed))
    left = list(hidden)
    waiting = set(left)
    while waiting:
        for variable in [v for v in left if v in waiting]:
            if check is not None:
                check()
            waiting.discard(variable)
            yes, no = list(holding.get(variable, ())), list(holding.get(-variable, ()))
            if len(yes) * len(no) > _MOST_RESOLVENTS:
                continue
            made = {resolvent for a in yes for b in no if (resolvent := _resolvent(a, b, variable)) is not None}
            if len(made) > len(yes) + len(no):
                continue
            for clause in (*yes, *no):
                waiting.update(abs(literal) for literal in clause)
                remove(clause)
            for clause in sorted(made, key=sorted):
                add(clause)
            left.remove(variable)
        waiting &= set(left)
    return [tuple(sorted(clause, key=abs)) for clause in kept], left


def _reaches(variable: int, start: set[int], inputs: dict[int, set[int]]) -> bool:
    """Whether some variables depend on a variable, directly or indirectly."""
    seen, stack = set(start), list(start)
    while stack:
        v = stack.pop()
        if v == variable:
            return True
        new = inputs.get(v, set()) - seen
        seen |= new
        stack.extend(new)
    return False


def _resolvent(a: Clause, b: Clause, variable: int) -> Clause | None:
    """The resolvent of two clauses on a variable; None if it always holds."""
    joined = (a - {variable}) | (b - {-variable})
    return None if any(-literal in joined for literal in joined) else joined
