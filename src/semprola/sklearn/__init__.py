"""A scikit-learn estimator: a network whose predictions obey a constraint. Needs the extra `sklearn`."""

from semprola.sklearn.estimator import SPLClassifier

__all__ = ["SPLClassifier"]
