"""Training: one trainer, metrics and a progress bar, shared by the estimator, the command line and the experiments."""

from semprola.training.progress import Progress
from semprola.training.trainer import History, TrainSettings, train

__all__ = ["History", "Progress", "TrainSettings", "train"]
