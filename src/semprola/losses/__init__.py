"""Losses that encourage a constraint, as an alternative to a layer that guarantees it."""

from semprola.losses.circuits import NeSyEntropy, SemanticLoss
from semprola.losses.dl2 import DL2
from semprola.losses.regret import ExpectedRegret

__all__ = ["DL2", "ExpectedRegret", "NeSyEntropy", "SemanticLoss"]
