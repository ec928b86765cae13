"""Small circuits with every kind of sum, for tests of single passes of the engine."""

from __future__ import annotations

from collections.abc import Callable

import semprola as sp
from semprola.engine import CircuitPlans

CIRCUITS: dict[str, Callable[[], CircuitPlans]] = {
    "tree": lambda: CircuitPlans(
        sp.compile(sp.constraints.hierarchy([("b", "a"), ("c", "a"), ("d", "b"), ("e", "c")]))
    ),
    "mixed fan-ins": lambda: CircuitPlans(sp.compile("(a | b | c) & (d -> a) & (a ^ e ^ f)")),
    "wide sums": lambda: CircuitPlans(sp.compile(sp.constraints.regex("(a|b)*c?(a|c)+", length=4, alphabet="abc"))),
    "permutation": lambda: CircuitPlans(sp.compile(sp.constraints.permutation(4))),
    "units": lambda: CircuitPlans(sp.compile(sp.constraints.permutation(3)), units=3),
}
