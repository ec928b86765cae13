"""Sequences by brute force: every sequence that obeys, with its log-probability, from the definition."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

import semprola as sp
from semprola.sequences.machines import TagMachine

TAGS = ("B", "I", "O")
BIO = 'I -> "prev=B" | "prev=I"'
RULES: dict[str, Any] = {
    "none": None,
    "bio": sp.parse(BIO),  # nodes are tags
    "both neighbours": sp.parse('(I -> "prev=B") & ~("prev=O" & O & "next=O")'),
    "a third": TagMachine([[0, 0, 1], [1, 1, 2], [2, 2, -1]], [False, True, True]),
    "at most one": sp.at_most(1, ["B"]),
    "never after": "!(.* O .* B .*)",
    "in turn": sp.parse('(B -> "prev=O" | first) & (O -> "prev=B" | first) & ~I'),  # never forgets where it began
}


@dataclass
class Listed:
    """All sequences that obey [sequences, length] and their log-probabilities [sequences]."""

    y: Tensor
    log_probs: Tensor
    log_z: Tensor

    def padded(self, positions: int) -> Tensor:
        padding = torch.full((len(self.y), positions - self.y.shape[1]), -1)
        return torch.cat([self.y, padding], 1)

    def marginals(self, positions: int, tags: int) -> Tensor:
        one_hot = torch.nn.functional.one_hot(self.y, tags).to(self.log_probs)
        result = self.log_probs.new_zeros(positions, tags)
        result[: self.y.shape[1]] = (self.log_probs.exp()[:, None, None] * one_hot).sum(0)
        return result


def make(rules: str, transitions: bool = True, dtype: torch.dtype = torch.float64) -> sp.SequenceSPL:
    layer = sp.SequenceSPL(TAGS, RULES[rules], transitions, dtype=dtype)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.normal_()
    return layer


def listed(layer: sp.SequenceSPL, logits: Tensor) -> Listed:
    """From logits [length, tags]."""
    found, scores = [], []
    for y in itertools.product(range(len(layer.tags)), repeat=len(logits)):
        if not layer.machine.accepts(y):
            continue
        score = sum(logits[t, tag].double() for t, tag in enumerate(y))
        if layer.start is not None and layer.transitions is not None and layer.end is not None:
            score = score + layer.start[y[0]].double() + layer.end[y[-1]].double()
            score = score + sum(layer.transitions[a, b].double() for a, b in itertools.pairwise(y))
        found.append(y)
        scores.append(score)
    total = torch.stack(scores)  # type: ignore[arg-type]
    log_z = total.logsumexp(0)
    return Listed(torch.tensor(found), total - log_z, log_z)
