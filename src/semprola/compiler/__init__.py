"""From a formula to a circuit."""

from semprola.circuit.sdd_files import provide_sdd_writer
from semprola.compiler.backends.sdd.diagrams import save_sdd
from semprola.compiler.budget import Budget, Progress
from semprola.compiler.pipeline import compile
from semprola.compiler.restructure import restructure

__all__ = ["Budget", "Progress", "compile", "restructure"]

provide_sdd_writer(save_sdd)
