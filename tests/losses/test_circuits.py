"""Semantic loss and neuro-symbolic entropy: bad arguments. Their values are tested with the layers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp

PETS = "(cat -> animal) & (dog -> animal)"
WIDTH = "logits must be [*batch, 3], one column for each of cat, animal, dog; not "


@pytest.mark.parametrize("kind", [sp.losses.SemanticLoss, sp.losses.NeSyEntropy])
@pytest.mark.parametrize(
    ("logits", "error", "message"),
    [
        ([1, 2, 3], TypeError, "logits must be a tensor [*batch, 3], not list: use torch.as_tensor"),
        (np.zeros((2, 3)), TypeError, "logits must be a tensor [*batch, 3], not ndarray: use torch.as_tensor"),
        (None, TypeError, "logits must be a tensor [*batch, 3], not NoneType: use torch.as_tensor"),
        (torch.zeros(2, 4), sp.LabelError, WIDTH + "(2, 4)"),
        (torch.tensor(0.0), sp.LabelError, WIDTH + "()"),
        (torch.zeros(2, 3, dtype=torch.int64), TypeError, "logits must be floating point, not torch.int64"),
        (
            torch.tensor([[0.0, 0, 0], [0, math.inf, 0]]),
            ValueError,
            "logits must be finite: found NaN or infinite values in row 1",
        ),
    ],
)
def test_bad_logits(kind: Any, logits: Any, error: type[Exception], message: str) -> None:
    for call in (kind(PETS), kind(PETS).distribution):
        with pytest.raises(error) as caught:
            call(logits)
        assert str(caught.value) == message
