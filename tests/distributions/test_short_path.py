"""Independent labels without evidence are answered by one call of the engine: the same answers as the plain way."""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import torch.utils.checkpoint
import zoo
from torch import Tensor

import semprola as sp
from semprola.distributions.independent import IndependentLabels

CASES = ("cat_dog_animal", "free_labels", "exactly_two_of_five", "family_paths")
Query = Callable[[sp.distributions.ProductDistribution, Tensor], Tensor]
QUERIES: dict[str, Query] = {
    "log_partition": lambda p, y: p.log_partition,
    "log_prob": lambda p, y: p.log_prob(y),
    "mean": lambda p, y: p.mean,
}


@pytest.fixture(params=["torch", "auto"])
def engine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def layer_of(name: str) -> sp.ConstraintLayer:
    return sp.ConstraintLayer(zoo.case(name).circuit)


def answers(layer: sp.ConstraintLayer, logits: Tensor, y: Tensor) -> dict[str, Tensor]:
    """Values and gradients of every query, and of a loss that mixes them; -inf is left out of the sums."""
    found = {}
    for name, query in QUERIES.items():
        own = logits.clone().requires_grad_()
        value = query(layer(own), y)
        found[name] = value.detach()
        (found[f"{name}, gradient"],) = torch.autograd.grad(value[value > -math.inf].square().sum(), own)
    with torch.no_grad():
        p = layer(logits)
        return found | {"without gradients": p.log_prob(y), "mode": p.mode, "log Z": p.log_partition}


@pytest.mark.parametrize("name", CASES)
def test_the_same_answers(name: str, engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    layer = layer_of(name)
    labels = len(layer.labels)
    generator = torch.Generator().manual_seed(0)
    for dtype in (torch.float32, torch.float64):
        for batch in ((), (1,), (7,), (2, 3), (0,)):
            logits = 3 * torch.randn((*batch, labels), generator=generator, dtype=dtype)
            y = layer(logits).sample()
            y[..., -1] = torch.bernoulli(torch.full_like(y[..., -1], 0.5), generator=generator)  # some are impossible
            with sp.engine.using(engine):
                short = answers(layer, logits, y)
            with monkeypatch.context() as patch:
                patch.setattr(IndependentLabels, "_is_bare", False)
                plain = answers(layer, logits, y)
            torch.testing.assert_close(short, plain, rtol=1e-4, atol=1e-5)


def test_it_is_the_short_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """The queries above do take it, so that the comparison is one of two things."""
    monkeypatch.setattr(IndependentLabels, "_by_weights", None)
    monkeypatch.setattr(IndependentLabels, "log_scores", None)
    p = layer_of("cat_dog_animal")(torch.randn(4, 3))
    assert p.log_prob(p.mode).shape == p.log_partition.shape == (4,)


@pytest.mark.parametrize("name", CASES)
def test_derivatives_of_all_orders(name: str, engine: str) -> None:
    layer = layer_of(name)
    logits = torch.randn((3, len(layer.labels)), dtype=torch.float64, requires_grad=True)
    y = layer(logits.detach()).sample()
    with sp.engine.using(engine):
        for query in (QUERIES["log_partition"], QUERIES["log_prob"]):
            assert torch.autograd.gradcheck(lambda x, q=query: q(layer(x), y), logits)
            assert torch.autograd.gradgradcheck(lambda x, q=query: q(layer(x), y), logits)
        value = QUERIES["log_prob"](layer(logits), y).sum()
        (first,) = torch.autograd.grad(value, logits, retain_graph=True)
        (again,) = torch.autograd.grad(value, logits)
    torch.testing.assert_close(again, first)


def test_an_impossible_state_has_no_gradient(engine: str) -> None:
    """Not even where the gradient that comes in is not a number."""
    logits = torch.randn(3, 3, requires_grad=True)
    y = torch.tensor([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]])
    with sp.engine.using(engine):
        value = layer_of("cat_dog_animal")(logits).log_prob(y)
        value.backward(torch.tensor([math.nan, 2.0, math.inf]))
    assert value.tolist()[0::2] == [-math.inf, -math.inf]
    assert torch.equal(logits.grad[0::2], torch.zeros(2, 3))
    assert bool((logits.grad[1] != 0).any())


