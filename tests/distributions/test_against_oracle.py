"""Every query of every layer on every constraint of the zoo, against enumeration."""

from __future__ import annotations

import math

import oracle
import pytest
import torch
import worlds
from oracle import INF, Table
from torch import Tensor
from worlds import Setting, World

import semprola as sp

NAN = math.nan


@pytest.mark.parametrize("setting", worlds.settings(), ids=str)
def test_every_query(setting: Setting) -> None:
    """One test a setting: a thousand of them with a dozen queries each would spend their time in the test runner."""
    w = World(setting)
    wrong = {}
    for check in CHECKS:
        try:
            check(w)
        except Exception as error:
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            wrong[check.__name__[1:]] = error
    if len(wrong) == 1:
        raise next(iter(wrong.values()))
    if wrong:
        pytest.fail("\n\n".join(f"{name}: {error!r}" for name, error in wrong.items()), pytrace=False)


def _log_prob_is_normalised_over_exactly_the_models(w: World) -> None:
    assert w.p.batch_shape == w.batch
    assert w.p.event_shape == (w.labels,)
    assert w.raw.shape == (*w.batch, 2**w.labels)
    assert w.raw.dtype == w.dtype
    assert torch.equal(w.raw > -INF, w.allowed)
    assert not w.raw.isnan().any()
    assert (w.raw[w.allowed] <= w.tolerance).all()
    w.close(w.table.log_partition, torch.zeros(w.batch))


def _log_prob_broadcasts(w: World) -> None:
    y = w.some_models(3)
    w.close(w.p.log_prob(y), w.table.log_prob(y))
    w.close(w.p.log_prob(y[0]), w.table.log_prob(y[0]))
    one = y.reshape(-1, w.labels)[0]
    assert w.p.log_prob(one).shape == w.batch
    w.close(w.p.log_prob(one), w.table.log_prob(one))


def _mode(w: World) -> None:
    mode, proven = w.p.mode, w.p.mode_is_exact
    assert mode.shape == (*w.batch, w.labels)
    assert mode.dtype == w.dtype
    assert w.holds(mode).all()
    assert proven.shape == w.batch
    assert proven.dtype == torch.bool
    best = w.table.max_log_prob
    slack = w.tolerance * (1 + best.abs())
    assert (w.table.is_mode(mode, 0.0) | ~proven | (w.table.log_prob(mode) >= best - slack)).all()
    if w.deterministic:
        assert proven.all()


def _decode(w: World) -> None:
    prediction = w.p.decode("hamming")
    assert prediction.shape == (*w.batch, w.labels)
    assert w.holds(prediction).all()
    torch.testing.assert_close(
        w.table.hamming_loss(prediction), w.table.least_hamming_loss, atol=w.labels * w.tolerance, rtol=w.tolerance
    )
    utilities = torch.randn(*w.batch, w.labels, dtype=w.dtype, generator=w.fresh())
    for u in (utilities, utilities.reshape(-1, w.labels)[0]):
        best = w.p.decode(u)
        assert best.shape == (*w.batch, w.labels)
        assert w.holds(best).all()
        w.close((best * u).sum(-1), w.table.best_utility(u.expand_as(best)))


def _mean_and_variance(w: World) -> None:
    assert w.p.mean.dtype == w.dtype
    w.close(w.p.mean, w.table.mean)
    w.close(w.p.variance, w.table.mean * (1 - w.table.mean))
    # not even by rounding: a mean goes into Bernoulli or a cross-entropy, which refuse 1.0000001
    assert (w.p.mean >= 0).all()
    assert (w.p.mean <= 1).all()


def _log_marginal(w: World) -> None:
    generator = w.fresh()
    y = torch.cat([w.some_models(3), torch.randint(0, 2, (2, *w.batch, w.labels), generator=generator).to(w.dtype)])
    hidden = torch.rand(y.shape, generator=generator) < 0.5
    evidence = y.masked_fill(hidden, NAN)
    w.close(w.p.log_marginal(evidence), w.table.log_marginal(evidence))
    w.close(w.p.log_marginal(evidence[0]), w.table.log_marginal(evidence[0]))
    nothing = torch.full((w.labels,), NAN, dtype=w.dtype)
    w.close(w.p.log_marginal(nothing), torch.zeros(w.batch))
    w.close(w.p.log_marginal(y), w.table.log_prob(y))


def _condition(w: World) -> None:
    y = w.some_models(1)[0]
    hidden = torch.rand(y.shape, generator=w.fresh()) < 0.5
    evidence = y.masked_fill(hidden, NAN)
    given, expected = w.p.condition(evidence), w.table.condition(evidence)
    assert given.batch_shape == w.batch
    raw = oracle.log_probs_of_all(given)
    w.close(raw, expected.log_probs)
    w.close(given.mean, expected.mean)
    assert w.holds(given.mode).all()
    assert given.support.check(given.mode).all()
    assert (expected.log_prob(given.sample((5,))) > -INF).all()


