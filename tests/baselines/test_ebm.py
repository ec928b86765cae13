"""EBM: energies by hand, conditionals from energies, estimates against enumeration, learning, refusals."""

from __future__ import annotations

import itertools

import pytest
import torch

import semprola as sp
from semprola.baselines.ebm import EBMScores
from semprola.errors import IntractableError

THETA = torch.tensor([0.5, -1.0, 2.0], dtype=torch.float64)
W = torch.tensor([[0.0, 1.5, -0.5], [1.5, 0.0, 0.25], [-0.5, 0.25, 0.0]], dtype=torch.float64)
EVERY = torch.tensor(list(itertools.product([0.0, 1.0], repeat=3)), dtype=torch.float64)


def model(**options: object) -> EBMScores:
    settings = {"training": "pseudo-likelihood", "inference": "mean-field", "steps": 30} | options
    return EBMScores(THETA, W, **settings)  # type: ignore[arg-type]


def test_energies_by_hand() -> None:
    p = model()
    assert float(p.energy(torch.tensor([1.0, 1.0, 0.0]))) == pytest.approx(-(0.5 - 1.0 + 1.5))
    assert float(p.energy(torch.tensor([1.0, 1.0, 1.0]))) == pytest.approx(-(0.5 - 1.0 + 2.0 + 1.5 - 0.5 + 0.25))
    assert float(p.energy(torch.zeros(3))) == 0.0


def test_conditionals_are_differences_of_energies() -> None:
    p = model()
    for y in EVERY:
        for label in range(3):
            on, off = y.clone(), y.clone()
            on[label], off[label] = 1.0, 0.0
            assert float(p.conditional(y)[label]) == pytest.approx(float(p.energy(off) - p.energy(on)))


def test_estimates_against_enumeration() -> None:
    torch.manual_seed(0)
    weights = torch.softmax(-torch.stack([model().energy(y) for y in EVERY]), 0)
    marginals = weights @ EVERY
    assert torch.allclose(model(inference="gibbs", steps=300).mean, marginals, atol=0.03)
    assert torch.allclose(model().mean, marginals, atol=0.1)
    assert torch.equal(model().mode, EVERY[weights.argmax()])
    samples = model(steps=10).sample((20_000,))
    assert torch.allclose(samples.mean(0), marginals, atol=0.02)


def test_pseudo_likelihood_by_definition() -> None:
    p = model()
    y = torch.tensor([1.0, 0.0, 1.0], dtype=torch.float64)
    expected = 0.0
    for label in range(3):
        other = y.clone()
        other[label] = 1 - other[label]
        expected -= float(torch.log_softmax(torch.stack([-p.energy(y), -p.energy(other)]), 0)[0])
    assert float(p.loss(y)) == pytest.approx(expected)


@pytest.mark.parametrize("training", ["pseudo-likelihood", "contrastive"])
def test_learns_that_labels_differ(training: str) -> None:
    """Two labels of which exactly one is on, at random: independent labels cannot say so, a pair can."""
    torch.manual_seed(0)
    layer = sp.baselines.EBM(1, ["a", "b"], training=training, inference="gibbs", steps=5)
    x = torch.zeros(400, 1)
    a = torch.rand(400) < 0.5
    y = torch.stack([a, ~a], 1).float()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(200):
        optimizer.zero_grad()
        layer(x).loss(y).mean().backward()
        optimizer.step()
    drawn = layer(x).sample()
    assert (drawn.sum(1) == 1).float().mean() > 0.9


@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
def test_shapes_and_gradients(shape: tuple[int, ...]) -> None:
    layer = sp.baselines.EBM(4, 3, gate=[5]).double()
    z = torch.randn(*shape, 4, dtype=torch.float64, requires_grad=True)
    p = layer(z)
    assert (p.batch_shape, p.event_shape) == (shape, (3,))
    assert p.mean.shape == p.mode.shape == p.sample().shape == (*shape, 3)
    assert p.sample((2,)).shape == (2, *shape, 3)
    y = p.mode
    assert torch.autograd.gradcheck(lambda x: (layer(x).loss(y), layer(x).mean), z)


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="training must be 'pseudo-likelihood' or 'contrastive', not 'luck'"):
        sp.baselines.EBM(3, 2, training="luck")
    with pytest.raises(ValueError, match="inference must be"):
        sp.baselines.EBM(3, 2, inference="exact")
    p = sp.baselines.EBM(3, 2)(torch.zeros(2, 3))
    with pytest.raises(IntractableError, match="an EBM has no log_prob: it is not normalised"):
        p.log_prob(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="not by 'f1'"):
        p.decode("f1")
    with pytest.raises(ValueError, match="y must contain only 0 and 1"):
        p.energy(torch.full((2, 2), 0.3))
