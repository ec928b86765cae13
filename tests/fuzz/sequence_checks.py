"""What is checked of distributions over sequences, against the list of all sequences that obey."""

from __future__ import annotations

import copy
import itertools
import pickle
import tempfile
from pathlib import Path

import torch

import semprola as sp

from .sequences import INF, TAGS, SequenceWorld, obeys, possible


def _rules_mean_what_they_say(w: SequenceWorld) -> None:
    for row, length in zip(w.listed, w.rows, strict=True):
        assert {tuple(y) for y in row.y.tolist()} == possible(w.source, length)


def _log_prob(w: SequenceWorld) -> None:
    w.close(w.p.log_partition, w.each(lambda row: row.log_z))
    for y in itertools.product(range(len(TAGS)), repeat=w.source.positions):
        found = w.p.log_prob(torch.tensor(y).expand(*w.batch, -1)).reshape(-1)
        for value, row, length in zip(found, w.listed, w.rows, strict=True):
            same = (row.y == torch.tensor(y[:length])).all(1)
            w.close(value, row.log_probs[same].sum() if same.any() else torch.tensor(-INF))


def _mode_and_ranks(w: SequenceWorld) -> None:
    best = w.each(lambda row: row.log_probs.max())
    w.close(w.p.log_prob(w.p.mode), best)
    assert not w.layer.violations(w.p.mode)
    y, log_probs = w.p.top_k(4)
    padding = torch.full((4,), -INF, dtype=torch.float64)
    w.close(
        log_probs, w.each(lambda row: torch.cat([row.log_probs.double(), padding]).sort(descending=True).values[:4])
    )
    w.close(w.p.log_prob(y.movedim(-2, 0)).movedim(0, -1)[..., 0], best)


def _marginals(w: SequenceWorld) -> None:
    w.close(w.p.marginals, w.each(lambda row: row.marginals(w.source.positions, len(TAGS))))
    w.close(w.p.entropy(), w.each(lambda row: -(row.log_probs.exp() * row.log_probs).sum()))


def _evidence(w: SequenceWorld) -> None:
    rows = [row.y[int(torch.randint(len(row.y), (), generator=w.generator))] for row in w.listed]
    hidden = [torch.rand(len(y), generator=w.generator) < 0.5 for y in rows]
    evidence = w.stacked([y.masked_fill(h, -1) for y, h in zip(rows, hidden, strict=True)])
    agree = [((row.y == y) | h).all(1) for row, y, h in zip(w.listed, rows, hidden, strict=True)]
    expected = [row.log_probs[a].logsumexp(0) for row, a in zip(w.listed, agree, strict=True)]
    w.close(w.p.log_marginal(evidence), expected)
    given = w.p.condition(evidence)
    w.close(
        given.log_prob(w.stacked(rows)), w.p.log_prob(w.stacked(rows)).reshape(-1) - torch.stack(expected).reshape(-1)
    )
    assert not w.layer.violations(given.mode)


def _further_rule(w: SequenceWorld) -> None:
    holds = [
        torch.tensor([obeys(w.source.more, tuple(TAGS[i] for i in y)) for y in row.y.tolist()]) for row in w.listed
    ]
    made = eval(w.source.more, {"sp": sp})
    expected = [row.log_probs.masked_fill(~h, -INF).logsumexp(0) for row, h in zip(w.listed, holds, strict=True)]
    w.close(w.p.log_prob_of(made), expected)


def _samples_and_decoding(w: SequenceWorld) -> None:
    y = w.p.sample((5,), generator=w.generator)
    assert (w.p.log_prob(y) > -INF).all()
    assert not w.p.violations(y)
    right = [
        (torch.nn.functional.one_hot(row.y, 3) * row.marginals(w.source.positions, 3)[: row.y.shape[1]]).sum((1, 2))
        for row in w.listed
    ]
    found = w.p.decode("hamming")
    chosen = w.p.marginals.gather(-1, found.clamp(min=0).unsqueeze(-1)).squeeze(-1) * (found >= 0)
    w.close(chosen.sum(-1), [r.max() for r in right])


def _violations(w: SequenceWorld) -> None:
    y = torch.randint(len(TAGS), (6, w.source.positions), generator=w.generator)
    allowed = possible(w.source, w.source.positions)
    found = {violation.row for violation in sp.violations(w.layer, y)}
    assert found == {i for i, row in enumerate(y.tolist()) if tuple(row) not in allowed}


def _copies(w: SequenceWorld) -> None:
    original, mean = w.layer, w.p.marginals
    with tempfile.TemporaryDirectory() as folder:
        sp.save(original, Path(folder) / "it")
        saved = sp.load(Path(folder) / "it")
    try:
        for w.layer in (copy.deepcopy(original), pickle.loads(pickle.dumps(original)), saved):
            w.close(w.at(w.logits).marginals, mean.double())
    finally:
        w.layer = original


def _gradient(w: SequenceWorld) -> None:
    logits = w.logits.double().requires_grad_()
    y = w.stacked([row.y[0] for row in w.listed])
    (found,) = torch.autograd.grad(w.at(logits).log_prob(y).sum(), logits)
    one_hot = torch.nn.functional.one_hot(y.clamp(min=0), len(TAGS)) * (y >= 0).unsqueeze(-1)
    w.close(found, one_hot - w.p.marginals)


CHECKS = (
    _rules_mean_what_they_say,
    _log_prob,
    _mode_and_ranks,
    _marginals,
    _evidence,
    _further_rule,
    _samples_and_decoding,
    _violations,
    _copies,
    _gradient,
)
