"""Finds patterns of labels that do not occur in rows, although chance alone would let them occur.

A pattern is a set of literals; the rule that it stands for says that they do not hold together. Literal 2v says that
label v is 1, and literal 2v + 1 that it is 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from semprola.compiler.budget import Budget
from semprola.rules.chance import Real, Whole, log_chance

Pattern = tuple[int, ...]
Counts = NDArray[np.float32]
_SCREEN = 1e-3
"""Rows of the first half must speak this clearly for a pattern, or it is not tested on the others."""


@dataclass(frozen=True)
class Evidence:
    """What rows say about patterns; each array has one value per pattern.

    Attributes:
        exceptions: rows in which the pattern occurs.
        support: rows in which all of it but one literal occurs, for the literal that makes this smallest.
        expected: rows in which it would occur if one literal were independent of the others, at least.
        log_p: the log-probability of so few exceptions, if one literal were independent of the others, at most.
    """

    exceptions: Whole
    support: Whole
    expected: Real
    log_p: Real

    def holds(self, rate: float) -> NDArray[np.bool_]:
        """Whether exceptions are at most this share of the support."""
        return (self.support > 0) & (self.exceptions <= rate * self.support)


def literals_of(values: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Rows of 0, 1 and NaN as literals that are known to hold [rows, 2 * labels]."""
    return np.stack([values == 1, values == 0], axis=2).reshape(len(values), 2 * values.shape[1])


def broken(pattern: Pattern, literals: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """In which rows a pattern occurs [rows]."""
    return np.asarray(literals[:, list(pattern)].all(1))


def evidence(patterns: list[Pattern], literals: NDArray[np.bool_], budget: Budget) -> Evidence:
    """What rows say about patterns of any length; a row counts if all labels of the pattern are observed in it."""
    seen, support = np.zeros(len(patterns), np.int64), np.zeros(len(patterns), np.int64)
    expected, log_p = np.full(len(patterns), np.inf), np.full(len(patterns), -np.inf)
    columns = np.ascontiguousarray(literals.T)
    for size in sorted({len(pattern) for pattern in patterns}):
        budget.check("testing rules")
        which = np.array([i for i, pattern in enumerate(patterns) if len(pattern) == size])
        single, rest, both, rows = (np.zeros((len(which), size), np.int64) for _ in range(4))
        for at, i in enumerate(which.tolist()):
            held = columns[list(patterns[i])]
            denied = columns[[literal ^ 1 for literal in patterns[i]]]
            if not (held | denied).all():
                known = (held | denied).all(0)
                held = held[:, known]
            missing = size - held.sum(0)
            rows[at] = held.shape[1]
            single[at] = held.sum(1)
            both[at] = (missing == 0).sum()
            rest[at] = both[at] + (~held[:, missing == 1]).sum(1)
        seen[which], support[which] = both[:, 0], rest.min(1)
        expected[which] = (single * rest / np.maximum(rows, 1)).min(1)
        log_p[which] = log_chance(both, single, rest, rows).max(1)
    return Evidence(seen, support, expected, log_p)


def candidates(literals: NDArray[np.bool_], size: int, rate: float, budget: Budget) -> list[Pattern]:
    """Patterns of two literals up to `size` (2 or 3) that rows speak against clearly, and "none of a group" for groups
    of labels that exclude each other.
    """
    held = literals.astype(np.float32)
    pairs = held.T @ held
    found = _pairs(pairs, len(held), rate)
    if size >= 3:
        found += _triples(held, pairs, rate, budget)
    return found + _groups(literals, pairs, found, rate)


def _pairs(pairs: Counts, rows: int, rate: float) -> list[Pattern]:
    single = np.diag(pairs)
    x, y = np.triu_indices(len(pairs), 1)
    least = np.minimum(single[x], single[y])
    kept = (x // 2 != y // 2) & (least > 0) & (pairs[x, y] <= rate * least)
    x, y = x[kept], y[kept]
    log_p = log_chance(_whole(pairs[x, y]), _whole(single[x]), _whole(single[y]), np.full(len(x), rows))
    kept = log_p <= np.log(_SCREEN)
    return list(zip(x[kept].tolist(), y[kept].tolist(), strict=True))


def _triples(held: Counts, pairs: Counts, rate: float, budget: Budget) -> list[Pattern]:
    """For each literal z, pairs of literals of earlier labels, counted in the rows in which z holds."""
    rows, count = held.shape
    labels = count // 2
    tried = max(8 * labels * (labels - 1) * (labels - 2) / 6, 1.0)
    limit = np.log(min(_SCREEN, 10 / tried))
    single = np.diag(pairs)
    found: list[Pattern] = []
    for label in range(2, labels):
        budget.check("looking for rules of three literals")
        below = 2 * label
        x, y = np.triu_indices(below, 1)
        for z in (below, below + 1):
            chosen = held[held[:, z] > 0, :below]
            seen = (chosen.T @ chosen)[x, y]
            xz, yz, xy = pairs[x, z], pairs[y, z], pairs[x, y]
            least = np.minimum(np.minimum(xz, yz), xy)
            at = np.flatnonzero((least > 0) & (seen <= rate * least) & (x // 2 != y // 2))
            splits = ((xz, single[y]), (yz, single[x]), (xy, np.full(len(x), single[z])))
            for pair, other in splits:  # at first without the test: less than one row by chance is no surprise
                at = at[pair[at] * other[at] > rows]
            for pair, other in splits:
                few, of, by = (_whole(each[at]) for each in (seen, pair, other))
                at = at[log_chance(few, of, by, np.full(len(at), rows)) <= limit]
            found += [(i, j, z) for i, j in zip(x[at].tolist(), y[at].tolist(), strict=True)]
    return found


def _groups(literals: NDArray[np.bool_], pairs: Counts, found: list[Pattern], rate: float) -> list[Pattern]:
    """Groups of labels that exclude each other and of which nearly every row has one; "none" is a pattern."""
    excluding = exclusions(found)
    groups: dict[Pattern, None] = {}
    for start in sorted(excluding):
        group = clique([start], excluding)
        free = literals[:, [2 * label + 1 for label in group]].all(1)
        while free.sum() > rate * len(literals):
            inside = [2 * label for label in group]
            share = pairs[np.ix_(range(0, len(pairs), 2), inside)].max(1)
            apart = share <= rate * np.diag(pairs)[::2]
            gain = np.where(apart, literals[free, ::2].sum(0), 0)
            if not gain.any():
                break
            group.append(int(gain.argmax()))
            free &= literals[:, 2 * group[-1] + 1]
        if free.sum() <= rate * len(literals):
            groups[tuple(sorted(2 * label + 1 for label in group))] = None
    return [group for group in groups if group not in set(found)]


def exclusions(patterns: Iterable[Pattern]) -> dict[int, set[int]]:
    """For each label, the labels that exclude it by a pattern of two."""
    excluding: dict[int, set[int]] = {}
    for pattern in patterns:
        if len(pattern) == 2 and not any(literal % 2 for literal in pattern):
            for one, other in (pattern, pattern[::-1]):
                excluding.setdefault(one // 2, set()).add(other // 2)
    return excluding


def clique(group: list[int], excluding: Mapping[int, set[int]]) -> list[int]:
    """Labels that all exclude each other, with these among them; those that exclude most labels are tried first."""
    open_ = set.intersection(*(excluding[label] for label in group))
    while open_:
        best = min(open_, key=lambda label: (-len(excluding[label] & open_), label))
        group.append(best)
        open_ = open_ & excluding[best]
    return group


def _whole(counts: Counts) -> Whole:
    return counts.astype(np.int64)
