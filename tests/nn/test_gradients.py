"""Gradients of the differentiable queries with respect to the features, against finite differences."""

from __future__ import annotations

import oracle
import pytest
import torch
import worlds
from selection import spread
from torch import Tensor
from worlds import Setting, World, world

CASES = (
    "cat_dog_animal",
    "single_model",
    "free_labels",
    "exactly_two_of_five",
    "nested_choice",
    "random_dnf_1",
    "given_in_one_branch",
    "family_hierarchy",
    "family_paths",
)
LAYERS = ("spl-m1-k1", "spl-m2-k2", "spl-m1-k2-elementwise", "product-1", "product-2", "hmm-2", "vtree-2")


@pytest.fixture(params=spread(worlds.crossed(CASES, LAYERS, batch=(2,), scale=0.3), 26), ids=str)
def w(request: pytest.FixtureRequest) -> World:
    setting: Setting = request.param
    return world(setting)


def test_log_prob(w: World) -> None:
    y = w.some_models(2)
    assert torch.autograd.gradcheck(lambda z: w.at(z).log_prob(y), features(w))


def test_log_prob_of_a_violation_has_no_nan_gradient(w: World) -> None:
    states = oracle.all_states(w.labels, w.dtype)
    y = states[(~w.allowed).to(torch.int64).argmax(-1)]
    z = features(w)
    log_prob = w.at(z).log_prob(torch.stack([y, w.some_models(1)[0]]))
    log_prob[log_prob.isfinite()].sum().backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_log_partition(w: World) -> None:
    if w.setting.layer.startswith("spl"):
        pytest.skip("log Z of a normalised circuit is the constant 0")
    assert torch.autograd.gradcheck(lambda z: w.at(z).log_partition, features(w))


def test_mean(w: World) -> None:
    assert torch.autograd.gradcheck(lambda z: w.at(z).mean, features(w))


def test_log_marginal(w: World) -> None:
    evidence = w.some_models(1)[0]
    evidence[..., ::2] = torch.nan
    assert torch.autograd.gradcheck(lambda z: w.at(z).log_marginal(evidence), features(w))


def test_entropy(w: World) -> None:
    assert torch.autograd.gradcheck(lambda z: w.at(z).entropy(), features(w))


def test_every_parameter_of_the_layer_learns(w: World) -> None:
    if w.case.name == "single_model":
        pytest.skip("nothing to learn where there is one model")
    w.layer.zero_grad()
    (-w.p.log_prob(w.some_models(8))).mean().backward()
    missing = [name for name, weight in w.layer.named_parameters() if weight.grad is None]
    assert not missing
    assert sum(float(weight.grad.abs().sum()) for weight in w.layer.parameters() if weight.grad is not None) > 0


def test_queries_without_derivatives_do_not_take_those_of_later_ones(w: World) -> None:
    if w.case.name == "single_model":
        pytest.skip("nothing to learn where there is one model")

    def slopes(*before: str) -> list[Tensor]:
        z = features(w)
        p = w.at(z)
        for name in before:
            with torch.no_grad():
                p.sample() if name == "sample" else p.log_prob(y) if name == "log_prob" else getattr(p, name)
        p.mode  # noqa: B018 (never has derivatives, whatever the mode)
        loss = p.log_prob(y).sum() + p.mean.square().sum()
        return list(torch.autograd.grad(loss, [z, *w.layer.parameters()], allow_unused=True))

    y = w.some_models(1)[0]
    expected = slopes()
    for found in (slopes("sample"), slopes("mean", "log_prob"), slopes("log_partition", "mode")):
        for one, other in zip(found, expected, strict=True):
            assert (one is None) == (other is None)
            assert one is None or torch.allclose(one, other)


def test_what_is_made_without_derivatives_has_none(w: World) -> None:
    with torch.no_grad():
        p = w.at(features(w))
    y = w.some_models(1)[0]
    assert not p.log_prob(y).requires_grad
    assert not p.mean.requires_grad
    with torch.inference_mode():
        assert torch.equal(w.at(features(w)).mode, p.mode)


def features(w: World) -> Tensor:
    return w.z.clone().requires_grad_()
