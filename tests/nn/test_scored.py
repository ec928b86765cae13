"""A layer that knows the labels beforehand gives the same numbers as one that does not, or does what it always does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, prune
from torch.utils.checkpoint import checkpoint

import semprola as sp
from semprola.distributions.spl import ScoredDistribution
from semprola.engine.backends import BACKENDS
from semprola.engine.ops import gates

pytestmark = pytest.mark.usefixtures("each_engine")

TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("f", "c")]
LAYERS: dict[str, Callable[[], sp.SPL]] = {
    "tree": lambda: sp.SPL(4, sp.constraints.hierarchy(TREE)),
    "components": lambda: sp.SPL(4, sp.constraints.permutation(4), components=3, gate=(5,)),
    "mixed fan-ins": lambda: sp.SPL(4, "(a | b | c) & (d -> a) & (a ^ e ^ f)", components=2),
    "table": lambda: sp.SPL(4, sp.constraints.cardinality(list("abcdefg"), exactly=3), gate=(6, 5)),
    "linear": lambda: sp.SPL(4, sp.constraints.permutation(3), gate=nn.Linear),
}


@pytest.fixture(autouse=True)
def every_circuit_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are multiplied one by one for all circuits, whether it pays or not."""
    monkeypatch.setattr(gates, "_LEAST_LOGITS", 1)
    for backend in BACKENDS:
        monkeypatch.setattr(backend, "few_rows", 1e9)


@pytest.fixture(params=LAYERS)
def layer(request: pytest.FixtureRequest) -> sp.SPL:
    torch.manual_seed(3)
    made = LAYERS[request.param]().double()
    for parameter in made.parameters():
        nn.init.normal_(parameter)
    return made


def batch(layer: sp.SPL, *shape: int) -> tuple[Tensor, Tensor]:
    z = torch.randn(*shape, 4, dtype=torch.float64, requires_grad=True)
    return z, layer(z).sample()


def few(layer: nn.Module, z: Tensor, y: Tensor) -> Tensor:
    """The log-probabilities by few rows, and nothing else."""
    p = layer(z, scored=y)
    assert type(p) is ScoredDistribution
    return p.log_prob(y)


def gradients(value: Tensor, layer: nn.Module, z: Tensor, weight: Tensor) -> tuple[Tensor, ...]:
    return torch.autograd.grad((value * weight).sum(), [*layer.parameters(), z])


@pytest.mark.parametrize("shape", [(), (1,), (9,), (2, 3), (0,)])
def test_values_and_gradients_are_those_of_the_plain_way(layer: sp.SPL, shape: tuple[int, ...]) -> None:
    z, y = batch(layer, *shape)
    weight = torch.randn(shape, dtype=torch.float64)
    expected, found = layer(z).log_prob(y), few(layer, z, y)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(gradients(found, layer, z, weight), gradients(expected, layer, z, weight))


def test_after_an_optimiser_step(layer: sp.SPL) -> None:
    """The labels' numbers stay those of the call; the next call has new ones, and the rest is refused."""
    z, y = batch(layer, 5)
    expected = layer(z).log_prob(y)
    optimizer = torch.optim.SGD(layer.parameters(), 0.5)
    p, asked = layer(z, scored=y), layer(z, scored=y)
    mean = asked.mean
    (-p.log_prob(y).mean()).backward()
    optimizer.step()
    torch.testing.assert_close(p.log_prob(y), expected)
    for query in ("mode", "mean", "log_partition"):
        with pytest.raises(sp.SemprolaError, match="call the layer again"):
            getattr(p, query)
    torch.testing.assert_close(asked.mean, mean)  # what has been asked for stays known
    torch.testing.assert_close(few(layer, z, y), layer(z).log_prob(y))
    assert not torch.allclose(layer(z).log_prob(y), expected)


