"""The weight of a constraint: the sum, over its models, of the product of the weights of their literals."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from semprola.circuit.circuit import LITERAL, PRODUCT, Circuit
from semprola.circuit.transforms import smooth
from semprola.errors import LabelError


def weighted_count(circuit: Circuit, weights: Mapping[str, tuple[Any, Any]], exact: bool = True) -> Any:
    """The sum over all models of the product of their literals' weights.

    Args:
        circuit: decomposable and deterministic.
        weights: for each variable the weights of its negative and its positive literal; 1 and 1 unless given.
        exact: whether to compute with fractions; otherwise with floating-point numbers, scaled so that they neither
            overflow nor vanish.

    Returns:
        A Fraction, or a float.

    Raises:
        LabelError: a name is not a variable of the circuit.

    Example:
        >>> from semprola.circuit import CircuitBuilder
        >>> b = CircuitBuilder(["rain", "wet"])
        >>> circuit = b.build(b.decision(0, b.true(), b.literal(1, True)))
        >>> weighted_count(circuit, {"rain": (Fraction(7, 10), Fraction(3, 10))})
        Fraction(17, 10)
    """
    known = set(circuit.variables)
    for name in weights:
        if name not in known:
            raise LabelError(f"{name!r} is not a variable of the circuit")
    pairs = [tuple(map(Fraction, weights.get(name, (1, 1)))) for name in circuit.variables]
    # What a branch does not mention contributes no + yes, or no alone where it is zero-suppressed. Divided by that it
    # contributes 1 and can be left out; where that is 0, the variable is spelled out first.
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
        mantissa, shift = np.frexp(mantissa * float(one))
        exponent += int(shift)
    return float(np.ldexp(mantissa, exponent))


def _sum(circuit: Circuit, weights: list[tuple[Fraction, Fraction]]) -> Fraction:
    start, children = circuit.child_start.tolist(), circuit.children.tolist()
    uses = np.bincount(circuit.children, minlength=circuit.num_nodes).tolist()
    values: list[Fraction | None] = []
    for node, (kind, literal) in enumerate(zip(circuit.kind.tolist(), circuit.literal.tolist(), strict=True)):
        if kind == LITERAL:
            values.append(weights[abs(literal) - 1][literal > 0])
            continue
        below = children[start[node] : start[node + 1]]
        total = Fraction(kind == PRODUCT)
        for child in below:
            value = values[child]
            if value is not None:
                total = total * value if kind == PRODUCT else total + value
            uses[child] -= 1
        for child in below:
            if uses[child] == 0:
                values[child] = None  # long numerators are not kept longer than needed
        values.append(total)
    return values[-1] or Fraction(0)


def _scaled_sum(circuit: Circuit, weights: list[tuple[Fraction, Fraction]]) -> tuple[float, int]:
    """As a mantissa and a power of two, which every node has of its own."""
    mantissa = np.zeros(circuit.num_nodes)
    exponent = np.zeros(circuit.num_nodes, np.int64)
    table = np.array([[float(no), float(yes)] for no, yes in weights]).reshape(-1, 2)
    leaves = np.flatnonzero(circuit.literal)
    literal = circuit.literal[leaves]
    mantissa[leaves], exponent[leaves] = np.frexp(table[np.abs(literal) - 1, (literal > 0).astype(int)])
    from semprola.circuit.levels import levels

    empty = np.flatnonzero((circuit.kind == PRODUCT) & (np.diff(circuit.child_start) == 0))
    mantissa[empty], exponent[empty] = 0.5, 1
    for level in levels(circuit):
        m, e = mantissa[level.children], exponent[level.children]
        product = circuit.kind[level.nodes] == PRODUCT
        # a product of a few mantissas of at least one half cannot vanish before its exponent is taken out
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
