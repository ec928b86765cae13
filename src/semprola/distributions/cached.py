"""The plans of a circuit, made once for all distributions over it."""

from __future__ import annotations

from threading import Lock

from semprola.circuit import Circuit
from semprola.engine import Structure

_KEPT = "_structures"
_lock = Lock()


def structure_of(circuit: Circuit | Structure, units: int = 1, mixing: str = "cross") -> Structure:
    """The structure of a circuit, the same object in every call.

    It is kept with the circuit, lives as long as it, and is neither copied, pickled nor saved with it. May be called
    from several threads.

    Args:
        circuit: the circuit; a structure is returned as it is.
        units: copies of each sum.
        mixing: which of them are multiplied.

    Example:
        >>> import semprola as sp
        >>> circuit = sp.compile("a | b")
        >>> structure_of(circuit) is structure_of(circuit)
        True
    """
    if isinstance(circuit, Structure):
        return circuit
    # the same circuit with another note shares what is kept here; while a structure holds a circuit, its id stays taken
    key = (id(circuit), units, mixing)
    found: Structure | None = circuit.__dict__.get(_KEPT, {}).get(key)
    if found is not None:
        return found
    made = Structure(circuit, units, mixing)
    with _lock:
        kept: dict[tuple[int, int, str], Structure] = circuit.__dict__.setdefault(_KEPT, {})
        return kept.setdefault(key, made)
