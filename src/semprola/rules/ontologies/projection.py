"""What clauses say about some of their variables: the others are eliminated, and nothing that they imply is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable

from semprola.compiler.budget import Budget
from semprola.errors import CompilationBudgetError

Clause = frozenset[int]

_MOST_CLAUSES = 200_000


def projected(clauses: Iterable[Iterable[int]], keep: Collection[int], budget: Budget) -> set[Clause]:
    """Clauses over some variables that have a model exactly where the given clauses have one that extends it.

    Variables that are only in clauses of two literals are eliminated along paths of implications, all others by
    resolution (Davis and Putnam 1960), those with the fewest resolvents first.
    """
    kept = set(keep)
    given = [clause for clause in map(frozenset, clauses) if not any(-v in clause for v in clause)]
    longer: set[Clause] = {clause for clause in given if len(clause) > 2}
    inner = kept | {abs(v) for clause in longer for v in clause}
    found = longer | _along_paths([clause for clause in given if len(clause) <= 2], inner, budget)
    return _resolved(found, inner - kept, budget)


def _along_paths(clauses: Iterable[Clause], inner: set[int], budget: Budget) -> set[Clause]:
    """The clauses of at most two literals over the inner variables that follow from such clauses over all."""
    after: dict[int, list[int]] = defaultdict(list)
    found: set[Clause] = set()
    sources = inner | {-v for v in inner}
    for clause in clauses:
        if not clause:
            found.add(clause)
        elif len(clause) == 1:
            (literal,) = clause
            after[-literal].append(literal)
        else:
            first, second = clause
            after[-first].append(second)
            after[-second].append(first)
    found |= _contradiction(after, inner)
    for number, source in enumerate(sorted(sources)):
        if number % 256 == 0:
            budget.check("eliminating terms")
        seen, pending = {source}, [source]
        while pending:
            for literal in after.get(pending.pop(), ()):
                if literal in seen:
                    continue
                seen.add(literal)
                if abs(literal) in inner:
                    if literal != source:
                        found.add(frozenset((-source, literal)))
                else:
                    pending.append(literal)
    return found


def _contradiction(after: dict[int, list[int]], inner: set[int]) -> set[Clause]:
    """The empty clause, if the other variables contradict themselves: one and its negation imply each other."""
    import networkx as nx

    graph = nx.DiGraph(
        (a, b) for a, below in after.items() for b in below if abs(a) not in inner and abs(b) not in inner
    )
    for component in nx.strongly_connected_components(graph):
        if any(-literal in component for literal in component):
            return {frozenset()}
    return set()


def _resolved(clauses: set[Clause], gone: set[int], budget: Budget) -> set[Clause]:
    """Eliminate variables by resolution."""
    found = set(clauses)
    where: dict[int, set[Clause]] = defaultdict(set)
    for clause in found:
        for literal in clause:
            where[literal].add(clause)
    left = set(gone)
    while left:
        budget.check("eliminating terms")
        variable = min(left, key=lambda v: (len(where[v]) * len(where[-v]), v))
        left.discard(variable)
        ours, theirs = list(where[variable]), list(where[-variable])
        made = set()
        for one in ours:
            for other in theirs:
                clause = (one - {variable}) | (other - {-variable})
                if not any(-literal in clause for literal in clause):
                    made.add(clause)
        for clause in (*ours, *theirs):
            found.discard(clause)
            for literal in clause:
                where[literal].discard(clause)
        for clause in _smallest(made):
            found.add(clause)
            for literal in clause:
                where[literal].add(clause)
        if len(found) > _MOST_CLAUSES:
            raise CompilationBudgetError(
                f"more than {_MOST_CLAUSES:,} clauses remain: choose more of the related terms"
            )
    return _smallest(found)


def _smallest(clauses: Iterable[Clause]) -> set[Clause]:
    """The clauses that contain no other."""
    kept: set[Clause] = set()
    where: dict[int, set[Clause]] = defaultdict(set)
    for clause in sorted(clauses, key=len):
        if not clause:
            return {clause}
        if not any(other <= clause for literal in clause for other in where[literal]):
            kept.add(clause)
            where[min(clause)].add(clause)
    return kept
