"""From a formula to a circuit."""

from semprola.compile.budget import Progress
from semprola.compile.compile import compile
from semprola.compile.restructure import restructure

__all__ = ["Progress", "compile", "restructure"]