def test_every_question_is_answered(layer: sp.SPL) -> None:
    z, y = batch(layer, 5)
    whole = layer(z)
    others = whole.sample((3,))
    p = layer(z, scored=y)
    torch.testing.assert_close(p.mode, whole.mode)
    torch.testing.assert_close(p.mean, whole.mean)
    torch.testing.assert_close(p.log_prob(others), whole.log_prob(others))
    torch.testing.assert_close(p.log_prob(y.clone()), whole.log_prob(y))
    torch.testing.assert_close(p.log_prob(y, on_violation="ignore"), whole.log_prob(y))
    torch.testing.assert_close(p.expand((2, 5)).log_prob(y), whole.log_prob(y).expand(2, 5))


def test_labels_that_are_written_into_are_other_labels(layer: sp.SPL) -> None:
    z, y = batch(layer, 5)
    other = layer(z).sample()
    p = layer(z, scored=y)
    y.copy_(other)
    torch.testing.assert_close(p.log_prob(y), layer(z).log_prob(other))


def test_states_outside_of_the_constraint(layer: sp.SPL) -> None:
    z, y = batch(layer, 6)
    y[::2] = 1 - y[::2]
    expected = layer(z).log_prob(y)
    found = few(layer, z, y)
    torch.testing.assert_close(found, expected)
    possible = expected.isfinite()
    assert bool(possible[1::2].all())
    wanted = gradients(expected[possible], layer, z, torch.ones(int(possible.sum())))
    torch.testing.assert_close(gradients(found[possible], layer, z, torch.ones(int(possible.sum()))), wanted)


def test_gradients_of_gradients(layer: sp.SPL) -> None:
    z, y = batch(layer, 4)
    found = []
    for value in (few(layer, z, y), layer(z).log_prob(y)):
        (slope,) = torch.autograd.grad(value.sum(), z, create_graph=True)
        found.append(torch.autograd.grad(slope.square().sum(), z)[0])
    torch.testing.assert_close(*found)


def test_with_several_threads(layer: sp.SPL) -> None:
    z, y = batch(layer, 64)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        torch.testing.assert_close(few(layer, z, y), layer(z).log_prob(y))
    finally:
        torch.set_num_threads(before)


def last(layer: sp.SPL) -> nn.Linear:
    return layer.gate if isinstance(layer.gate, nn.Linear) else layer.gate.output


