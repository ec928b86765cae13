"""Exact linear (pseudo-Boolean) inequalities and equations over labels."""

from __future__ import annotations

import functools
import itertools
import math
import operator
from bisect import bisect_right
from collections.abc import Hashable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from numbers import Rational
from typing import Any

import numpy as np
from numpy.typing import NDArray

from semprola.circuit import Circuit
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import Diagram, decision_diagram
from semprola.compiler.emission import FALSE_ID, TRUE_ID
from semprola.constraints.family import Family, label_names
from semprola.errors import LabelError, UnsatisfiableError
from semprola.logic import Reader
from semprola.logic.messages import brief

_CHECK_EVERY = 512
_MOST_CLAUSES, _MOST_TERMS = 24, 12
"""A sum that needs more clauses, or has more labels, is not written as clauses."""
_OPERATORS = {"<=": "le", ">=": "ge", "==": "eq", "<": "lt", ">": "gt", "!=": "ne"}


def linear(coefficients: Mapping[str, Any], op: str, bound: Any) -> Linear:
    """A weighted count of labels compared with a bound.

    The labels are read from the largest coefficient to the smallest. Sums that leave the same possibilities share a
    node, so a diagram has at most n times as many nodes as there are different sums, and for an inequality often far
    fewer. Coefficients with many digits, however, can need exponentially many.

    Args:
        coefficients: the weight of each label: integers, fractions, decimals, or floats, which stand for the decimal
            number that they print as (0.1 is one tenth).
        op: one of ``<= >= == < > !=``.
        bound: what the weighted count is compared with.

    Raises:
        LabelError: there are no labels, or a label is not a string.
        ValueError: the operator is unknown, or a number is not finite.

    Example:
        >>> weight = linear({"tent": 3, "stove": 2, "book": 1}, "<=", 4)
        >>> weight.to_circuit().model_count()
        6
        >>> weight.evaluate({"tent": 1, "stove": 1, "book": 0})
        False
    """
    if not isinstance(coefficients, Mapping):
        raise LabelError(f"linear: coefficients must map labels to numbers, not {type(coefficients).__name__}")
    names = label_names(coefficients, "linear")
    if not isinstance(op, str) or op not in _OPERATORS:
        raise ValueError(f"linear: the operator must be one of {' '.join(_OPERATORS)}, not {brief(op)}")
    weights = [_exact(coefficients[name], f"the coefficient of {name!r}") for name in names]
    return Linear(names, tuple(weights), op, _exact(bound, "the bound"))


