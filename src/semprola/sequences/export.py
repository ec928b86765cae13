"""A tagger that ends in a `SequenceSPL`, with one query, as operators that every runtime has."""

from __future__ import annotations

import copy
import json
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from semprola.errors import SemprolaError
from semprola.sequences import SequenceSPL
from semprola.sequences.distribution import SequenceDistribution

_QUERIES = ("mode", "mean", "log_prob", "hamming")


class SequenceQuery(nn.Module):
    """A network that ends in a `SequenceSPL`, followed by a query.

    Exporters unroll the passes over a sequence, so a program works for the number of positions of its example only,
    unless `most` says that shorter sequences are padded to it. The batch size is free.

    Args:
        most: the positions of the longest sequences, if shorter ones are to work too; then the second dimension of the
            network's inputs must be the positions.
    """

    def __init__(self, network: nn.Module, what: str, most: int | None = None) -> None:
        super().__init__()
        if what not in _QUERIES:
            raise SemprolaError(f"what must be one of {', '.join(map(repr, _QUERIES))}, not {what!r:.40}")
        self.body, self.what, self.most = copy.deepcopy(network).eval().requires_grad_(False), what, most
        if most is not None:
            name, layer = next((n, m) for n, m in self.body.named_modules() if isinstance(m, SequenceSPL))
            owner, _, attribute = name.rpartition(".")
            padded = _Padded(layer, most)
            if name:
                setattr(self.body.get_submodule(owner), attribute, padded)
            else:
                self.body = padded

    def forward(self, x: Tensor, y: Tensor | None = None) -> Tensor:
        """The answer for inputs x, and for "log_prob" also for tags y [batch, positions]."""
        p = self.body(x)
        if self.what == "log_prob":
            if self.most is not None and y is not None:
                y = F.pad(y, (0, self.most - y.shape[1]), value=-1)
            answer: Tensor = p.log_prob(y)
            return answer
        answer = {"mode": lambda: p.mode, "mean": lambda: p.mean, "hamming": lambda: p.decode("hamming")}[self.what]()
        return answer if self.most is None else answer[:, : x.shape[1]]

    def example_of_y(self, x: Tensor) -> Tensor:
        """Tags to trace the network with."""
        with torch.no_grad():
            tags: Tensor = self.body(x).mode
        return tags.clamp(min=0) if self.most is None else tags[:, : x.shape[1]].clamp(min=0)

    def metadata(self) -> dict[str, Any]:
        """What an exported file says about the layer."""
        layer = next(module for module in self.body.modules() if isinstance(module, SequenceSPL))
        return {"labels": json.dumps(list(layer.tags)), "rules_digest": layer.machine.digest}


class _Padded(nn.Module):
    """A `SequenceSPL` whose logits [batch, positions, tags] are padded to the longest sequences."""

    def __init__(self, layer: SequenceSPL, most: int) -> None:
        super().__init__()
        possible = [True] * most if layer.chain.is_free else layer.chain.possible_lengths(most)[1 : most + 1]
        if not all(possible):
            raise SemprolaError(
                f"no sequence of {list(possible).index(False) + 1} tags obeys the rules, so that a program cannot take "
                "sequences of any length: export it for one length"
            )
        self.layer, self.most = layer, most

    def forward(self, logits: Tensor) -> SequenceDistribution:
        positions = logits.shape[-2]
        lengths = torch.full(logits.shape[:-2], positions, device=logits.device)
        answer: SequenceDistribution = self.layer(F.pad(logits, (0, 0, 0, self.most - positions)), lengths)
        return answer
