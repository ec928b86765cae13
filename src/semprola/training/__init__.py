"""Training: one trainer, metrics and a progress bar, shared by the estimator, the command line and the experiments."""

from semprola._moved import moved
from semprola.training.calibration import Calibrated, Temperature, calibrate, calibration_report
from semprola.training.fitting import fit
from semprola.training.progress import ProgressBar
from semprola.training.sets import PredictionSet, conformal_threshold, prediction_sets
from semprola.training.settings import FitSettings, History, Look
from semprola.training.validation import evaluate

__all__ = [
    "Calibrated",
    "FitSettings",
    "History",
    "Look",
    "PredictionSet",
    "ProgressBar",
    "Temperature",
    "calibrate",
    "calibration_report",
    "conformal_threshold",
    "evaluate",
    "fit",
    "prediction_sets",
]

__getattr__ = moved(__name__, {"Progress": "semprola.training.ProgressBar"})
