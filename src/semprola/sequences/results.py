"""Results of distributions over sequences: support, expectations, violations, lists of sequences, names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions.constraints import Constraint

from semprola._notebook import beside, heading, more, table
from semprola.distributions.showing import MOST_EDGES, states_table, title
from semprola.distributions.violations import Violation
from semprola.engine.numbers import NEGATIVE_INFINITY
from semprola.errors import IntractableError, ViolationError
from semprola.sequences.arguments import tag_rows
from semprola.sequences.chains import Chain, Posterior

if TYPE_CHECKING:
    from semprola.sequences.distribution import SequenceDistribution


_MOST_LISTED = 2**16
_WHAT = ("mode", "marginals", "top_k")


class ObeysRules(Constraint):
    """Sequences that obey the rules and agree with the distribution's evidence."""

    is_discrete = True
    event_dim = 1

    def __init__(self, distribution: SequenceDistribution) -> None:
        self._distribution = distribution
        super().__init__()

    def check(self, value: Any) -> Tensor:
        """Whether each sequence of value [*sample, *batch, positions] is in the support: bool."""
        p = self._distribution
        y, shape = tag_rows(value, len(p.tags), p.trellis.positions, p.batch_shape)
        y = y.to(p.trellis.emissions.device)
        known = (y >= 0) & (y < len(p.tags))
        active = p.trellis.active
        if active is not None:
            known |= ~active[:, None]
        with torch.no_grad():
            tags = y.clamp(0, len(p.tags) - 1)
            scores = p.trellis.scores_of(tags, *p.trellis.passed(tags))
        return (known.all(0) & (scores > NEGATIVE_INFINITY)).reshape(shape)


def expected_log(p: Posterior, log_first: Tensor, log_steps: Tensor) -> Tensor:
    """The expectation under p of the sum of a sequence's log-probabilities [batch]; zero times -inf is zero."""
    first = p.log_first.exp()
    total = (first * log_first.masked_fill(first == 0, 0.0)).sum(0)
    steps = p.steps
    return total + (steps * log_steps.masked_fill(steps == 0, 0.0)).sum((0, 1, 2))


def divergence(p: Posterior, q: Posterior) -> Tensor:
    """KL(p || q) [batch]."""
    own = expected_log(p, p.log_first, p.log_steps)
    return own - expected_log(p, q.log_first, q.log_steps)


def same_chain(a: Chain, b: Chain) -> bool:
    """Whether two chains have the same nodes and steps."""
    tensors = [(x.cpu(), y.cpu()) for x, y in ((a.targets, b.targets), (a.allowed, b.allowed), (a.final, b.final))]
    return all(x.shape == y.shape and torch.equal(x, y) for x, y in tensors)


def violation(p: SequenceDistribution, y: Tensor, impossible: Tensor, shape: torch.Size) -> ViolationError:
    """The error for tags [positions, samples, batch] of which some sequences [samples, batch] are impossible."""
    count = int(impossible.sum())
    found = violations(p, y, impossible, shape, most=3)
    shown = "; ".join(str(each) if shape else each.rule for each in found)
    more = f" (and {count - 3} more)" if count > 3 else ""
    return ViolationError(f"sequences that break the rules: {shown}{more}")


def violations(
    p: SequenceDistribution, y: Tensor, impossible: Tensor, shape: torch.Size, most: int | None = None
) -> list[Violation]:
    """What is wrong with the impossible sequences [samples, batch] among tags [positions, samples, batch]."""
    rows = torch.nonzero(impossible.reshape(shape))[:most].tolist()
    flat = torch.nonzero(impossible)[:most].tolist()
    return [
        Violation(row[0] if len(row) == 1 else tuple(row), _reason(p, y[:, sample, column].tolist(), column), {})
        for row, (sample, column) in zip(rows, flat, strict=True)
    ]


def _reason(p: SequenceDistribution, tags: list[int], column: int) -> str:
    """The first tag that the rules or the evidence do not allow at its position."""
    chain, active = p.chain, p.trellis.active
    count = len(tags) if active is None else int(active[:, column].sum())
    node = chain.num_nodes
    for position, tag in enumerate(tags[:count]):
        if not bool(chain.allowed[node, tag]):
            return fault(p.tags, tags[:count], position)
        if float(p.trellis.emissions[position, tag, column]) == NEGATIVE_INFINITY:
            return f"{p.tags[tag]!r} at position {position}, against the evidence"
        node = int(chain.targets[node, tag])
    return fault(p.tags, tags[:count], count)


def fault(names: Sequence[str], tags: Sequence[int], position: int) -> str:
    """What is wrong with tags whose first fault is at a position; the end, if it is after the last."""
    if position == len(tags):
        return f"it ends with {names[tags[-1]]!r} at position {position - 1}" if tags else "it is empty"
    before = f"after {names[tags[position - 1]]!r}" if position else "at the start"
    return f"{names[tags[position]]!r} at position {position}, {before}"


