"""The estimator under scikit-learn's own checks."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("sklearn")

from sklearn.utils.estimator_checks import parametrize_with_checks

from semprola.sklearn import SPLClassifier

ESTIMATORS = [SPLClassifier(epochs=25, lr=0.05, hidden=(16,))]


# Rows are drawn into minibatches and held out for early stopping, so a row of weight 2 and the same row twice give
# different runs, as in every estimator that is trained by stochastic gradients.
_EXPECTED = {"check_sample_weight_equivalence_on_dense_data": "training is stochastic"}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: _EXPECTED)
def test_scikit_learn_checks(estimator: Any, check: Any) -> None:
    check(estimator)
