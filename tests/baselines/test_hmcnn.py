"""HMCNN against its definition: the maximum over a label and its descendants, written out."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

import semprola as sp
from semprola.errors import IntractableError

TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("g", "f")]
DAG = [("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("e", "d"), ("e", "c"), ("g", "f"), ("e", "f")]
DEEP = [(str(i + 1), str(i)) for i in range(3000)]
HIERARCHIES = pytest.mark.parametrize("edges", [TREE, DAG], ids=["tree", "dag"])


def reach(edges: list[tuple[str, str]], labels: tuple[str, ...]) -> np.ndarray:
    """R[A, B] = 1 if B is A or below it."""
    graph = nx.DiGraph(edges)
    return np.array([[a == b or nx.has_path(graph, b, a) for b in labels] for a in labels])


def definition(h: np.ndarray, y: np.ndarray, below: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Output of the module and loss of every row, as the paper writes them."""
    out = np.where(below, h[:, None, :], 0).max(2)
    on = np.where(below, (y * h)[:, None, :], 0).max(2)
    return out, -np.where(y == 1, np.log(np.where(y == 1, on, 1)), np.log1p(-out)).sum(1)


@HIERARCHIES
def test_scores_and_loss_follow_the_definition(edges: list[tuple[str, str]]) -> None:
    layer = sp.baselines.HMCNN(6, edges).double()
    z = torch.randn(50, 6, dtype=torch.float64)
    p = layer(z)
    below = reach(edges, layer.labels)
    k = sp.constraints.hierarchy(edges)
    models = np.array(sp.compile(k).enumerate())
    y = models[np.random.randint(len(models), size=50)].astype(float)
    out, loss = definition(torch.sigmoid(p.logits).detach().numpy(), y, below)
    assert np.allclose(p.mean.detach().numpy(), out)
    assert np.allclose(p.loss(torch.tensor(y)).detach().numpy(), loss)


@HIERARCHIES
def test_its_prediction_respects_the_hierarchy(edges: list[tuple[str, str]]) -> None:
    layer = sp.baselines.HMCNN(6, edges, gate=8)
    p = layer(3 * torch.randn(4, 25, 6))
    assert p.batch_shape == (4, 25)
    assert p.mode.shape == (4, 25, len(layer.labels))
    rows = p.mode.reshape(100, -1).bool().numpy()
    assert sp.constraints.hierarchy(edges).evaluate(rows, labels=list(layer.labels)).all()
    assert torch.equal(p.mode, (p.mean > 0.5).float())
    assert torch.equal(p.decode("hamming"), p.mode)


@HIERARCHIES
def test_derivatives(edges: list[tuple[str, str]]) -> None:
    layer = sp.baselines.HMCNN(3, edges).double()
    k = sp.constraints.hierarchy(edges)
    y = torch.tensor(np.array(sp.compile(k).enumerate())[:6].astype(float))
    z = torch.randn(len(y), 3, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda z: layer(z).loss(y), (z,))
    assert torch.autograd.gradcheck(lambda z: layer(z).mean, (z,))


def test_extreme_scores_have_finite_derivatives() -> None:
    layer = sp.baselines.HMCNN(2, TREE)
    z = torch.tensor([[1e4, -1e4], [-1e4, 1e4]], requires_grad=True)
    y = torch.tensor([[1.0] * 7, [0.0] * 7])
    loss = layer(z).loss(y)
    loss.sum().backward()
    assert bool(loss.isfinite().all())
    assert z.grad is not None
    assert bool(z.grad.isfinite().all())


def test_it_learns() -> None:
    layer = sp.baselines.HMCNN(4, DAG)
    models = torch.tensor(np.array(sp.compile(sp.constraints.hierarchy(DAG)).enumerate()), dtype=torch.float32)
    z = torch.eye(4)
    y = models[torch.tensor([0, 3, 7, len(models) - 1])]
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.2)
    for _ in range(100):
        optimizer.zero_grad()
        layer(z).loss(y).mean().backward()
        optimizer.step()
    assert torch.equal(layer(z).mode, y)


