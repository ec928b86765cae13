"""Methods to compare with, behind the same calls as the layers."""

from semprola.baselines.ccn import CCN, CCNScores
from semprola.baselines.ebm import EBM, EBMScores
from semprola.baselines.fil import FIL
from semprola.baselines.hmcnn import HMCNN, HMCNNScores
from semprola.baselines.multiplex import MultiplexDistribution, MultiplexNet

__all__ = [
    "CCN",
    "EBM",
    "FIL",
    "HMCNN",
    "CCNScores",
    "EBMScores",
    "HMCNNScores",
    "MultiplexDistribution",
    "MultiplexNet",
]
