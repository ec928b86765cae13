"""Figures of merit, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from experiments.hmlc.scores import average_precision, calibration_error


@pytest.mark.parametrize("digits", [1, 8])
def test_average_precision_is_that_of_scikit_learn(digits: int) -> None:
    random = np.random.RandomState(0)
    scores = random.rand(50, 20).round(digits)  # with one digit there are many ties
    y = random.rand(50, 20) < scores**2
    expected = average_precision_score(y, scores, average="micro")
    assert average_precision(scores, y) == pytest.approx(expected)


def test_no_label_on() -> None:
    assert np.isnan(average_precision([0.5], [0]))


def test_shapes_must_agree() -> None:
    with pytest.raises(ValueError, match="same shape"):
        average_precision([0.5, 0.5], [0])


def test_calibration() -> None:
    assert calibration_error([0.0, 1.0], [0, 1]) == 0.0
    assert calibration_error([0.9, 0.9], [0, 1]) == pytest.approx(0.4)
