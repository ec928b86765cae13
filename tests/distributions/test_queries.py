"""What is too slow, or too seldom different, to be tried on the whole zoo: frequencies, divergences, errors."""

from __future__ import annotations

import math
from typing import Any

import oracle
import pytest
import torch
import worlds
import zoo
from oracle import Table
from selection import spread
from worlds import Setting, world

import semprola as sp

NAN = math.nan
FEW = ("cat_dog_animal", "free_labels", "nested_choice", "permutation_3", "given_two", "family_paths")


def few(*layers: str, **fixed: Any) -> pytest.MarkDecorator:
    settings = worlds.crossed(FEW, layers or tuple(worlds.LAYERS), **fixed)
    return pytest.mark.parametrize("setting", spread(settings, 40), ids=str)


@few(batch=(2,), scale=0.3)
def test_sample_frequencies(setting: Setting) -> None:
    w = world(setting)
    y = w.p.sample((4000,), generator=torch.Generator().manual_seed(0))
    for row in range(2):
        counts = torch.bincount(oracle.state_index(y[:, row]), minlength=2**w.labels)
        assert abs(oracle.chi_square_z(counts, w.table.probs[row])) < 4.5


@few(batch=(2,), scale=0.3)
def test_conditional_sample_frequencies(setting: Setting) -> None:
    w = world(setting)
    evidence = w.some_models(1)[0]
    evidence[..., 1:] = NAN
    y = w.p.condition(evidence).sample((4000,), generator=torch.Generator().manual_seed(0))
    expected = w.table.condition(evidence)
    for row in range(2):
        counts = torch.bincount(oracle.state_index(y[:, row]), minlength=2**w.labels)
        assert abs(oracle.chi_square_z(counts, expected.probs[row])) < 4.5


@few(batch=(2,), scale=0.3)
def test_entropy_estimate(setting: Setting) -> None:
    w = world(setting)
    torch.manual_seed(0)
    estimate = w.p.entropy_estimate(4000)
    assert estimate.shape == w.batch
    surprise = w.table.log_probs.masked_fill(~w.table.support, 0.0)
    spread = ((w.table.probs * surprise**2).sum(-1) - w.table.entropy**2).clamp(min=0).sqrt()
    assert ((estimate - w.table.entropy).abs() <= 5 * spread / 4000**0.5 + 1e-9).all()


@few(*worlds.DETERMINISTIC)
def test_kl_divergence(setting: Setting) -> None:
    w = world(setting)
    other = w.at(torch.randn(w.z.shape, dtype=w.dtype, generator=w.fresh()))
    divergence = torch.distributions.kl_divergence(w.p, other)
    w.close(divergence, w.table.kl(Table.of(other)))
    w.close(torch.distributions.kl_divergence(w.p, w.p), torch.zeros(w.batch))


@pytest.mark.parametrize("observed", [False, True])
@pytest.mark.parametrize("layer", ["spl-m1-k2", "spl-m2-k2", "spl-m3-k1", "product-3", "hmm-3", "vtree-2"])
@pytest.mark.parametrize("name", ["many_models", "random_nested_3", "family_hierarchy_free", "family_cardinality"])
def test_mode_is_called_exact_only_where_it_is(name: str, layer: str, observed: bool) -> None:
    w = world(Setting(zoo.case(name), layer, batch=(40,), scale=0.3, observed=observed))
    best = w.table.max_log_prob
    found = w.table.log_prob(w.p.mode)
    assert (found > -oracle.INF).all()
    assert (~w.p.mode_is_exact | (found >= best - w.tolerance * (1 + best.abs()))).all()


@few("product-2", "product-3")
def test_mode_of_a_mixture_beats_every_component(setting: Setting) -> None:
    w = world(setting)
    for i in range(w.p.logits.shape[-2]):
        component = Table.of_mixture(w.p.log_mixing[..., i : i + 1], w.p.logits[..., i : i + 1, :], w.allowed)
        candidate = component.states[component.log_probs.argmax(-1)]
        assert (w.table.log_prob(w.p.mode) >= w.table.log_prob(candidate) - w.tolerance).all()


@few("spl-m1-k1", "spl-m2-k2", "product-1", "product-2", "hmm-2", "vtree-2", scale=2.0)
def test_extreme_gates_stay_finite(setting: Setting) -> None:
    w = world(setting)
    z = (w.z * 1e4).requires_grad_()
    log_prob = w.at(z).log_prob(w.some_models(1)[0])
    log_prob.sum().backward()
    assert log_prob.isfinite().all()
    assert z.grad is not None
    assert z.grad.isfinite().all()


@few("spl-m1-k1", "spl-m2-k2", "product-2", "hmm-2", "vtree-2")
def test_integer_and_boolean_labels(setting: Setting) -> None:
    w = world(setting)
    y = w.some_models(1)[0]
    for same in (y.long(), y.bool(), y.to(torch.uint8), y.float()):
        w.close(w.p.log_prob(same), w.table.log_prob(y))


