"""Training: one trainer, metrics and a progress bar, shared by the estimator, the command line and the experiments."""

from semprola.training.fitting import evaluate, fit
from semprola.training.progress import Progress
from semprola.training.settings import FitSettings, History, Look
from semprola.training.trainer import TrainSettings, train

__all__ = ["FitSettings", "History", "Look", "Progress", "TrainSettings", "evaluate", "fit", "train"]
