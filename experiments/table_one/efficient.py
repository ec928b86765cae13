"""D6: time of a training step and a prediction against the size of the constraint."""

from __future__ import annotations

import math
import time
from typing import Any

import torch
from torch import Tensor

import semprola as sp
from experiments.table_one.systems import build
from semprola.errors import SemprolaError

_SIZES = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048)
_FITTED = 4
"""Number of largest sizes to fit the line to; at small sizes, fixed costs hide the growth."""
_SLOPE = 1.5
"""Largest exponent that counts as efficient: between linear, 1, and quadratic, 2."""


def efficient(system: str) -> dict[str, Any]:
    """D6: no size is refused, and the exponent of the time (the slope on a log-log plot) is at most 1.5."""
    seconds: dict[int, float] = {}
    refused = ""
    for size in _SIZES:
        rules = sp.And(*[~sp.Bool(f"a{i}") >> sp.Bool(f"b{i}") for i in range(size)])
        try:
            model = build(system, rules)
        except SemprolaError as error:
            refused = f"{size} rules: {error}".splitlines()[0][:160]
            break
        x, y = torch.randn(32, 8), torch.ones(32, 2 * size)
        seconds[size] = min(_seconds(model, x, y) for _ in range(5))
    slope = _slope(seconds)
    return {"seconds": seconds, "exponent": slope, "refused": refused, "mark": not refused and slope <= _SLOPE}


def _seconds(model: Any, x: Tensor, y: Tensor) -> float:
    """Processor seconds of one training step without the optimiser, and one prediction."""
    began = time.process_time()
    model.loss(x, y).backward()
    with torch.no_grad():
        _ = model(x).mode
    return time.process_time() - began


def _slope(seconds: dict[int, float]) -> float:
    """Least-squares slope of log seconds over log size, through the largest sizes."""
    points = [(math.log(size), math.log(value)) for size, value in seconds.items()][-_FITTED:]
    mean_x, mean_y = (sum(column) / len(points) for column in zip(*points, strict=True))
    covariance = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return float(round(covariance / sum((x - mean_x) ** 2 for x, _ in points), 2))
