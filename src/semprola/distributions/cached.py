"""The plans of a circuit, made once for all distributions over it."""

from __future__ import annotations

from threading import Lock

from semprola.circuit import Circuit
from semprola.engine import CircuitPlans

_KEPT = "_plans"
_lock = Lock()


def plans_of(circuit: Circuit | CircuitPlans, units: int = 1, mixing: str = "cross") -> CircuitPlans:
    """The plans of a circuit, the same object in every call.

    It is kept with the circuit, lives as long as it, and is neither copied, pickled nor saved with it. May be called
    from several threads.

    Args:
        circuit: the circuit; plans are returned as they are.
        units: copies of each sum.
        mixing: which of them are multiplied.

    Example:
        >>> import semprola as sp
        >>> circuit = sp.compile("a | b")
        >>> plans_of(circuit) is plans_of(circuit)
        True
    """
    if isinstance(circuit, CircuitPlans):
        return circuit
    # the same circuit with another note shares what is kept here; while plans hold a circuit, its id stays taken
    key = (id(circuit), units, mixing)
    found: CircuitPlans | None = circuit.__dict__.get(_KEPT, {}).get(key)
    if found is not None:
        return found
    made = CircuitPlans(circuit, units, mixing)
    with _lock:
        kept: dict[tuple[int, int, str], CircuitPlans] = circuit.__dict__.setdefault(_KEPT, {})
        return kept.setdefault(key, made)
