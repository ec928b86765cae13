"""All systems of the paper's Table 1 on your own data: one call, one table."""

from semprola.comparison.comparing import Comparison, compare_methods
from semprola.comparison.methods import METHODS, MethodModel, build_method

__all__ = ["METHODS", "Comparison", "MethodModel", "build_method", "compare_methods"]
