"""Batches without rows, and zero samples: every query of every layer answers with an empty tensor."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
import worlds
from selection import spread
from torch import Tensor, nn
from torch.distributions import kl_divergence

import semprola as sp

pytestmark = pytest.mark.usefixtures("each_engine")

NAN = math.nan
FEATURES = 4
ROWS = 11  # a size that nothing else has
PETS = "(cat -> animal) & (dog -> animal)"
RULES: dict[str, Any] = {
    "small": PETS,
    "large": sp.at_least(1, ["cat", "dog", "animal", *(f"y{i}" for i in range(10))]),
}


class Constrained(nn.Module):
    """`sp.constrain` with logits made from features."""

    def __init__(self, circuit: sp.Circuit) -> None:
        super().__init__()
        self.circuit, self.body = circuit, nn.Linear(FEATURES, circuit.num_labels)

    def forward(self, z: Tensor) -> Any:
        return sp.constrain(self.body(z), self.circuit)


class Ensemble(nn.Module):
    """A mixture of two layers of different kinds."""

    def __init__(self, circuit: sp.Circuit) -> None:
        super().__init__()
        self.parts = nn.ModuleList([sp.SPL(FEATURES, circuit), sp.ProductSPL(FEATURES, circuit)])

    def forward(self, z: Tensor) -> Any:
        return sp.distributions.mixture([part(z) for part in self.parts])


class Given(nn.Module):
    """A layer over the same rules and one more, with a given variable."""

    def __init__(self, circuit: sp.Circuit) -> None:
        super().__init__()
        rules = sp.compile(circuit.source & sp.parse("night -> animal"), labels=circuit.labels, given=["night"])
        self.layer = sp.SPL(FEATURES, rules)

    def forward(self, z: Tensor) -> Any:
        return self.layer(z, given=torch.ones(*z.shape[:-1], 1))


def named(name: str) -> Callable[[sp.Circuit], nn.Module]:
    kind = sp.SPL if name.startswith("spl") else sp.ProductSPL
    return lambda circuit: kind(FEATURES, circuit, **worlds.LAYERS[name])


def with_known_states(circuit: sp.Circuit) -> nn.Module:
    states = torch.zeros(2, circuit.num_labels)
    states[:, circuit.labels.index("animal")] = 1
    states[0, circuit.labels.index("cat")] = 1
    return sp.SPL(FEATURES, circuit, known_states=states)


KINDS = ("spl-m1-k1", "spl-m2-k1", "spl-m1-k2", "spl-m2-k2-elementwise", "product-1", "product-2", "hmm-2", "vtree-2")
LAYERS: dict[str, Callable[[sp.Circuit], nn.Module]] = {
    **{name: named(name) for name in KINDS},
    "known": with_known_states,
    "constrain": Constrained,
    "ensemble": Ensemble,
    "given": Given,
}

Query = Callable[[Any], Any]


def states_of(p: Any, *samples: int) -> Tensor:
    """Label vectors that satisfy both rules [*samples, *batch, labels]."""
    y = torch.zeros(*samples, *p.batch_shape, len(p.labels))
    y[..., p.labels.index("animal")] = 1
    return y


QUERIES: dict[str, Query] = {
    "log_prob": lambda p: p.log_prob(states_of(p)),
    "log_prob of samples": lambda p: p.log_prob(states_of(p, 5)),
    "log_prob or an error": lambda p: p.log_prob(states_of(p), on_violation="raise"),
    "log_prob or nothing": lambda p: p.log_prob(states_of(p), on_violation="ignore"),
    "log_prob of the nearest": lambda p: p.log_prob(states_of(p), on_violation="project"),
    "log_partition": lambda p: p.log_partition,
    "log_mixing": lambda p: p.log_mixing,
    "mean": lambda p: p.mean,
    "variance": lambda p: p.variance,
    "log_marginal": lambda p: p.log_marginal(torch.full((*p.batch_shape, len(p.labels)), NAN)),
    "log_marginal of samples": lambda p: p.log_marginal(states_of(p, 5)),
    "log_marginal by name": lambda p: p.log_marginal({"cat": 1}),
    "log_prob_of cases": lambda p: p.log_prob_of("cat | dog"),
    "log_prob_of a conjunction": lambda p: p.log_prob_of(sp.at_least(2, ["cat", "dog", "animal"])),
    "log_prob_of a contradiction": lambda p: p.log_prob_of("cat & ~cat"),
    "entropy": lambda p: p.entropy(),
    "entropy_bounds": lambda p: p.entropy_bounds(),
    "entropy_estimate": lambda p: p.entropy_estimate(7),
    "kl_divergence": lambda p: kl_divergence(p, p),
    "mode": lambda p: p.mode,
    "mode_is_exact": lambda p: p.mode_is_exact,
    **{
        f"decode {name}": lambda p, name=name: p.decode(name) for name in ("mode", "hamming", "f1", "jaccard", "greedy")
    },
    "decode gains": lambda p: p.decode(torch.ones(*p.batch_shape, len(p.labels))),
    "decode gains by name": lambda p: p.decode({"cat": 1.0}),
    "decode_with_bound f1": lambda p: p.decode_with_bound("f1"),
    "decode_with_bound jaccard": lambda p: p.decode_with_bound("jaccard"),
    "sample": lambda p: p.sample(),
    "samples": lambda p: p.sample((3, 2)),
    "top_k": lambda p: p.top_k(2),
    "top_k past the end": lambda p: p.top_k(9),
    "support": lambda p: p.support.check(states_of(p)),
    "enumerate_support": lambda p: p.enumerate_support(),
    "project": lambda p: p.project(states_of(p)),
    "rescore": lambda p: p.rescore(torch.eye(len(p.labels)), torch.zeros(len(p.labels))),
    "expected_f1": lambda p: p.expected_f1(states_of(p)),
    "expected_f1 of samples": lambda p: p.expected_f1(states_of(p, 5)),
    "expected_jaccard": lambda p: p.expected_jaccard(states_of(p)),
    "expected_jaccard of samples": lambda p: p.expected_jaccard(states_of(p, 5)),
    "expand": lambda p: p.expand((3, *p.batch_shape)).mean,
    "mixture": lambda p: sp.distributions.mixture([p, p]).mean,
}
QUERIES |= {
    f"{name} given evidence": lambda p, query=QUERIES[name]: query(p.condition({"animal": 1}))
    for name in ("log_prob", "mean", "mode", "log_marginal", "entropy_bounds", "sample", "top_k", "expected_f1")
}

ZERO_SAMPLES: dict[str, Query] = {
    "log_prob": lambda p: p.log_prob(states_of(p, 0)),
    "log_marginal": lambda p: p.log_marginal(states_of(p, 0)),
    "sample": lambda p: p.sample((0,)),
    "support": lambda p: p.support.check(states_of(p, 0)),
    "project": lambda p: p.project(states_of(p, 0)),
    "rescore": lambda p: p.rescore(torch.zeros(0, len(p.labels)), torch.zeros(0)),
    "expected_f1": lambda p: p.expected_f1(states_of(p, 0)),
    "expected_jaccard": lambda p: p.expected_jaccard(states_of(p, 0)),
}


@pytest.mark.parametrize("batch", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize(("name", "rules"), spread(itertools.product(LAYERS, RULES), 7, 1))
def test_every_query_of_an_empty_batch(name: str, rules: str, batch: tuple[int, ...]) -> None:
    layer = LAYERS[name](sp.compile(RULES[rules]))
    full = (*batch[:-1], ROWS)
    # the number of states depends on the given values of the rows
    queries = {what: query for what, query in QUERIES.items() if name != "given" or what != "enumerate_support"}
    compare(queries, layer, features(full), features(batch), lambda shape: _without_rows(shape, full, batch))


@pytest.mark.parametrize("batch", [(0,), (2, 0)], ids=str)
def test_without_rows_nothing_narrows_the_support(batch: tuple[int, ...]) -> None:
    p = sp.SPL(FEATURES, PETS)(features(batch)).condition({"cat": 1})
    assert p.enumerate_support().shape == (5, *batch, 3)
    assert Given(sp.compile(PETS))(features(batch)).enumerate_support().shape == (5, *batch, 3)


@pytest.mark.parametrize("batch", [(), (2,), (0,)], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_every_query_of_zero_samples(name: str, batch: tuple[int, ...]) -> None:
    p = LAYERS[name](sp.compile(PETS))(features(batch))
    wrong = {}
    for what, query in ZERO_SAMPLES.items():
        try:
            for answer in tensors(query(p)):
                assert answer.numel() == 0
                assert answer.dtype in (torch.float32, torch.bool)
            if what in ("log_prob", "log_marginal", "expected_f1", "expected_jaccard"):
                assert query(p).shape == (0, *batch)
        except Exception as error:
            wrong[what] = error
    assert not wrong


@pytest.mark.parametrize("batch", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize("name", LAYERS)
def test_names_of_an_empty_batch(name: str, batch: tuple[int, ...]) -> None:
    p = LAYERS[name](sp.compile(PETS))(features(batch))
    empty: list[Any] = [[], []] if batch == (2, 0) else []
    for what in ("mode", "marginals", "top_k"):
        columns = [*p.labels, "log_prob"] if what == "top_k" else [*p.labels]
        assert p.to_dict(what) == dict.fromkeys(columns, empty)
        frame = p.to_frame(what)
        assert list(frame.columns) == columns
        assert len(frame) == 0


SEQUENCE_QUERIES: dict[str, Query] = {
    "log_prob": lambda p: p.log_prob(torch.zeros(*p.batch_shape, 4, dtype=torch.long)),
    "log_prob of samples": lambda p: p.log_prob(torch.zeros(5, *p.batch_shape, 4, dtype=torch.long)),
    "log_prob or an error": lambda p: p.log_prob(
        torch.zeros(*p.batch_shape, 4, dtype=torch.long), on_violation="raise"
    ),
    "log_partition": lambda p: p.log_partition,
    "mean": lambda p: p.mean,
    "variance": lambda p: p.variance,
    "mask": lambda p: p.mask,
    "lengths": lambda p: p.lengths,
    "log_marginal": lambda p: p.log_marginal({1: "B"}),
    "log_marginal of samples": lambda p: p.log_marginal(torch.full((5, *p.batch_shape, 4), -1)),
    "condition": lambda p: p.condition({1: "B"}).mean,
    "enumerate_support given evidence": lambda p: p.condition(torch.full((*p.batch_shape, 4), -1)).enumerate_support(),
    "entropy": lambda p: p.entropy(),
    "kl_divergence": lambda p: kl_divergence(p, p),
    "mode": lambda p: p.mode,
    "mode_is_exact": lambda p: p.mode_is_exact,
    "decode mode": lambda p: p.decode("mode"),
    "decode hamming": lambda p: p.decode("hamming"),
    "decode gains": lambda p: p.decode(torch.ones(*p.batch_shape, 4, 3)),
    "sample": lambda p: p.sample(),
    "samples": lambda p: p.sample((3, 2)),
    "no samples": lambda p: p.sample((0,)),
    "top_k": lambda p: p.top_k(2),
    "top_k past the end": lambda p: p.top_k(200),
    "support": lambda p: p.support.check(torch.zeros(*p.batch_shape, 4, dtype=torch.long)),
    "enumerate_support": lambda p: p.enumerate_support(),
    "expand": lambda p: p.expand((3, *p.batch_shape)).mean,
}


@pytest.mark.parametrize("batch", [(0,), (2, 0)], ids=str)
@pytest.mark.parametrize("rules", [None, "(B I* | O)*"])
@pytest.mark.parametrize("transitions", [True, False])
def test_every_query_of_an_empty_batch_of_sequences(
    rules: str | None, transitions: bool, batch: tuple[int, ...]
) -> None:
    layer = sp.SequenceSPL(["B", "I", "O"], rules, transitions=transitions)
    full = (*batch[:-1], ROWS)
    inputs = (torch.randn(*shape, 4, 3, requires_grad=True) for shape in (full, batch))
    compare(SEQUENCE_QUERIES, layer, *inputs, lambda shape: _without_rows(shape, full, batch))
    p = layer(torch.zeros(*batch, 4, 3))
    empty: list[Any] = [[], []] if batch == (2, 0) else []
    assert p.to_dict() == {"tags": empty}
    assert p.to_dict("top_k") == {"tags": empty, "log_prob": empty}
    assert p.to_dict("marginals") == dict.fromkeys(["B", "I", "O"], empty)


def test_sequences_of_rows_that_were_left_out_have_the_full_length() -> None:
    p = sp.SequenceSPL(2)(torch.zeros(1, 3, 2), lengths=[2])
    assert p.enumerate_support().shape == (4, 1, 3)
    assert p.expand((0, 1)).enumerate_support().shape == (8, 0, 1, 3)


def features(batch: tuple[int, ...]) -> Tensor:
    return torch.randn(*batch, FEATURES, requires_grad=True)


def tensors(answer: Any) -> tuple[Tensor, ...]:
    return answer if isinstance(answer, tuple) else (answer,)


def compare(
    queries: dict[str, Query],
    layer: nn.Module,
    full: Tensor,
    empty: Tensor,
    shape_of: Callable[[torch.Size], tuple[int, ...]],
) -> None:
    """An empty batch is answered like one with rows: same types, shapes and refusals, and gradients of zero."""
    wrong = {}
    for name, query in queries.items():
        try:
            expected = tensors(query(layer(full)))
        except (sp.SemprolaError, ValueError) as refusal:
            with pytest.raises(type(refusal)):
                query(layer(empty))
            continue
        try:
            found = tensors(query(layer(empty)))
            assert [answer.shape for answer in found] == [shape_of(answer.shape) for answer in expected]
            assert [answer.dtype for answer in found] == [answer.dtype for answer in expected]
            for answer, like in zip(found, expected, strict=True):
                assert answer.requires_grad == like.requires_grad
                if answer.requires_grad:
                    _check_gradients(layer, empty, answer)
        except Exception as error:
            wrong[name] = error
    assert not wrong


def _check_gradients(layer: nn.Module, empty: Tensor, answer: Tensor) -> None:
    slopes = torch.autograd.grad(answer.sum(), [empty, *layer.parameters()], retain_graph=True, allow_unused=True)
    assert all(slope is None or bool((slope == 0).all()) for slope in slopes)


def _without_rows(shape: torch.Size, full: tuple[int, ...], batch: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the batch in place of a full one."""
    first = next(i for i in range(len(shape)) if shape[i : i + len(full)] == full)
    return (*shape[:first], *batch, *shape[first + len(full) :])
