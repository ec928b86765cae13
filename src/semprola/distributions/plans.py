"""The plans of a circuit, made once and shared by all distributions over it."""

from __future__ import annotations

from threading import Lock

from semprola.circuit import Circuit
from semprola.engine import CircuitPlans

_KEPT = "_plans"
_lock = Lock()


def plans_of(circuit: Circuit | CircuitPlans, units: int = 1, mixing: str = "cross") -> CircuitPlans:
    """The plans of a circuit; every call returns the same object.

    The plans are kept on the circuit and live as long as it does. They are not copied, pickled or saved with it. Safe
    to call from several threads.

    Args:
        circuit: the circuit; plans are returned as they are.
        units: copies of each sum.
        mixing: which units of a product's two inputs are multiplied, "cross" or "elementwise".

    Example:
        >>> import semprola as sp
        >>> circuit = sp.compile("a | b")
        >>> plans_of(circuit) is plans_of(circuit)
        True
    """
    if isinstance(circuit, CircuitPlans):
        return circuit
    # copies with another note share this dict, hence the id; plans hold their circuit, so its id is not reused
    key = (id(circuit), units, mixing)
    found: CircuitPlans | None = circuit.__dict__.get(_KEPT, {}).get(key)
    if found is not None:
        return found
    made = CircuitPlans(circuit, units, mixing)
    with _lock:
        kept: dict[tuple[int, int, str], CircuitPlans] = circuit.__dict__.setdefault(_KEPT, {})
        return kept.setdefault(key, made)
