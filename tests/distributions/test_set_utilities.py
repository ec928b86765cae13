"""Expected F1 and Jaccard index, and the decoders for them, against all pairs of states."""

from __future__ import annotations

import numpy as np
import oracle
import pytest
import torch
import worlds
import zoo
from selection import spread
from torch import Tensor
from worlds import Setting, world

import semprola as sp
from semprola.distributions.domain import Domain

pytestmark = pytest.mark.usefixtures("each_engine")
SMALL = [case for case in zoo.CASES if not case.large]
LAYERS = ("spl-m1-k1", "product-1", "spl-m2-k2", "product-3", "hmm-2", "vtree-2", "spl-m3-k1")


def index(states: Tensor, utility: str) -> Tensor:
    """F1 or Jaccard index of all pairs of states."""
    both, size = states @ states.T, states.sum(1)
    total = size[:, None] + size
    if utility == "f1":
        return torch.where(total == 0, 1.0, 2 * both / total.clamp(min=1))
    return torch.where(total == 0, 1.0, both / (total - both).clamp(min=1))


def setting(case: zoo.Case, turn: int) -> Setting:
    i = SMALL.index(case)
    dtype = torch.float32 if i % 4 == 0 else torch.float64
    layer = LAYERS[(i + 3 * turn) % len(LAYERS)]
    return Setting(case, layer, dtype, worlds.BATCHES[(i + turn) % 4], 2.0, observed=not case.given and i % 5 == 0)


@pytest.mark.parametrize("utility", ["f1", "jaccard"])
@pytest.mark.parametrize("case", spread(SMALL, 22), ids=lambda case: case.name)
def test_against_all_pairs(case: zoo.Case, utility: str) -> None:
    w = world(setting(case, len(utility)))
    states = oracle.all_states(w.labels)
    expected = w.table.probs @ index(states, utility)
    rows = states.to(w.dtype).reshape(-1, *[1] * len(w.batch), w.labels).expand(-1, *w.batch, w.labels)
    found = (w.p.expected_f1 if utility == "f1" else w.p.expected_jaccard)(rows)
    w.close(found.movedim(0, -1), expected)
    best = expected.masked_fill(~w.allowed, -1.0).amax(-1)
    y, value, bound = w.p.decode_with_bound(utility)
    assert y.shape == (*w.batch, w.labels)
    assert w.holds(y).all()
    assert torch.equal(w.p.decode(utility), y)
    w.close(value, expected.gather(-1, oracle.state_index(y).unsqueeze(-1)).squeeze(-1))
    w.close(value, best)
    w.close(bound, best)


@pytest.mark.parametrize("case", spread(SMALL[::2], 16), ids=lambda case: case.name)
def test_search_without_listing(case: zoo.Case, monkeypatch: pytest.MonkeyPatch) -> None:
    """The search for large supports, tried on small ones: its bound holds, and is mostly reached."""
    w = world(setting(case, 1))
    monkeypatch.setattr(Domain, "can_be_listed", lambda self, most=0: False)
    states = oracle.all_states(w.labels)
    for utility in ("f1", "jaccard"):
        expected = (w.table.probs @ index(states, utility)).masked_fill(~w.allowed, -1.0)
        y, value, bound = w.p.decode_with_bound(utility)
        assert w.holds(y).all()
        w.close(value, expected.gather(-1, oracle.state_index(y).unsqueeze(-1)).squeeze(-1))
        assert (bound >= expected.amax(-1) - w.tolerance).all()
        assert (value >= expected.amax(-1) - 0.1).all()


@pytest.mark.parametrize("labels", [1, 2, 7, 30, 200])
def test_independent_labels_are_decoded_exactly(labels: int) -> None:
    # with independent labels the best set of k labels has the k most probable ones
    p = sp.baselines.FIL(3, labels)(torch.randn(4, 3))
    y, value, bound = p.decode_with_bound("f1")
    torch.testing.assert_close(value, bound, atol=1e-5, rtol=1e-5)
    order = p.mean.argsort(-1, descending=True)
    rank = order.argsort(-1)
    prefixes = (rank < torch.arange(labels + 1)[:, None, None]).float()
    torch.testing.assert_close(p.expected_f1(prefixes).amax(0), value, atol=1e-5, rtol=1e-5)
    assert (y.sum(-1) == (y * (rank < y.sum(-1, keepdim=True))).sum(-1)).all()


def test_expected_f1_of_many_labels_against_their_number() -> None:
    # 300 fair coins: |Y ∩ y| and |Y| by the binomial distribution
    labels, size = 300, 120
    p = sp.constrain(torch.zeros(labels, dtype=torch.float64), sp.logic.TRUE, labels=[f"y{i}" for i in range(labels)])
    y = torch.zeros(labels, dtype=torch.float64)
    y[:size] = 1
    pmf = _binomial(size)[:, None] * _binomial(labels - size)[None]
    inside, outside = np.arange(size + 1)[:, None], np.arange(labels - size + 1)[None]
    f1 = (pmf * 2 * inside / (size + inside + outside)).sum()
    jaccard = (pmf * inside / (size + outside)).sum()
    assert p.expected_f1(y).item() == pytest.approx(f1, abs=1e-10)
    assert p.expected_jaccard(y).item() == pytest.approx(jaccard, abs=1e-10)


def _binomial(n: int) -> np.ndarray:
    from math import comb

    return np.array([comb(n, k) / 2**n for k in range(n + 1)])


def test_a_large_hierarchy() -> None:
    rng = np.random.default_rng(0)
    edges = [(f"n{i}", f"n{rng.integers(i)}") for i in range(1, 60)]
    p = sp.constrain(torch.randn(6, 60) - 1, sp.constraints.hierarchy(edges))
    y, value, bound = p.decode_with_bound("f1")
    assert p.support.check(y).all()
    torch.testing.assert_close(p.expected_f1(y), value)
    for other in (p.mode, p.decode("hamming"), p.sample((50,))):
        assert (p.expected_f1(other) <= value + 1e-5).all()
    assert (bound >= value - 1e-6).all()
    assert (bound - value).max() < 0.02
    y, value, bound = p.decode_with_bound("jaccard")
    assert (p.expected_jaccard(p.mode) <= value + 1e-5).all()
    assert (bound >= value - 1e-6).all()


def test_expected_f1_has_gradients() -> None:
    y = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)
    logits = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    rules = "(cat -> animal) & (dog -> animal)"
    assert torch.autograd.gradcheck(lambda z: sp.constrain(z, rules).expected_f1(y), logits)
    assert torch.autograd.gradcheck(lambda z: sp.constrain(z, rules).expected_jaccard(y), logits)


def test_no_rows() -> None:
    p = sp.constrain(torch.zeros(0, 3), sp.one_hot(["a", "b", "c"]))
    for utility in ("f1", "jaccard"):
        assert p.decode(utility).shape == (0, 3)
    assert p.expected_f1(torch.zeros(0, 3)).shape == (0,)


def test_unknown_utility() -> None:
    p = sp.constrain(torch.zeros(2), "a | b")
    with pytest.raises(ValueError, match="utility must be 'f1' or 'jaccard', not 'hamming'"):
        p.decode_with_bound("hamming")