CHANGES: dict[str, Callable[[sp.SPL], object]] = {
    "hook on the gate": lambda layer: layer.gate.register_forward_hook(lambda _, __, out: out / 2),
    "hook on the last layer": lambda layer: last(layer).register_forward_hook(lambda _, __, out: out / 2),
    "hook before the last layer": lambda layer: last(layer).register_forward_pre_hook(lambda _, z: (2 * z[0],)),
    "backward hook": lambda layer: last(layer).register_full_backward_hook(lambda _, of_input, __: of_input),
    "pruned": lambda layer: prune.l1_unstructured(last(layer), "weight", amount=0.5),
    "weight norm": lambda layer: parametrizations.weight_norm(last(layer)),
    "another forward": lambda layer: setattr(
        last(layer), "forward", lambda z: nn.functional.linear(z, 2 * last(layer).weight)
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changed_gates_go_the_plain_way(layer: sp.SPL, change: str) -> None:
    CHANGES[change](layer)
    z, y = batch(layer, 3)
    expected = layer(z).log_prob(y)
    p = layer(z, scored=y)
    assert type(p) is sp.distributions.SPLDistribution
    torch.testing.assert_close(p.log_prob(y), expected)


def test_hooks_on_the_layer_fire(layer: sp.SPL) -> None:
    z, y = batch(layer, 3)
    seen: list[object] = []
    layer.register_forward_pre_hook(lambda _, args: seen.append(args[0]))
    layer.register_forward_hook(lambda _, __, p: seen.append(p))
    p = layer(z, scored=y)
    assert seen == [z, p]
    assert type(p) is ScoredDistribution


class _Scores(nn.Module):
    def __init__(self, layer: sp.SPL, y: Tensor) -> None:
        super().__init__()
        self.layer, self.y = layer, y

    def forward(self, z: Tensor) -> Tensor:
        return self.layer(z, scored=self.y).log_prob(self.y)


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_looks_into_the_computation_goes_the_plain_way(layer: sp.SPL) -> None:
    z, y = batch(layer, 3)
    expected = layer(z).log_prob(y)
    twice = {name: 2 * value.detach() for name, value in layer.named_parameters()}
    # other parameters for one call
    found = torch.func.functional_call(layer, twice, (z,), {"scored": y}).log_prob(y)
    assert not torch.allclose(found, expected)
    # function transforms
    slope = torch.func.grad(lambda z: layer(z, scored=y).log_prob(y).sum())(z)
    # a second run in the backward pass
    value = checkpoint(lambda z: layer(z, scored=y).log_prob(y), z, use_reentrant=False)
    traced = torch.jit.trace(_Scores(layer, y), z, check_trace=False)
    torch.testing.assert_close(slope, torch.autograd.grad(expected.sum(), z)[0])
    torch.testing.assert_close(torch.autograd.grad(value.sum(), z)[0], slope)
    torch.testing.assert_close(traced(z), expected)
    single = layer.float()
    with torch.autocast("cpu", torch.bfloat16):
        assert type(single(z.float(), scored=y)) is sp.distributions.SPLDistribution


@pytest.mark.parametrize("wrong", ["shape", "half observed", "not 0 or 1"])
def test_labels_that_do_not_fit_are_left_to_log_prob(layer: sp.SPL, wrong: str) -> None:
    z, y = batch(layer, 3)
    made = {"shape": y[None], "half observed": y.clone(), "not 0 or 1": y * 3}[wrong]
    if wrong == "half observed":
        made[:, 0] = torch.nan
    assert type(layer(z, scored=made)) is sp.distributions.SPLDistribution


def test_only_tensors_are_labels(layer: sp.SPL) -> None:
    with pytest.raises(TypeError, match="scored must be a tensor of label vectors, not list"):
        layer(torch.zeros(1, 4).double(), scored=[[0, 1]])  # type: ignore[arg-type]


def test_bad_features_are_refused_by_row(layer: sp.SPL) -> None:
    z, y = batch(layer, 3)
    z = z.detach()
    z[1] = torch.nan
    with pytest.raises(ValueError, match="row 1"):
        layer(z, scored=y)


def test_large_circuits_only(layer: sp.SPL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    z, y = batch(layer, 3)
    assert type(layer(z, scored=y)) is sp.distributions.SPLDistribution


def test_training_uses_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The trainer takes the same steps with and without."""
    x, results, calls = torch.randn(64, 4), [], []
    monkeypatch.setattr(ScoredDistribution, "log_prob", lambda p, y: calls.append(y) or p._log_probs)
    for share in (1e9, 0.0):
        for backend in BACKENDS:
            monkeypatch.setattr(backend, "few_rows", share)
        torch.manual_seed(0)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), sp.SPL(8, sp.constraints.permutation(3), components=2))
        y = torch.eye(3)[torch.argsort(x[:, :3], 1)].flatten(1)
        history = sp.training.fit(net, (x, y), None, epochs=3, batch_size=16, seed=1, progress=False)
        results.append((history.loss[-1], net(x).log_prob(y).detach()))
        assert not net[2]._forward_pre_hooks
    assert len(calls) == 12
    assert results[0][0] == pytest.approx(results[1][0], rel=1e-4)
    torch.testing.assert_close(results[0][1], results[1][1], rtol=1e-3, atol=1e-3)


def test_an_answer_is_a_copy() -> None:
    layer, y = sp.SPL(4, sp.constraints.permutation(10)), torch.eye(10).flatten()[None]
    with torch.no_grad():
        p = layer(torch.ones(1, 4), scored=y)
        before = p.log_prob(y).clone()
        p.log_prob(y).neg_()
        torch.testing.assert_close(p.log_prob(y), before)


def test_labels_that_are_changed_in_inference_mode_are_scored_anew() -> None:
    layer, z = sp.SPL(4, sp.constraints.permutation(10)), torch.ones(1, 4)
    with torch.inference_mode():
        y = torch.eye(10).flatten()[None].clone()
        p = layer(z, scored=y)
        y.copy_(torch.eye(10).flip(0).flatten())
        torch.testing.assert_close(p.log_prob(y), layer(z).log_prob(y.clone()))
