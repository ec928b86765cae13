"""The weighted count of a constraint: each model weighs the product of its literals' weights."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from decimal import MAX_EMAX, MIN_EMIN, Decimal, localcontext
from fractions import Fraction
from typing import Any

import numpy as np

from semprola.circuit.circuit import PRODUCT, Circuit
from semprola.circuit.fold import fold, levels
from semprola.circuit.transforms import smooth
from semprola.errors import LabelError
from semprola.logic.messages import brief

_DIGITS = 17


def weighted_count(circuit: Circuit, weights: Mapping[str, tuple[Any, Any]], exact: bool = True) -> Any:
    """The sum over all models of the product of their literals' weights.

    Args:
        weights: the weights of the negative and the positive literal of each variable; 1 and 1 by default.
        exact: whether to compute with fractions. Otherwise floats are used, each with its own power of two as a scale,
            so that they neither overflow nor vanish.

    Returns:
        A Fraction if `exact`; otherwise a float, or a Decimal if the value is too large or too small for a float.
    """
    known = set(circuit.variables)
    for name in weights:
        if name not in known:
            raise LabelError(f"{name!r} is not a variable of the circuit")
    pairs = [_pair(name, weights.get(name, (1, 1))) for name in circuit.variables]
    # A variable that a branch does not mention contributes no + yes, or only no if it is zero-suppressed. After
    # division by that number it contributes 1 and can be left out; where the number is 0, spell the variable out first.
    absent = [no if zero else no + yes for (no, yes), zero in zip(pairs, circuit.zero_suppressed.tolist(), strict=True)]
    vanishing = np.array([value == 0 for value in absent], dtype=bool)
    if vanishing.any():
        circuit = smooth(circuit, vanishing)
    unit = [Fraction(1) if value == 0 else value for value in absent]
    scaled = [(no / one, yes / one) for (no, yes), one in zip(pairs, unit, strict=True)]
    if exact:
        total = _sum(circuit, scaled)
        for one in unit:
            total *= one
        return total
    mantissa, exponent = _scaled_sum(circuit, scaled)
    for one in unit:
        factor, power = _scaled(one)
        mantissa, shift = math.frexp(mantissa * factor)
        exponent += power + shift
    return _number(mantissa, exponent)


def _number(mantissa: float, exponent: int) -> float | Decimal:
    """mantissa · 2^exponent, as a Decimal if a float would overflow, vanish or lose digits."""
    if mantissa == 0 or sys.float_info.min_exp <= exponent <= sys.float_info.max_exp:
        return math.ldexp(mantissa, exponent)
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = 40, MAX_EMAX, MIN_EMIN
        value = Decimal(mantissa) * Decimal(2) ** exponent
        context.prec = _DIGITS
        return +value


def _pair(name: str, weights: Any) -> tuple[Fraction, Fraction]:
    try:
        no, yes = map(Fraction, weights)
    except (TypeError, ValueError, OverflowError):
        raise LabelError(
            f"the weights of {name!r} must be two finite numbers, of its negative and its positive literal, "
            f"not {brief(weights)}"
        ) from None
    return no, yes


def _scaled(value: Fraction) -> tuple[float, int]:
    """A fraction of any size as a mantissa between 1/2 and 1 and a power of two."""
    shift = value.numerator.bit_length() - value.denominator.bit_length()
    mantissa, rest = math.frexp(float(value / Fraction(2) ** shift))
    return mantissa, rest + shift


def _sum(circuit: Circuit, weights: list[tuple[Fraction, Fraction]]) -> Fraction:
    def literal(signed: int) -> Fraction:
        return weights[abs(signed) - 1][signed > 0]

    def product(_: int, parts: list[Fraction]) -> Fraction:
        return math.prod(parts, start=Fraction(1))

    def either(_: int, parts: list[Fraction]) -> Fraction:
        return sum(parts, start=Fraction(0))

    return fold(circuit, literal, product, either)


def _scaled_sum(circuit: Circuit, weights: list[tuple[Fraction, Fraction]]) -> tuple[float, int]:
    """The sum as a mantissa and a power of two; every node has its own power."""
    mantissa = np.zeros(circuit.num_nodes)
    exponent = np.zeros(circuit.num_nodes, np.int64)
    table = [[_scaled(no), _scaled(yes)] for no, yes in weights]
    for leaf in np.flatnonzero(circuit.literal).tolist():
        signed = int(circuit.literal[leaf])
        mantissa[leaf], exponent[leaf] = table[abs(signed) - 1][signed > 0]
    empty = np.flatnonzero((circuit.kind == PRODUCT) & (np.diff(circuit.child_start) == 0))
    mantissa[empty], exponent[empty] = 0.5, 1
    for level in levels(circuit):
        m, e = mantissa[level.children], exponent[level.children]
        product = circuit.kind[level.nodes] == PRODUCT
        # products as sums of logarithms: many mantissas below 1 cannot make the product vanish
        logs = np.add.reduceat(np.log2(np.where(m == 0, 1, np.abs(m))), level.starts)
        signs = np.multiply.reduceat(np.sign(m), level.starts)
        powers = np.add.reduceat(e, level.starts)
        whole = np.floor(logs)
        top = np.maximum.reduceat(np.where(m == 0, np.iinfo(np.int32).min, e), level.starts)
        counts = np.diff(np.append(level.starts, len(level.children)))
        sums = np.add.reduceat(np.ldexp(m, np.maximum(e - np.repeat(top, counts), -2000)), level.starts)
        value = np.where(product, signs * np.exp2(logs - whole), sums)
        base = np.where(product, powers + whole.astype(np.int64), np.where(sums == 0, 0, top))
        fraction, shift = np.frexp(value)
        mantissa[level.nodes], exponent[level.nodes] = fraction, base + shift
    return float(mantissa[-1]), int(exponent[-1])
