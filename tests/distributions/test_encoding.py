"""Encoded label vectors give the same answers as the vectors themselves."""

from __future__ import annotations

import pytest
import torch

import semprola as sp

RULES = "(cat -> animal) & (dog -> animal)"
pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.mark.parametrize("options", [{}, {"components": 2}, {"units": 2}], ids=str)
@pytest.mark.parametrize(
    ("batch", "rows"),
    [
        ((), ()),
        ((), (5,)),
        ((1,), (5,)),
        ((1,), (4, 5)),
        ((1, 1), (4, 5)),
        ((5,), ()),
        ((5,), (1,)),
        ((5,), (4, 5)),
        ((5,), (4, 1)),
        ((4, 5), (5,)),
        ((0,), (0,)),
        ((0,), (4, 0)),
        ((1,), (0,)),
    ],
)
def test_shapes_are_broadcast_alike(options: dict[str, int], batch: tuple[int, ...], rows: tuple[int, ...]) -> None:
    layer = sp.SPL(4, RULES, **options)
    p = layer(torch.randn(*batch, 4))
    y = torch.randint(0, 2, (*rows, 3)).float()
    torch.testing.assert_close(p.log_prob(layer.encode(y)), p.log_prob(y))
