"""What people compare with, behind the same calls."""

from semprola.baselines.fil import FIL

__all__ = ["FIL"]