def test_a_label_with_many_parents_gets_one_score() -> None:
    children = [f"c{i}" for i in range(300)]
    parents = [f"p{i}" for i in range(20)]
    layer = sp.baselines.HMCNN(2, [(c, p) for c in children for p in parents])
    p = layer(torch.randn(3, 2))
    columns = [layer.labels.index(name) for name in children]
    highest = torch.sigmoid(p.logits)[:, columns].max(1).values
    for name in parents:
        assert bool((p.mean[:, layer.labels.index(name)] >= highest).all())


def test_a_deep_hierarchy() -> None:
    layer = sp.baselines.HMCNN(1, DEEP)
    p = layer(torch.randn(1, 1))
    assert torch.allclose(p.mean[0, layer.labels.index("0")], torch.sigmoid(p.logits).max())


def test_it_can_start_at_the_frequencies_of_labels() -> None:
    layer = sp.baselines.HMCNN(2, TREE)
    models = torch.tensor(np.array(sp.compile(sp.constraints.hierarchy(TREE)).enumerate()), dtype=torch.float32)
    layer.start_at(models, smoothing=0.5)
    expected = (models.sum(0) + 0.25) / (len(models) + 0.5)
    assert torch.allclose(layer(torch.zeros(1, 2)).mean[0], expected)
    with pytest.raises(ValueError, match="rows of 7 labels"):
        layer.start_at(models[:, :2])
    for smoothing in (0, float("nan"), float("inf")):
        with pytest.raises(ValueError, match=f"^smoothing must be a finite number above 0, not {smoothing}$"):
            layer.start_at(models, smoothing=smoothing)


def test_no_likelihood_and_the_error_says_why() -> None:
    p = sp.baselines.HMCNN(2, TREE)(torch.randn(1, 2))
    with pytest.raises(IntractableError, match="no joint distribution"):
        p.log_prob(torch.zeros(1, 7))


def test_misuse() -> None:
    layer = sp.baselines.HMCNN(2, TREE)
    p = layer(torch.randn(1, 2))
    with pytest.raises(ValueError, match="shape"):
        p.loss(torch.zeros(1, 3))
    with pytest.raises(ValueError, match="0 and 1"):
        p.loss(torch.full((1, 7), 0.5))
    with pytest.raises(ValueError, match="features"):
        layer(torch.randn(1, 3))
    with pytest.raises(ValueError, match="threshold"):
        p.decode("greedy")
    with pytest.raises(ValueError, match="mandatory_leaf"):
        sp.baselines.HMCNN(2, sp.constraints.hierarchy(TREE, mandatory_leaf=True))


def test_it_is_a_module() -> None:
    layer = sp.baselines.HMCNN(2, TREE)
    other = sp.baselines.HMCNN(2, TREE)
    other.load_state_dict(layer.state_dict())
    z = torch.randn(4, 2)
    assert torch.equal(layer(z).mean, other(z).mean)
    assert layer.double()(z.double()).mean.dtype == torch.float64
    assert set(layer.state_dict()) == {"gate.0.weight", "gate.0.bias"}


def test_labels_may_come_in_another_order() -> None:
    own = sp.baselines.HMCNN(4, DAG)
    names = own.labels[::-1]
    other = sp.baselines.HMCNN(4, DAG, labels=names)
    with torch.no_grad():
        for mine, given in zip(other.parameters(), own.parameters(), strict=True):
            mine.copy_(given.flip(0))
    z = torch.randn(6, 4)
    p, q = own(z), other(z)
    assert q.labels == other.labels == names
    assert torch.allclose(q.mean, p.mean.flip(-1))
    assert torch.equal(q.mode, p.mode.flip(-1))
    assert torch.allclose(q.loss(q.mode), p.loss(p.mode))
    with pytest.raises(sp.LabelError, match="HMCNN needs a hierarchy over all labels: 'x' is in none of its rules"):
        sp.baselines.HMCNN(4, DAG, labels=[*names, "x"])
