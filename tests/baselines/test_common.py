"""What the baselines share: features that are no tensor, or not finite, are refused as the layers refuse them."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import nn

import semprola as sp

EDGES = [("cat", "animal"), ("dog", "animal")]
RULES = "(cat -> animal) & (dog -> animal)"
LAYERS: dict[str, Any] = {
    "hmcnn": lambda **options: sp.baselines.HMCNN(4, EDGES, **options),
    "ccn": lambda **options: sp.baselines.CCN(4, RULES, **options),
    "multiplexnet": lambda **options: sp.baselines.MultiplexNet(4, RULES, **options),
    "ebm": lambda **options: sp.baselines.EBM(4, 3, **options),
    "fil": lambda **options: sp.baselines.FIL(4, 3, **options),
}
SCORING = [name for name in LAYERS if name != "fil"]


@pytest.mark.parametrize("gate", [(), (8,)])
@pytest.mark.parametrize("wrong", [math.nan, math.inf])
@pytest.mark.parametrize("name", LAYERS)
def test_features_that_are_not_finite(name: str, wrong: float, gate: Any) -> None:
    torch.manual_seed(0)
    layer = LAYERS[name](gate=gate)
    z = torch.randn(5, 4)
    assert layer(z).mode.shape == (5, 3)
    z[3, 1] = wrong
    with pytest.raises(ValueError, match=r"^logits must be finite: found NaN or infinite values in row 3$"):
        layer(z)
    with pytest.raises(ValueError, match=r"^logits must be finite: found NaN or infinite values$"):
        layer(z[3])


@pytest.mark.parametrize("name", SCORING)
def test_compilers_and_transforms_skip_the_check(name: str) -> None:
    layer, z = LAYERS[name](), torch.randn(3, 4)
    torch.testing.assert_close(torch.vmap(lambda row: layer(row).logits)(z), layer(z).logits)
    compiled = torch.compile(lambda x: layer(x).logits, backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(z), layer(z).logits)


@pytest.mark.parametrize("name", LAYERS)
def test_features_that_are_no_tensor(name: str) -> None:
    with pytest.raises(
        TypeError, match=r"^z must be a tensor of features \[\*batch, 4\], not list: use torch.as_tensor"
    ):
        LAYERS[name]()([[1.0, 2.0, 3.0, 4.0]])


@pytest.mark.parametrize("gate", [None, 5.0, "wide", nn.Linear(4, 3)])
@pytest.mark.parametrize("name", SCORING)
def test_a_gate_is_widths(name: str, gate: Any) -> None:
    with pytest.raises(TypeError, match=r"^gate must be a width or a list of widths, not "):
        LAYERS[name](gate=gate)
