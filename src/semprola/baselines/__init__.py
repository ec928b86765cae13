"""What people compare with, behind the same calls."""

from semprola.baselines.fil import FIL
from semprola.baselines.hmcnn import HMCNN, HMCNNScores

__all__ = ["FIL", "HMCNN", "HMCNNScores"]
