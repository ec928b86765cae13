"""A tagger that ends in a `SequenceSPL`, with one query, as operators that every runtime has."""

from __future__ import annotations

import copy
import json
from typing import Any

import torch
from torch import Tensor, nn

from semprola.errors import SemprolaError
from semprola.sequences import SequenceSPL

_QUERIES = ("mode", "mean", "log_prob", "hamming")


class SequenceQuery(nn.Module):
    """A network that ends in a `SequenceSPL`, followed by a query.

    Exporters unroll the passes over a sequence, so a program works for the number of positions of its example only, but
    for any batch size.

    Args:
        network: a network that returns its layer's distribution.
        what: "mode", "mean", "log_prob" or "hamming".

    Raises:
        SemprolaError: if the query is unknown.
    """

    def __init__(self, network: nn.Module, what: str) -> None:
        super().__init__()
        if what not in _QUERIES:
            raise SemprolaError(f"what must be one of {', '.join(map(repr, _QUERIES))}, not {what!r:.40}")
        self.body, self.what = copy.deepcopy(network).eval().requires_grad_(False), what

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The answer for inputs x, and for "log_prob" also for tags y [batch, positions]."""
        p = self.body(x)
        if self.what == "log_prob":
            answer: Tensor = p.log_prob(y)
            return answer
        answer = {"mode": lambda: p.mode, "mean": lambda: p.mean, "hamming": lambda: p.decode("hamming")}[self.what]()
        return answer

    def example_of_y(self, x: Tensor) -> Tensor:
        """Tags to trace the network with."""
        with torch.no_grad():
            tags: Tensor = self.body(x).mode
        return tags.clamp(min=0)

    def metadata(self) -> dict[str, Any]:
        """What an exported file says about the layer."""
        layer = next(module for module in self.body.modules() if isinstance(module, SequenceSPL))
        return {"labels": json.dumps(list(layer.tags)), "rules_digest": layer.machine.digest}
