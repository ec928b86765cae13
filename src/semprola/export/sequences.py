"""A tagger with its layer for sequences and one query, on operators that every runtime has."""

from __future__ import annotations

import copy
import json
from typing import Any

import torch
from torch import Tensor, nn

from semprola.errors import SemprolaError
from semprola.nn import SequenceSPL

_QUERIES = ("mode", "mean", "log_prob", "hamming")


class SequenceQuery(nn.Module):
    """A network that ends in a `SequenceSPL`, and one query of what it returns.

    The passes over a sequence are unrolled by exporters, so that a program is for the number of positions of its
    example, and for any batch size.

    Args:
        network: the network; its forward returns what the layer returns.
        what: "mode", "mean", "log_prob" or "hamming".

    Raises:
        SemprolaError: if the query is unknown.
    """

    def __init__(self, network: nn.Module, what: str) -> None:
        super().__init__()
        if what not in _QUERIES:
            raise SemprolaError(f"of a sequence {', '.join(_QUERIES)} can be exported, not {what!r:.40}")
        self.body, self.what = copy.deepcopy(network).eval().requires_grad_(False), what

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The answer for inputs x, and for "log_prob" for tags y [batch, positions]."""
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
        """What an ONNX file says of the layer."""
        layer = next(module for module in self.body.modules() if isinstance(module, SequenceSPL))
        return {"labels": json.dumps(list(layer.tags)), "rules_digest": layer.machine.digest}