class Linear(Family):
    """A weighted count compared with a bound; see :func:`linear`."""

    advice = "use coefficients with fewer digits"

    def __init__(self, names: tuple[str, ...], weights: tuple[Fraction, ...], op: str, bound: Fraction) -> None:
        self.names, self.weights, self.op, self.bound = names, weights, op, bound
        self._short: list[tuple[tuple[int, ...], ...] | None] = []

    def key(self) -> Hashable:
        return self.names, self.weights, self.op, self.bound

    def describe(self) -> str:
        return f"linear({len(self.names)} labels, {self.op} {self.bound})"

    def evaluate_columns(self, columns: Mapping[str, NDArray[np.bool_]], rows: int) -> NDArray[np.bool_]:
        scale = math.lcm(*(w.denominator for w in (*self.weights, self.bound)))
        weights = [int(w * scale) for w in self.weights]
        bound = int(self.bound * scale)
        fits = sum(map(abs, weights)) + abs(bound) < 2**62
        total = np.zeros(rows, np.int64 if fits else object)  # objects: Python integers of any size
        for name, weight in zip(self.names, weights, strict=True):
            total = total + columns[name].astype(total.dtype) * weight
        compare = getattr(operator, _OPERATORS[self.op])
        return np.asarray(compare(total, bound), bool)

    def reader(self, order: Sequence[str]) -> Reader:
        weights, bound = self._whole()
        weight = dict(zip(self.names, weights, strict=True))
        read = [weight[name] for name in order]
        if self.op in ("==", "!="):
            return self._equation_reader(read, bound)
        return _at_most_reader(read, self._most(bound))

    def as_clauses(self) -> tuple[tuple[int, ...], ...] | None:
        if not self._short:
            self._short.append(self._clauses())
        return self._short[0]

    def _clauses(self) -> tuple[tuple[int, ...], ...] | None:
        if self.op == "!=" or len(self.names) > _MOST_TERMS:
            return None
        weights, bound = self._whole()
        found = _covers(tuple(weights), self._most(bound))
        if found is not None and self.op == "==":
            above = _covers(tuple(-w for w in weights), math.floor(-bound))
            found = None if above is None else (*found, *above)
        return found

    def _build(self, budget: Budget) -> Circuit:
        weights, bound = self._whole()
        order = sorted(range(len(weights)), key=lambda v: -abs(weights[v]))
        read = [weights[v] for v in order]
        if self.op in ("==", "!="):
            return self._equation(order, read, bound, budget)
        return _AtMost(read, self._most(bound), budget, [self.names[v] for v in order]).circuit(self.names, order)

    def _whole(self) -> tuple[list[int], Fraction]:
        """Integer weights without a common divisor, and the matching bound; ``>=`` and ``>`` are turned around."""
        sign = -1 if self.op in (">=", ">") else 1
        scale = sign * math.lcm(*(w.denominator for w in self.weights))
        weights = [w.numerator * (scale // w.denominator) for w in self.weights]
        common = math.gcd(*weights) or 1
        return [w // common for w in weights], self.bound * Fraction(scale, common)

    def _most(self, bound: Fraction) -> int:
        return math.ceil(bound) - 1 if self.op in ("<", ">") else math.floor(bound)

    def _equation(self, order: list[int], weights: list[int], bound: Fraction, budget: Budget) -> Circuit:
        machine = self._equation_reader(weights, bound)
        if self.op == "==" and machine.start is None:
            raise UnsatisfiableError(f"{budget.what} has no model")
        return decision_diagram(
            self.names, machine.start, machine.step, machine.accept, order=order, zero_suppressed=False, budget=budget
        )

    def _equation_reader(self, weights: list[int], bound: Fraction) -> Reader:
        """A state is the rest of the bound; once that is out of reach, "==" fails and "!=" holds."""
        lowest, highest = _reach(weights)
        # the rest must be a multiple of the greatest common divisor of the weights to come
        divisor = [*itertools.accumulate(reversed(weights), math.gcd, initial=0)][::-1]
        equal = self.op == "=="
        settled = highest[0] + abs(math.floor(bound)) + 1

        def possible(rest: int, position: int) -> bool:
            within = lowest[position] <= rest <= highest[position]
            return within and (rest % divisor[position] == 0 if divisor[position] else rest == 0)

        def step(rest: int | None, position: int, value: int) -> int | None:
            if rest is None or rest == settled:
                return rest
            rest -= weights[position] * value
            if possible(rest, position + 1):
                return rest
            return None if equal else settled

        start = int(bound) if bound.denominator == 1 and possible(int(bound), 0) else None if equal else settled
        return Reader(start, step, lambda rest: rest is not None and (rest == 0) == equal)


@functools.lru_cache(maxsize=4096)
def _covers(weights: tuple[int, ...], most: int) -> tuple[tuple[int, ...], ...] | None:
    """``sum of weights <= most`` as clauses: in each minimal set of terms that is too heavy, one must be off."""
    # a negative weight counts as a positive weight of the negated label
    spare = most - sum(w for w in weights if w < 0)
    terms = sorted(((abs(w), v if w > 0 else -v) for v, w in enumerate(weights, start=1) if w), reverse=True)
    clauses: list[tuple[int, ...]] = []
    stack: list[tuple[int, int, tuple[int, ...]]] = [(0, 0, ())]
    rest = [*itertools.accumulate((weight for weight, _ in reversed(terms)), initial=0)][::-1]
    while stack:
        place, total, chosen = stack.pop()
        if total > spare:
            # heaviest first: without any one of the chosen terms, the others are not too heavy
            clauses.append(chosen)
            if len(clauses) > _MOST_CLAUSES:
                return None
        elif total + rest[place] > spare:
            weight, literal = terms[place]
            stack.append((place + 1, total, chosen))
            stack.append((place + 1, total + weight, (*chosen, -literal)))
    return tuple(clauses)


def _at_most_reader(weights: list[int], most: int) -> Reader:
    """A state is the rest of the bound, as far as it matters."""
    lowest, highest = _reach(weights)

    def step(rest: int, position: int, value: int) -> int | None:
        rest -= weights[position] * value
        return None if rest < lowest[position + 1] else min(rest, highest[position + 1])

    return Reader(most, step, lambda rest: rest >= 0)


class _AtMost:
    """``sum of weights <= most``, with a list of intervals per position: all bounds in an interval share a node.

    The node for "the remaining sum is at most b" is the same for all b in an interval. That interval is the
    intersection of those of the two successors, the second one shifted by the weight.
    """

    def __init__(self, weights: list[int], most: int, budget: Budget, names: list[str]) -> None:
        self.weights, self.most, self.budget, self.names = weights, most, budget, names
        self.lowest, self.highest = _reach(weights)
        self.far = 4 * (sum(map(abs, weights)) + abs(most) + 1)
        self.starts: list[list[int]] = [[] for _ in weights]
        self.found: list[list[tuple[int, int, int]]] = [[] for _ in weights]
        self.nodes: list[list[tuple[int, int, int]]] = [[] for _ in weights]
        self.count = 2

    def circuit(self, names: tuple[str, ...], order: list[int]) -> Circuit:
        root = self._solve()
        diagram = Diagram(names, (), zero_suppressed=False, budget=self.budget)
        image = np.zeros(self.count, np.int64)
        image[TRUE_ID] = TRUE_ID
        for position in range(len(order) - 1, -1, -1):
            if self.nodes[position]:
                made = np.array(self.nodes[position], np.int64)
                image[made[:, 0]] = diagram.add(order[position], image[made[:, 1]], image[made[:, 2]])
        return diagram.circuit(int(image[root]), order)

    def _solve(self) -> int:
        """Depth-first search with a stack: a position is done when both its successors are known."""
        stack = [(0, self.most)]
        for step in itertools.count():
            if not stack:
                break
            if step % _CHECK_EVERY == 0:
                self._check()
            position, rest = stack[-1]
            if self._known(position, rest) is not None:
                stack.pop()
                continue
            low = self._known(position + 1, rest)
            if low is None:
                stack.append((position + 1, rest))
                continue
            weight = self.weights[position]
            high = self._known(position + 1, rest - weight)
            if high is None:
                stack.append((position + 1, rest - weight))
                continue
            stack.pop()
            self._add(position, max(low[0], high[0] + weight), min(low[1], high[1] + weight), low[2], high[2])
        known = self._known(0, self.most)
        return FALSE_ID if known is None else known[2]

    def _known(self, position: int, rest: int) -> tuple[int, int, int] | None:
        """The interval around `rest` and its node, if it is known."""
        if rest >= self.highest[position]:
            return self.highest[position], self.far, TRUE_ID
        if rest < self.lowest[position]:
            return -self.far, self.lowest[position] - 1, FALSE_ID
        place = bisect_right(self.starts[position], rest) - 1
        if place >= 0 and rest <= self.found[position][place][1]:
            return self.found[position][place]
        return None

    def _add(self, position: int, first: int, last: int, low: int, high: int) -> None:
        node = low
        if low != high:
            node = self.count
            self.count += 1
            self.nodes[position].append((node, low, high))
            if self.budget.max_nodes is not None and self.count > self.budget.max_nodes:
                self._check()
        place = bisect_right(self.starts[position], first)
        self.starts[position].insert(place, first)
        self.found[position].insert(place, (first, last, node))

    def _check(self) -> None:
        width, widest = max((len(nodes), i) for i, nodes in enumerate(self.nodes))
        self.budget.check(f"label {self.names[widest]!r} ({width:,} different sums)", self.count)


def _reach(weights: list[int]) -> tuple[list[int], list[int]]:
    """The least and the greatest sum of the weights from each position on."""
    lowest = [*itertools.accumulate((min(w, 0) for w in reversed(weights)), initial=0)][::-1]
    highest = [*itertools.accumulate((max(w, 0) for w in reversed(weights)), initial=0)][::-1]
    return lowest, highest


def _exact(value: Any, what: str) -> Fraction:
    if hasattr(value, "item") and not isinstance(value, Rational):
        # numpy and torch scalars; a numpy number of less precision prints as fewer digits than the float it becomes
        value = float(str(value)) if isinstance(value, np.floating) else value.item()
    if isinstance(value, int | Rational | Decimal | float) and not isinstance(value, bool):
        try:
            return Fraction(repr(value)) if isinstance(value, float) else Fraction(value)
        except (ValueError, OverflowError):
            raise ValueError(f"linear: {what} must be a finite number, not {brief(value)}") from None
    raise ValueError(f"linear: {what} must be a number, not {brief(value)}")
