"""Distributions over sequences in notebooks: the most probable sequences with bars."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from semprola.distributions.showing import MOST_EDGES, states_table, title

if TYPE_CHECKING:
    from semprola.sequences.distribution import SequenceDistribution

_SEQUENCES, _TAGS = 5, 24


def html(p: SequenceDistribution) -> str | None:
    """The best sequences of the first row; None if there is no row, or the rules' automaton is too large.

    Example:
        >>> import torch, semprola as sp
        >>> "B I" in html(sp.SequenceSPL(["B", "I", "O"], "(B I* | O)*")(torch.zeros(2, 3)))
        True
    """
    positions = p.event_shape[0]
    if p.chain.num_nodes * len(p.tags) * positions > MOST_EDGES or not p.batch_shape.numel():
        return None
    with torch.no_grad():
        states, log_probs = p.top_k(_SEQUENCES)
    first, chances = states.reshape(-1, _SEQUENCES, positions)[0], log_probs.reshape(-1, _SEQUENCES)[0].tolist()
    rows = []
    for tags, value in zip(first.tolist(), chances, strict=True):
        names = [str(p.tags[int(tag)]) for tag in tags if tag >= 0]
        more = " …" if len(names) > _TAGS else ""
        if value > -math.inf:
            rows.append((" ".join(names[:_TAGS]) + more, math.exp(value)))
    return title(type(p).__name__, p.batch_shape, f"{len(p.tags):,} tags") + states_table(rows)
