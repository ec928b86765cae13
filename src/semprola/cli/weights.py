"""Weighted counts of DIMACS files for the command line."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

from semprola.circuit import Circuit
from semprola.circuit.weighted import weighted_count
from semprola.logic import Cnf

_MOST_EXACT_EDGES = 200_000


def weights_of(cnf: Cnf) -> dict[str, tuple[Fraction, Fraction]]:
    """The weights of the negative and the positive literal of the variables that have any.

    If one of the two is missing, they add up to 1.
    """
    weights = {}
    for v in range(1, cnf.num_vars + 1):
        if v in cnf.weights or -v in cnf.weights:
            no = cnf.weights.get(-v, 1 - cnf.weights.get(v, Fraction(0)))
            yes = cnf.weights.get(v, 1 - cnf.weights.get(-v, Fraction(0)))
            weights[str(v)] = (no, yes)
    return weights


def weighted_result(circuit: Circuit, cnf: Cnf) -> dict[str, Any]:
    """What `semprola count --weighted` prints; the weight is exact unless the circuit is very large."""
    known = set(circuit.variables)
    shown = {name: pair for name, pair in weights_of(cnf).items() if name in known}
    exact = circuit.num_edges <= _MOST_EXACT_EDGES
    total = weighted_count(circuit, shown, exact=exact)
    result = {"about": scientific(total), "log10": log10(total)}
    return {"weight": str(total), **result} if exact else result


def log10(value: Any) -> float | None:
    """The decimal logarithm of a positive number of any size; None for others."""
    if value <= 0:
        return None
    if isinstance(value, float | Decimal):
        return float(Decimal(value).log10())
    return math.log10(value.numerator) - math.log10(value.denominator)


def scientific(value: Any) -> float | str:
    """A number as a float, or as text such as "1.234e-705" if a float would overflow or vanish.

    Example:
        >>> scientific(Fraction(1, 3)), scientific(Fraction(5, 10**705))
        (0.333..., '5e-705')
    """
    size = log10(abs(value))
    if size is None or -300 < size < 300:
        return float(value)
    if isinstance(value, Decimal):
        return f"{value:.10e}"
    exponent = math.floor(size)
    return f"{'-' if value < 0 else ''}{10 ** (size - exponent):.10g}e{exponent:+d}"
