"""From a formula to a circuit."""

from semprola.compiler.budget import Progress
from semprola.compiler.pipeline import compile
from semprola.compiler.restructure import restructure

__all__ = ["Progress", "compile", "restructure"]
