"""Losses that encourage a constraint, as an alternative to a layer that guarantees it."""

from semprola.losses.circuits import ExpectedRegret, NeSyEntropy, SemanticLoss
from semprola.losses.dl2 import DL2

__all__ = ["DL2", "ExpectedRegret", "NeSyEntropy", "SemanticLoss"]