@few("spl-m1-k1", "spl-m2-k2", "product-2")
def test_bad_arguments(setting: Setting) -> None:
    w = world(setting)
    y = w.some_models(1)[0]
    wide = torch.cat([y, y[..., :1]], -1)
    for bad in (wide, y[..., :-1], y + 0.5, y * 0 + 2, y - 1.5, y * NAN):
        with pytest.raises(ValueError, match=r"\S") as caught:
            w.p.log_prob(bad)
        assert_one_line(caught.value)
    for bad in (wide, y + 0.5):
        with pytest.raises(ValueError, match=r"\S") as caught:
            w.p.log_marginal(bad)
        assert_one_line(caught.value)
        with pytest.raises(ValueError, match=r"\S") as caught:
            w.p.condition(bad)
        assert_one_line(caught.value)
    with pytest.raises(ValueError, match="nonsense") as caught:
        w.p.decode("nonsense")
    assert_one_line(caught.value)
    for k in (0, -1, 1.5):
        with pytest.raises(ValueError, match=r"\S") as caught:
            w.p.top_k(k)
        assert_one_line(caught.value)


@pytest.mark.parametrize("layer", ["spl-m1-k1", "spl-m2-k2", "product-1", "product-2", "hmm-2", "vtree-2"])
@pytest.mark.parametrize("name", ["given_may_leave_none", "given_must_hold", "given_too_much"])
def test_inputs_without_a_model_name_the_row(name: str, layer: str) -> None:
    w = world(Setting(zoo.case(name), layer, batch=(4,)))
    dead = oracle.inputs(w.case, live=False).to(w.dtype)
    assert len(dead)
    assert w.x is not None
    x = w.x.clone()
    x[2] = dead[0]
    with pytest.raises(sp.UnsatisfiableError, match=r"\b2\b") as caught:
        w.layer(w.z, given=x)
    assert_one_line(caught.value)


@pytest.mark.parametrize("layer", ["spl-m1-k1", "product-1", "hmm-2"])
def test_bad_inputs(layer: str) -> None:
    w = world(Setting(zoo.case("given_two"), layer, batch=(4,)))
    assert w.x is not None
    for bad in (None, w.x[:, :1], torch.cat([w.x, w.x], -1), w.x + 0.5, w.x * NAN, w.x[:3]):
        with pytest.raises(ValueError, match=r"\S") as caught:
            w.layer(w.z, given=bad)
        assert_one_line(caught.value)


def assert_one_line(error: BaseException) -> None:
    assert str(error).strip()
    assert "\n" not in str(error)


def test_top_k_of_a_large_mixture_lists_no_state_twice() -> None:
    p = sp.SPL(3, sp.at_least(1, [f"y{i}" for i in range(20)]), replicas=4)(torch.randn(2, 3))
    states, log_probs = p.top_k(100)
    for row, values in zip(states, log_probs, strict=True):
        assert len(torch.unique(row, dim=0)) == 100
        assert torch.isfinite(values).all()
        assert (values[1:] <= values[:-1]).all()


def test_many_rows_for_one_distribution() -> None:
    """A batch of one is broadcast, as torch's own distributions do; other batches refuse with one line."""
    layer = sp.SPL(3, sp.parse("a -> b"))
    p = layer(torch.randn(1, 3))
    every = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    log_prob = p.log_prob(every)
    assert log_prob.shape == (4,)
    assert torch.equal(log_prob, p.log_prob(every[:, None])[:, 0])
    assert torch.isclose(log_prob.exp().sum(), torch.tensor(1.0))
    assert layer(torch.randn(1, 1, 3)).log_prob(torch.ones(2, 5, 2)).shape == (2, 5)
    with pytest.raises(ValueError, match=r"has more rows than batch \(2, 1\) of 2 labels: repeat the features"):
        layer(torch.randn(2, 1, 3)).log_prob(torch.ones(2, 5, 2))


@pytest.mark.parametrize("size", [100.0, 2000.0, 8000.0])
def test_large_log_odds_of_many_labels_keep_probabilities_below_one(size: float) -> None:
    names = [f"x{i}" for i in range(200)]
    rules = sp.constraints.hierarchy([(names[i], names[(i - 1) // 2]) for i in range(1, 200)])
    torch.manual_seed(0)
    logits = size * (2 * torch.rand(4, 200) - 1)
    p, exact = (sp.constrain(values, rules) for values in (logits, logits.double()))
    assert (p.log_prob(p.mode) <= 1e-3).all()
    torch.testing.assert_close(p.log_prob(p.mode).double(), exact.log_prob(p.mode.double()), rtol=1e-4, atol=2e-2)
    lower, upper = p.entropy_bounds()
    assert (lower <= upper).all()


@pytest.mark.parametrize(
    "make",
    [
        lambda rows: sp.SPL(6, "(a -> b) & (c | d)")(rows),
        lambda rows: sp.constrain(rows, sp.at_least(1, list("abcdef"))),
    ],
)
def test_entropy_is_never_negative(make: Any) -> None:
    p = make(40 * torch.randn(2000, 6, generator=torch.Generator().manual_seed(0)))
    assert (p.entropy() >= 0).all()
    assert all((bound >= 0).all() for bound in p.entropy_bounds())