def _impossible_evidence_names_the_row(w: World) -> None:
    rows = w.allowed.reshape(-1, 2**w.labels)
    if rows[-1].all():
        return  # every state is a model
    wrong = oracle.all_states(w.labels, w.dtype)[int((~rows[-1]).nonzero()[0])]
    evidence = torch.full((*w.batch, w.labels), NAN, dtype=w.dtype)
    evidence.reshape(-1, w.labels)[-1] = wrong
    with pytest.raises(sp.UnsatisfiableError) as caught:
        w.p.condition(evidence)
    assert "\n" not in str(caught.value)
    if w.batch:
        last = [n - 1 for n in w.batch]
        flat = math.prod(w.batch) - 1
        assert any(str(row) in str(caught.value) for row in (flat, tuple(last), last))


def _sample(w: World) -> None:
    y = w.p.sample((16,), generator=torch.Generator().manual_seed(1))
    assert y.shape == (16, *w.batch, w.labels)
    assert y.dtype == w.dtype
    assert not y.requires_grad
    assert w.holds(y).all()
    assert torch.equal(y, w.p.sample((16,), generator=torch.Generator().manual_seed(1)))
    torch.manual_seed(2)
    again = w.p.sample((2, 3))
    torch.manual_seed(2)
    assert torch.equal(again, w.p.sample((2, 3)))
    assert again.shape == (2, 3, *w.batch, w.labels)
    assert w.p.sample().shape == (*w.batch, w.labels)


def _entropy(w: World) -> None:
    w.close(w.p.entropy(), w.table.entropy)
    lower, upper = w.p.entropy_bounds()
    slack = w.tolerance * (1 + w.table.entropy)
    assert (lower <= w.table.entropy + slack).all()
    assert (upper >= w.table.entropy - slack).all()


def _top_k(w: World) -> None:
    k = min(5, 2**w.labels) + 1
    states, log_probs = w.p.top_k(k)
    assert states.shape == (*w.batch, k, w.labels)
    assert log_probs.shape == (*w.batch, k)
    rows = states.movedim(-2, 0)
    assert w.holds(rows).all()
    assert (log_probs[..., :-1] >= log_probs[..., 1:]).all()
    some = log_probs > -INF
    size = w.allowed.sum(-1)
    assert torch.equal(some.sum(-1), size.clamp(max=k))
    w.close(torch.where(some, w.table.log_prob(rows).movedim(0, -1), -INF), log_probs)
    index = oracle.state_index(states)
    assert (
        w.table.is_mode(rows[0], w.tolerance * (1 + float(w.table.max_log_prob.abs().max()))).all()
        or not w.deterministic
    )
    for row, valid in zip(_rows(index, k), _rows(some, k), strict=True):
        assert len(set(row[valid].tolist())) == int(valid.sum())
        assert (row[~valid] == row[0]).all()
    if w.deterministic:
        w.close(log_probs, w.table.top_k(k))


def _support(w: World) -> None:
    states = oracle.all_states(w.labels, w.dtype).reshape(-1, *[1] * len(w.batch), w.labels)
    states = states.expand(-1, *w.batch, w.labels)
    assert torch.equal(w.p.support.check(states).movedim(0, -1), w.allowed)
    p, keep = w.p, w.allowed.reshape(-1, 2**w.labels)[0]
    if w.x is not None:
        # rows may have different numbers of models; enumeration is for rows that share their inputs
        p = w.at(w.z, w.x.reshape(-1, w.x.shape[-1])[0].expand_as(w.x))
    listed = p.enumerate_support()
    assert listed.shape == (int(keep.sum()), *w.batch, w.labels)
    index = oracle.state_index(listed).reshape(len(listed), -1)
    for column in index.T:
        assert sorted(column.tolist()) == keep.nonzero().squeeze(-1).tolist()
    narrow = p.enumerate_support(expand=False)
    assert narrow.shape == (int(keep.sum()), *[1] * len(w.batch), w.labels)


def _expand(w: World) -> None:
    wide = w.p.expand((2, *w.batch))
    assert wide.batch_shape == (2, *w.batch)
    y = torch.stack([w.some_models(1)[0], oracle.all_states(w.labels, w.dtype)[-1].expand(*w.batch, -1)])
    w.close(wide.log_prob(y), w.table.log_prob(y))
    w.close(wide.mean, w.table.mean.expand(2, *w.batch, -1))
    assert wide.sample((4,)).shape == (4, 2, *w.batch, w.labels)


def _log_partition(w: World) -> None:
    log_partition = w.p.log_partition
    assert log_partition.shape == w.batch
    if w.setting.observed:
        return
    if w.setting.layer.startswith("spl"):
        w.close(log_partition, torch.zeros(w.batch))
    elif w.setting.layer in worlds.FACTORISED:
        expected = Table.of_mixture(w.p.log_mixing, w.p.logits, w.allowed)
        w.close(log_partition, expected.log_partition)
        w.close(w.raw, expected.log_probs)
        w.close(torch.logsumexp(w.p.log_mixing, -1), torch.zeros(w.batch))
    else:
        assert (log_partition <= w.tolerance).all()


def _rows(values: Tensor, width: int) -> Tensor:
    return values.reshape(-1, width)


CHECKS = (
    _log_prob_is_normalised_over_exactly_the_models,
    _log_prob_broadcasts,
    _mode,
    _decode,
    _mean_and_variance,
    _log_marginal,
    _condition,
    _impossible_evidence_names_the_row,
    _sample,
    _entropy,
    _top_k,
    _support,
    _expand,
    _log_partition,
)