def all_sequences(p: SequenceDistribution) -> Tensor:
    """Every sequence of the support [sequences, positions]."""
    trellis, chain = p.trellis, p.chain
    alive = trellis.emissions > NEGATIVE_INFINITY
    rows_differ = trellis.active is not None and bool((trellis.active != trellis.active[:, :1]).any())
    if rows_differ or bool((alive != alive[..., :1]).any()):
        raise ValueError("the rows of the batch have different lengths or evidence: enumerate them one by one")
    # all rows are alike; if there are none, every sequence that obeys the rules is listed
    count = trellis.positions if trellis.active is None else int(trellis.active.all(-1).sum())
    device = trellis.emissions.device
    found = torch.zeros((1, 0), dtype=torch.int64, device=device)
    node = torch.full((1,), chain.num_nodes, dtype=torch.int64, device=device)
    for position in range(count):
        rows, tag = torch.nonzero(chain.allowed[node] & alive[position].all(-1), as_tuple=True)
        if len(rows) > _MOST_LISTED:
            raise IntractableError(f"there are more than {_MOST_LISTED:,} sequences: use top_k(k) or sample()")
        found = torch.cat([found[rows], tag[:, None]], 1)
        node = chain.targets[node[rows], tag]
    found = found[chain.final[node]]
    padding = found.new_full((len(found), trellis.positions - count), -1)
    return torch.cat([found, padding], 1)


def to_dict(p: SequenceDistribution, what: str, k: int) -> dict[str, Any]:
    """See :meth:`SequenceDistribution.to_dict`."""
    with torch.no_grad():
        if what == "mode":
            return {"tags": _named(p, p.mode.tolist(), p.lengths.tolist())}
        if what in ("marginals", "mean"):
            columns = zip(p.tags, p.mean.movedim(-1, 0).tolist(), strict=True)
            return {tag: _cut(column, p.lengths.tolist()) for tag, column in columns}
        if what == "top_k":
            y, log_probs = p.top_k(k)
            lengths = p.lengths.unsqueeze(-1).expand(log_probs.shape)
            return {"tags": _named(p, y.tolist(), lengths.tolist()), "log_prob": log_probs.tolist()}
    raise ValueError(f"expected one of {', '.join(map(repr, _WHAT))}, not {what!r}")


def _named(p: SequenceDistribution, tags: Any, lengths: Any) -> Any:
    if isinstance(lengths, int):
        return [p.tags[tag] for tag in tags[:lengths]]
    return [_named(p, row, length) for row, length in zip(tags, lengths, strict=True)]


def _cut(values: Any, lengths: Any) -> Any:
    if isinstance(lengths, int):
        return values[:lengths]
    return [_cut(row, length) for row, length in zip(values, lengths, strict=True)]


_SEQUENCES, _TAGS, _COLUMNS = 5, 24, 8


def html(p: SequenceDistribution) -> str | None:
    """The best sequences of the first row; None if there is no row, or the rules' automaton is too large."""
    positions = p.event_shape[0]
    if p.chain.num_nodes * len(p.tags) * positions > MOST_EDGES or not p.batch_shape.numel():
        return None
    with torch.no_grad():
        states, log_probs = p.top_k(_SEQUENCES)
        mean = p.mean.reshape(-1, positions, len(p.tags))[0].tolist()
        length = int(p.lengths.reshape(-1)[0])
    first, chances = states.reshape(-1, _SEQUENCES, positions)[0], log_probs.reshape(-1, _SEQUENCES)[0].tolist()
    rows = []
    for tags, value in zip(first.tolist(), chances, strict=True):
        names = [str(p.tags[int(tag)]) for tag in tags if tag >= 0]
        more = " …" if len(names) > _TAGS else ""
        if value > -math.inf:
            rows.append((" ".join(names[:_TAGS]) + more, math.exp(value)))
    best = heading("most probable sequences") + states_table(rows)
    return title(type(p).__name__, p.batch_shape, f"{len(p.tags):,} tags") + beside(best, _marginals(p, mean[:length]))


def _marginals(p: SequenceDistribution, mean: list[list[float]]) -> str:
    """The probabilities of the tags at each position; of the likeliest tags only, if there are many."""
    places = list(range(len(p.tags)))
    if len(p.tags) > _COLUMNS:
        places = sorted(sorted(places, key=lambda tag: -sum(row[tag] for row in mean))[:_COLUMNS])
    rows = [[str(at), *(f"{row[tag]:.3f}" for tag in places)] for at, row in enumerate(mean[:_TAGS])]
    header = ["position", *(str(p.tags[tag]) for tag in places)]
    cells = table(header, rows, numbers=range(len(header)))
    return heading("marginals") + cells + more(len(mean) - _TAGS, "positions")