def test_a_distribution_stays_what_it_was() -> None:
    """After a step of an optimiser, changes in place of logits and answers, and a move of the layer."""
    layer, logits = layer_of("exactly_two_of_five"), torch.nn.Parameter(torch.randn(4, 5))
    p = layer(logits)
    y = p.mode
    late = layer(logits)
    before = [p.log_partition, p.log_prob(y), y.clone()]
    torch.optim.SGD([logits], lr=1.0).zero_grad()
    p.log_prob(y).sum().backward()
    torch.optim.SGD([logits], lr=10.0).step()
    p.mode.fill_(7.0)
    with torch.no_grad():
        p.log_partition.zero_()
        logits.fill_(math.nan)
    layer.double()
    for own in (p, late):
        torch.testing.assert_close([own.log_partition, own.log_prob(y), own.mode], before)
    slopes = torch.autograd.grad(late.log_partition.sum(), logits)[0]
    assert bool(torch.isfinite(slopes).all())


def test_changes_in_place_of_states_and_answers(engine: str) -> None:
    """Buffers may be filled again before the backward pass, and answers changed: gradients are those of before."""
    layer, logits = layer_of("cat_dog_animal"), torch.randn(4, 3, requires_grad=True)
    y = torch.tensor([[1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    some = torch.tensor([0, 2, 3])

    def slopes(change: bool) -> list[Tensor]:
        own = y.clone()
        value, log_z = layer(logits).log_prob(own), layer(logits).log_partition
        if change:
            own.fill_(1.0)
            value = value.mul_(2.0).masked_fill_(torch.tensor([False, True, False, False]), 0.0).div_(2.0)
            log_z.mul_(1.0)
        found = [torch.autograd.grad(value.sum(), logits, retain_graph=True)[0] for _ in range(2)]
        (slope,) = torch.autograd.grad(value[some].sum() + log_z.sum(), logits, create_graph=True)
        return [*found, slope.detach(), torch.autograd.grad(slope.square().sum(), logits)[0]]

    with sp.engine.using(engine):
        changed, unchanged = slopes(True), slopes(False)
    torch.testing.assert_close(changed, unchanged)
    assert torch.equal(changed[0][1], torch.zeros(3))


def test_states_of_inference_mode_and_hooks_on_what_is_kept(engine: str) -> None:
    """Pseudo-labels come from inference mode; checkpoints and offloading replace what is kept for the way back."""
    layer, logits = layer_of("exactly_two_of_five"), torch.randn(4, 5, requires_grad=True)
    with sp.engine.using(engine):
        with torch.inference_mode():
            y = layer(logits).mode
        value = layer(logits).log_prob(y)
        (expected,) = torch.autograd.grad(value.sum(), logits)
        kept: list[Tensor] = []

        def pack(value: Tensor) -> int:
            kept.append(value.clone())
            return len(kept) - 1

        with torch.autograd.graph.saved_tensors_hooks(pack, kept.__getitem__):
            value = layer(logits).log_prob(y)
        assert getattr(value.grad_fn.next_functions[0][0], "slopes", None) is None, "kept where no hook sees it"
        torch.testing.assert_close(torch.autograd.grad(value.sum(), logits)[0], expected)
        again = torch.utils.checkpoint.checkpoint(lambda x: layer(x).log_prob(y), logits, use_reentrant=False)
        torch.testing.assert_close(torch.autograd.grad(again.sum(), logits)[0], expected)


@pytest.mark.parametrize("name", CASES)
def test_layouts_and_types(name: str, engine: str) -> None:
    """Slices, transposed and expanded tensors, half precision, one y for all rows, and none."""
    layer = layer_of(name)
    labels = len(layer.labels)
    wide = torch.randn(2 * labels, 8, dtype=torch.float64)
    y = layer(wide[::2, 0]).sample()
    layouts = {
        "transposed": wide[:labels].T,
        "strided": wide[::2, ::2].T,
        "one row": wide[:labels, 0].expand(3, labels),
        "one number": wide[0, :4, None].expand(4, labels),
        "no rows": wide[:labels, :0].T,
        "two batches": wide[:labels].T.reshape(2, 4, labels).transpose(0, 1),
    }
    with sp.engine.using(engine):
        for logits in layouts.values():
            for kind in (torch.float64, torch.float32, torch.bfloat16, torch.float16):
                own = logits.to(kind).requires_grad_()
                plain = logits.to(kind).float() if kind.itemsize == 2 else logits.to(kind)
                plain = plain.contiguous().requires_grad_()
                for state in (y, y.bool(), y.to(torch.int64)):
                    found, expected = layer(own).log_prob(state), layer(plain).log_prob(y.expand(plain.shape))
                    torch.testing.assert_close(found, expected)
                    slopes = torch.autograd.grad(found.sum(), own)[0], torch.autograd.grad(expected.sum(), plain)[0]
                    torch.testing.assert_close(slopes[0], slopes[1].to(kind))
                torch.testing.assert_close(layer(own).mode, layer(plain).mode)


@pytest.mark.parametrize("size", [1e2, 1e4, 1e20, 1e37])
def test_extreme_logits_against_enumeration(size: float, engine: str) -> None:
    layer = layer_of("cat_dog_animal")
    factors = torch.tensor([[1.0, -0.5, 0.3], [-0.2, 0.7, -1], [0.4, 1, -0.6], [-1, -0.1, 0.8], [-0.9, -0.3, -0.2]])
    logits = (size * factors).requires_grad_()
    states = torch.as_tensor(layer.circuit.enumerate()).float()
    scores = (logits.double().detach()[:, None] * states).sum(-1)  # log q(y), less what all states have in common
    with sp.engine.using(engine):
        p = layer(logits)
        found, expected = p.log_prob(states[:, None].expand(5, 5, 3)).T, scores.log_softmax(1).float()
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-3)  # what the rounding of log-odds may cost
        assert torch.equal(p.mode, states[scores.argmax(1)])
        p.log_prob(p.mode).sum().backward()
        assert torch.isfinite(logits.grad).all()


def test_bad_logits_are_refused_by_row(engine: str) -> None:
    layer = layer_of("cat_dog_animal")
    with sp.engine.using(engine):
        for bad in (math.nan, math.inf, -math.inf):
            logits = torch.zeros(2, 3, 3)
            logits[1, 2, 0] = bad
            with pytest.raises(ValueError, match=r"logits must be finite.*\(1, 2\)"):
                layer(logits)
        # sums of squares overflow, numbers do not
        p = layer(torch.full((2, 3), 1e30))
        assert p.mode.tolist() == [[1.0, 1.0, 1.0]] * 2
        with pytest.raises(TypeError, match="floating point"):
            layer(torch.zeros(2, 3, dtype=torch.int64))


def test_function_transforms_and_threads() -> None:
    layer = layer_of("family_paths")
    logits = torch.randn(6, len(layer.labels), dtype=torch.float64)
    y = layer(logits).sample()

    def loss(x: Tensor, target: Tensor) -> Tensor:
        return layer(x).log_prob(target).sum() + layer(x).log_partition.sum()

    own = logits.clone().requires_grad_()
    (expected,) = torch.autograd.grad(loss(own, y), own)
    torch.testing.assert_close(torch.func.grad(loss)(logits, y), expected)
    torch.testing.assert_close(torch.func.vmap(torch.func.grad(loss))(logits, y), expected)

    def step(_: int) -> Tensor:
        mine = logits.clone().requires_grad_()
        return torch.autograd.grad(loss(mine, y), mine)[0]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(step, range(8)):
            torch.testing.assert_close(found, expected)
