"""What people do with rules before a layer: read them from files and from other tools, count their models."""

from semprola.compiler.models import model_count
from semprola.compiler.sources import read
from semprola.logic import from_sympy
from semprola.rules.shortcuts import Shortcuts, shortcuts

__all__ = ["Shortcuts", "from_sympy", "model_count", "read", "shortcuts"]
