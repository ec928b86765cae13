"""Circuits: the result of compiling a constraint."""

from semprola.circuit.builder import FALSE, CircuitBuilder
from semprola.circuit.circuit import LITERAL, PRODUCT, SUM, Circuit
from semprola.circuit.vtree import Vtree

__all__ = ["FALSE", "LITERAL", "PRODUCT", "SUM", "Circuit", "CircuitBuilder", "Vtree"]
