"""Training: one trainer, metrics and a progress bar, shared by the estimator, the command line and the experiments."""

from semprola.training.calibration import Calibrated, Temperature, calibrate, calibration_report
from semprola.training.fitting import fit
from semprola.training.progress import Progress
from semprola.training.sets import PredictionSet, conformal_threshold, prediction_sets
from semprola.training.settings import FitSettings, History, Look
from semprola.training.trainer import TrainSettings, train
from semprola.training.validation import evaluate

__all__ = [
    "Calibrated",
    "FitSettings",
    "History",
    "Look",
    "PredictionSet",
    "Progress",
    "Temperature",
    "TrainSettings",
    "calibrate",
    "calibration_report",
    "conformal_threshold",
    "evaluate",
    "fit",
    "prediction_sets",
    "train",
]
