"""Programs that `torch.jit.trace` and exporters record answer for new features, or are refused in one line."""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable

import pytest
import torch
from selection import spread
from torch import Tensor, nn

import semprola as sp

pytestmark = [
    pytest.mark.usefixtures("each_engine"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]

TREE = [("b", "a"), ("c", "a"), ("d", "b"), ("e", "b"), ("f", "c")]
LAYERS: dict[str, Callable[[], nn.Module]] = {
    "single": lambda: sp.SPL(4, sp.constraints.hierarchy(TREE)),
    "units": lambda: sp.SPL(4, sp.constraints.hierarchy(TREE), units=2, components=2),
    "product": lambda: sp.ProductSPL(4, sp.constraints.hierarchy(TREE), components=2),
    "hmm": lambda: sp.ProductSPL(4, sp.constraints.hierarchy(TREE), q="hmm", units=2),
}
QUERIES: dict[str, Callable[[sp.distributions.SPLDistribution], Tensor]] = {
    "mode": lambda p: p.mode,
    "mean": lambda p: p.mean,
    "hamming": lambda p: p.decode("hamming"),
    "log_prob": lambda p: p.log_prob(torch.zeros(6)),
    "log_marginal": lambda p: p.log_marginal(torch.tensor([1.0, *[torch.nan] * 5])),
}


class Asking(nn.Module):
    """A layer and a question."""

    def __init__(self, layer: nn.Module, query: Callable[[sp.distributions.SPLDistribution], Tensor]) -> None:
        super().__init__()
        self.layer, self.query = layer, query

    def forward(self, z: Tensor) -> Tensor:
        return self.query(self.layer(z))


@pytest.mark.parametrize(("layer", "query"), spread(itertools.product(LAYERS, QUERIES), 9))
def test_a_traced_program_answers_for_new_features(layer: str, query: str) -> None:
    module = Asking(LAYERS[layer](), QUERIES[query])
    nn.init.normal_(module.layer.gate.output.weight)
    traced = torch.jit.trace(module, torch.randn(3, 4), check_trace=False)
    for size in (3, 5):
        z = torch.randn(size, 4)
        torch.testing.assert_close(traced(z), module(z))


@pytest.mark.parametrize("query", [lambda p: p.sample(), lambda p: p.top_k(2)[0]], ids=["sample", "top_k"])
def test_what_a_trace_cannot_follow_is_refused(query: Callable[[sp.distributions.SPLDistribution], Tensor]) -> None:
    module = Asking(LAYERS["single"](), query)
    with pytest.raises(sp.SemprolaError, match=r"^torch\.jit\.trace cannot record"):
        torch.jit.trace(module, torch.randn(3, 4), check_trace=False)


@pytest.mark.parametrize("query", ["mode", "mean", "log_prob"])
def test_the_exporter_that_is_built_on_tracing_is_refused(query: str) -> None:
    pytest.importorskip("onnx")
    module = Asking(LAYERS["single"](), QUERIES[query])
    with pytest.raises(sp.SemprolaError, match=r"^torch\.onnx\.export\(dynamo=False\) cannot export a circuit"):
        torch.onnx.export(module, (torch.randn(3, 4),), io.BytesIO(), dynamo=False)
