"""Expected regret against enumeration."""

from __future__ import annotations

import networkx as nx
import pytest
import torch

import semprola as sp


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
def test_against_enumeration(shape):
    torch.manual_seed(0)
    graph = nx.grid_2d_graph(3, 3)
    layer = sp.ProductSPL(4, sp.constraints.simple_paths(graph, source=(0, 0), target=(2, 2)), mixtures=2).double()
    p = layer(torch.randn(*shape, 4, dtype=torch.float64))
    costs = torch.rand(*shape, len(p.labels), dtype=torch.float64)
    states = p.enumerate_support()
    totals = (states * costs).sum(-1)
    expected = (p.log_prob(states).exp() * totals).sum(0) - totals.min(0).values
    torch.testing.assert_close(sp.losses.ExpectedRegret("none")(p, costs), expected)
    torch.testing.assert_close(sp.losses.ExpectedRegret()(p, costs), expected.mean())
    torch.testing.assert_close(sp.losses.ExpectedRegret("sum")(p, costs), expected.sum())
    relative = sp.losses.ExpectedRegret("none", normalize=True)(p, costs)
    torch.testing.assert_close(relative, expected / totals.min(0).values)


def test_gradient_and_errors():
    rules, costs = sp.one_hot(["a", "b", "c"]), {"a": 1.0, "c": -2.0}
    logits = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    loss = sp.losses.ExpectedRegret("none")
    assert torch.autograd.gradcheck(lambda z: loss(sp.constrain(z, rules), costs), (logits,))
    with pytest.raises(ValueError, match="does not fit batch"):
        loss(sp.constrain(logits, rules), torch.ones(5, 3))
    with pytest.raises(sp.LabelError, match="'d'"):
        loss(sp.constrain(logits, rules), {"d": 1.0})
    with pytest.raises(TypeError, match="the distribution that a layer returns"):
        loss(logits, costs)
    with pytest.raises(ValueError, match="reduction"):
        sp.losses.ExpectedRegret("max")
