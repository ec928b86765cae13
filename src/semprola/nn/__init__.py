"""The layers."""

from semprola.nn.constraint import ConstraintLayer, constrain
from semprola.nn.gate import Gate
from semprola.nn.layers import SPL, ProductSPL
from semprola.nn.pooled import PooledLayer
from semprola.nn.q import Q

__all__ = ["SPL", "ConstraintLayer", "Gate", "PooledLayer", "ProductSPL", "Q", "constrain"]
