"""The layers."""

from semprola.nn.gate import Gate
from semprola.nn.layers import SPL, ProductSPL

__all__ = ["SPL", "Gate", "ProductSPL"]
