"""What people do with rules before a layer: read them from files."""

from semprola.compiler.sources import read

__all__ = ["read"]
