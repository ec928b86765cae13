"""SequenceSPL: every query against a list of all sequences."""

from __future__ import annotations

import copy
import itertools
import math
import pickle
from typing import Any

import pytest
import sequence_oracle as oracle
import torch
from selection import only
from sequence_oracle import RULES, TAGS, make
from torch import Tensor, nn

import semprola as sp

BATCHES = [(), (1,), (7,), (2, 3)]
LENGTHS = (5, 3, 4, 5, 1, 2, 3)


def case(rules: str, batch: tuple[int, ...], lengths: bool) -> tuple[Tensor, Tensor | None, list[tuple[int, ...]]]:
    """Logits, lengths that have sequences, and the indices of the rows."""
    logits = 2 * torch.randn(*batch, 5, 3, dtype=torch.float64)
    ends = torch.tensor(list(itertools.islice(itertools.cycle(LENGTHS), math.prod(batch)))).reshape(batch)
    return logits, (ends if lengths else None), list(itertools.product(*map(range, batch)))


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("transitions", [True, False])
@pytest.mark.parametrize("lengths", [True, False])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
class TestQueries:
    def test_every_query(self, rules: str, transitions: bool, lengths: bool, dtype: torch.dtype) -> None:
        layer = make(rules, transitions, dtype)
        batch = BATCHES[(list(RULES).index(rules) + transitions + 2 * lengths) % len(BATCHES)]
        logits, ends, rows = case(rules, batch, lengths)
        logits = logits.to(dtype)
        p = layer(logits, ends)
        exact = {"rtol": 1e-4, "atol": 1e-4} if dtype == torch.float32 else {}
        assert p.batch_shape == batch
        assert p.event_shape == (5,)
        assert p.mode_is_exact.all()
        best, best_log_probs = p.top_k(4)
        hamming, mean, entropy, log_z = p.decode("hamming"), p.mean, p.entropy(), p.log_partition
        for row in rows:
            length = 5 if ends is None else int(ends[row])
            table = oracle.listed(layer, logits[row][:length])
            y = table.padded(5)
            single = layer(logits[row], length)
            torch.testing.assert_close(single.log_prob(y).double(), table.log_probs, **exact)
            torch.testing.assert_close(log_z[row].double(), table.log_z, **exact)
            torch.testing.assert_close(mean[row].double(), table.marginals(5, 3), **exact)
            torch.testing.assert_close(entropy[row].double(), -(table.log_probs.exp() * table.log_probs).sum(), **exact)
            order = table.log_probs.argsort(descending=True)
            few = min(4, len(order))
            torch.testing.assert_close(best_log_probs[row][:few].double(), table.log_probs[order[:few]], **exact)
            assert torch.equal(best[row][:few], y[order[:few]])
            assert (best[row][few:] == y[order[0]]).all()
            assert (best_log_probs[row][few:] == -math.inf).all()
            assert torch.equal(p.mode[row], y[order[0]])
            right = torch.stack([(mean[row][:length].gather(1, each[:, None])).sum() for each in table.y])
            chosen = (table.y == hamming[row][:length]).all(1)
            torch.testing.assert_close(right[chosen][0], right.max())
            assert {tuple(each) for each in single.enumerate_support().tolist()} == {tuple(each) for each in y.tolist()}


@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("transitions", [True, False])
@pytest.mark.parametrize("part", only(range(5), lambda part: part == 0))
def test_evidence(rules: str, transitions: bool, part: int) -> None:
    layer = make(rules, transitions)
    logits = torch.randn(4, 3, dtype=torch.float64)
    table = oracle.listed(layer, logits)
    p = layer(logits)
    for evidence in itertools.islice(itertools.product((-1, 0, 1, 2), repeat=4), part, None, 5):
        wanted = torch.tensor(evidence)
        fits = ((wanted == -1) | (table.y == wanted)).all(1)
        expected = table.log_probs[fits].logsumexp(0) if fits.any() else torch.tensor(-math.inf, dtype=torch.float64)
        torch.testing.assert_close(p.log_marginal(wanted), expected)
        as_numbers = torch.where(wanted < 0, math.nan, wanted.double())
        torch.testing.assert_close(p.log_marginal(as_numbers), expected)
        if not fits.any():
            with pytest.raises(sp.UnsatisfiableError, match="probability zero"):
                p.condition(wanted)
            continue
        given = p.condition(wanted)
        assert given.support.check(given.sample((20,))).all()
        assert ((wanted == -1) | (given.mode == wanted)).all()
        inside = torch.where(fits, table.log_probs - expected, -math.inf)
        torch.testing.assert_close(given.log_prob(table.y), inside)
        log_probs = table.log_probs[fits] - expected
        torch.testing.assert_close(given.entropy(), -(log_probs.exp() * log_probs).sum())
        assert torch.equal(given.decode("hamming")[wanted >= 0], wanted[wanted >= 0])


def test_sets_of_tags_as_evidence() -> None:
    layer = make("bio")
    logits = torch.randn(2, 4, 3, dtype=torch.float64)
    allowed = torch.rand(5, 2, 4, 3) < 0.7
    allowed[..., 2] = True
    p = layer(logits, lengths=[4, 3])
    found = p.log_marginal(allowed)
    assert found.shape == (5, 2)
    for sample, row in itertools.product(range(5), range(2)):
        length = 4 - row
        table = oracle.listed(layer, logits[row][:length])
        fits = allowed[sample, row][torch.arange(length), table.y].all(1)
        torch.testing.assert_close(found[sample, row], table.log_probs[fits].logsumexp(0))
    by_name = p.log_marginal({0: "B", 2: ["I", 2]})
    mask = torch.ones(4, 3, dtype=torch.bool)
    mask[0], mask[2] = torch.tensor([True, False, False]), torch.tensor([False, True, True])
    torch.testing.assert_close(by_name, p.log_marginal(mask.expand(2, 4, 3)))
    torch.testing.assert_close(
        p.condition({0: "B"}).condition({2: ["I", "O"]}).log_partition, by_name + p.log_partition
    )


@pytest.mark.parametrize("rules", RULES)
def test_samples_have_the_right_frequencies(rules: str) -> None:
    layer = make(rules)
    logits = torch.randn(2, 4, 3, dtype=torch.float64)
    p = layer(logits, lengths=[4, 3])
    y = p.sample((4000,))
    assert y.shape == (4000, 2, 4)
    assert p.support.check(y).all()
    assert torch.isfinite(p.log_prob(y)).all()
    for row, length in enumerate((4, 3)):
        table = oracle.listed(layer, logits[row][:length])
        counted = (y[:, None, row] == table.padded(4)).all(-1).double().mean(0)
        spread = (table.log_probs.exp() / 4000).sqrt()
        assert ((counted - table.log_probs.exp()).abs() <= 5 * spread + 1e-3).all()
    first, second = (p.sample((3,), generator=torch.Generator().manual_seed(5)) for _ in range(2))
    assert torch.equal(first, second)


@pytest.mark.parametrize("rules", RULES)
def test_divergence(rules: str) -> None:
    a, b = make(rules), make(rules)
    logits = torch.randn(2, 4, 3, dtype=torch.float64)
    p, q = a(logits, [4, 3]), b(logits[0], 4)
    with pytest.raises(ValueError, match="same lengths"):
        torch.distributions.kl_divergence(p, q)
    q = b(logits.flip(0), [4, 3])
    for row, length in enumerate((4, 3)):
        one, two = oracle.listed(a, logits[row][:length]), oracle.listed(b, logits[1 - row][:length])
        expected = (one.log_probs.exp() * (one.log_probs - two.log_probs)).sum()
        torch.testing.assert_close(torch.distributions.kl_divergence(p, q)[row], expected)
    tag = p.mode[0, 0].item()
    excluding = q.condition({0: [other for other in range(3) if other != tag]}) if rules != "in turn" else None
    if excluding is not None:
        assert (torch.distributions.kl_divergence(p, excluding) == math.inf).all()
    with pytest.raises(ValueError, match="same tags, rules"):
        torch.distributions.kl_divergence(p, make("none" if rules != "none" else "bio")(logits, [4, 3]))


def test_padding_is_ignored() -> None:
    layer = make("bio")
    logits = torch.randn(3, 5, 3, dtype=torch.float64)
    lengths = torch.tensor([5, 2, 1])
    mask = torch.arange(5) < lengths[:, None]
    y = layer(logits, lengths).sample()
    assert (y[~mask] == -1).all()
    other = logits.masked_fill(~mask[..., None], math.nan).requires_grad_()
    p = layer(other, mask=mask)
    torch.testing.assert_close(p.log_prob(y.masked_fill(~mask, 77)), layer(logits, lengths).log_prob(y))
    p.log_prob(y).sum().backward()
    assert other.grad is not None
    assert torch.isfinite(other.grad).all()
    assert (other.grad[~mask] == 0).all()
    assert (p.mean[~mask] == 0).all()
    assert torch.equal(p.mask, mask)
    assert torch.equal(p.lengths, lengths)
    assert torch.equal(layer(logits, mask=mask.long()).mode, p.mode)


def test_one_layer_for_all_lengths() -> None:
    """Nothing is compiled for a length: long sequences take the layer as it is, and probabilities add up."""
    layer = make("bio")
    for length in (1, 2, 40, 700):
        p = layer(torch.randn(2, length, 3, dtype=torch.float64))
        torch.testing.assert_close(p.mean.sum(-1), torch.ones(2, length, dtype=torch.float64))
        assert torch.isfinite(p.log_prob(p.mode)).all()
        assert p.support.check(p.mode).all()


def test_rows_of_a_batch_do_not_meet() -> None:
    layer = make("a third")
    logits = torch.randn(6, 5, 3, dtype=torch.float64)
    lengths = torch.tensor([5, 4, 3, 2, 1, 5])
    together = layer(logits, lengths)
    for row in range(6):
        alone = layer(logits[row, : lengths[row]])
        torch.testing.assert_close(together.log_partition[row], alone.log_partition)
        assert torch.equal(together.mode[row, : lengths[row]], alone.mode)
    assert layer(logits[:0]).mode.shape == (0, 5)
    assert layer(logits[:0], lengths=lengths[:0]).log_partition.shape == (0,)


def test_expand_and_samples_before_the_batch() -> None:
    layer = make("bio")
    p = layer(torch.randn(3, 4, 3, dtype=torch.float64), [4, 2, 3])
    wide = p.expand((2, 3))
    assert wide.batch_shape == (2, 3)
    torch.testing.assert_close(wide.log_partition, p.log_partition.expand(2, 3))
    assert torch.equal(wide.mode[1], p.mode)
    y = p.sample((5, 2))
    assert p.log_prob(y).shape == (5, 2, 3)
    torch.testing.assert_close(p.log_prob(y)[3, 1], p.log_prob(y[3, 1]))
    torch.testing.assert_close(p.log_marginal(y), p.log_prob(y))


def test_names() -> None:
    layer = make("bio")
    p = layer(torch.randn(2, 4, 3, dtype=torch.float64), [4, 2])
    named = p.to_dict()["tags"]
    assert [len(row) for row in named] == [4, 2]
    y, lengths = layer.indices(named)
    assert torch.equal(y, p.mode)
    assert lengths.tolist() == [4, 2]
    marginals = p.to_dict("marginals")
    assert set(marginals) == set(TAGS)
    assert [len(row) for row in marginals["B"]] == [4, 2]
    best = p.to_dict("top_k", k=2)
    assert best["tags"][1][0] == named[1]
    assert len(best["log_prob"][0]) == 2
    with pytest.raises(sp.LabelError, match="row 1 has 'X'"):
        layer.indices([["B"], ["X"]])


def test_utilities() -> None:
    layer = make("bio")
    gains = torch.randn(2, 4, 3, dtype=torch.float64)
    p = layer(torch.randn(2, 4, 3, dtype=torch.float64), [4, 3])
    chosen = p.decode(gains)
    for row, length in enumerate((4, 3)):
        table = oracle.listed(layer, gains[row][:length])
        totals = gains[row][:length].gather(1, table.y.T).sum(0)
        assert torch.equal(chosen[row][:length], table.y[totals.argmax()])


def test_sequences_that_break_the_rules() -> None:
    layer = make("bio")
    p = layer(torch.randn(3, 4, 3, dtype=torch.float64), [4, 4, 2])
    y = torch.tensor([[1, 0, 0, 0], [0, 1, 1, 2], [2, 1, 1, 1]])
    assert p.log_prob(y)[[0, 2]].tolist() == [-math.inf, -math.inf]
    assert p.log_prob(y, on_violation="ignore")[[0, 2]].tolist() == [0, 0]
    assert p.support.check(y).tolist() == [False, True, False]
    with pytest.raises(
        sp.errors.ViolationError, match="row 0: 'I' at position 0, at the start; row 2: 'I' at position 1, aft"
    ):
        p.log_prob(y, on_violation="raise")
    end = make("a third")(torch.randn(3, 3, dtype=torch.float64))
    with pytest.raises(sp.errors.ViolationError, match="it ends with 'B' at position 2"):
        end.log_prob(torch.tensor([0, 0, 0]), on_violation="raise")


def test_an_answer_does_not_change() -> None:
    layer = make("bio")
    logits = torch.randn(3, 4, 3, dtype=torch.float64)
    p, other = layer(logits, [4, 3, 2]), layer(logits.clone(), [4, 3, 2])
    y = p.sample()
    before = p.log_prob(y).detach().clone(), other.mean.detach().clone()
    mode = p.mode
    mode.zero_()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.add_(torch.randn_like(parameter))
        logits.zero_()
    p.log_prob(y).sum().backward()
    fresh = layer(torch.randn(3, 4, 3, dtype=torch.float64), [4, 3, 2])
    layer.float()
    torch.testing.assert_close(p.log_prob(y), before[0])
    torch.testing.assert_close(p.mean, before[1])
    assert p.support.check(p.mode).all()
    assert fresh.mean.dtype == torch.float64


def test_it_is_a_module() -> None:
    layer = make("both neighbours")
    logits = torch.randn(3, 4, 3, dtype=torch.float64)
    expected = layer(logits).mean
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        torch.testing.assert_close(again(logits).mean, expected)
    fresh = sp.SequenceSPL(TAGS, RULES["both neighbours"], dtype=torch.float64)
    fresh.load_state_dict(layer.state_dict())
    torch.testing.assert_close(fresh(logits).mean, expected)
    for wrong in (sp.SequenceSPL(TAGS), sp.SequenceSPL(("I", "B", "O"), sp.parse(oracle.BIO))):
        with pytest.raises(sp.FormatError, match="other tags or rules"):
            wrong.load_state_dict(layer.state_dict())
    layer.reset_parameters()
    assert not any(parameter.any() for parameter in layer.parameters())
    assert list(sp.SequenceSPL(3, transitions=False).parameters()) == []
    assert "3 tags, 3 states" in repr(sp.SequenceSPL(TAGS, RULES["a third"]))


def test_parameters_of_another_type_are_upcast() -> None:
    layer = make("bio", dtype=torch.float32)
    logits = torch.randn(2, 4, 3)
    assert layer(logits.double()).mean.dtype == torch.float64
    for half in (torch.bfloat16, torch.float16):
        assert layer(logits.to(half)).mean.dtype == torch.float32
    assert layer.double()(logits).mean.dtype == torch.float64


def test_any_network_trains() -> None:
    """A tagger learns that I continues B, from tags that the rules allow; everything it says obeys."""
    torch.manual_seed(0)
    layer = sp.SequenceSPL(TAGS, sp.parse(oracle.BIO))
    network = nn.LSTM(4, 8, batch_first=True, bidirectional=True)
    head = nn.Linear(16, 3)
    x = torch.randn(32, 6, 4)
    lengths = torch.randint(1, 7, (32,))
    with torch.no_grad():
        y = sp.SequenceSPL(TAGS, sp.parse(oracle.BIO))(3 * x[..., :3], lengths).mode
    optimizer = torch.optim.Adam([*network.parameters(), *head.parameters(), *layer.parameters()], 0.02)
    losses: list[Any] = []
    for _ in range(60):
        loss = -layer(head(network(x)[0]), lengths).log_prob(y).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]
    p = layer(head(network(x)[0]), lengths)
    assert p.support.check(p.mode).all()


@pytest.mark.parametrize(
    ("rules", "obeys"),
    [
        ([sp.at_most(2, ["B"])], lambda y: y.count(0) <= 2),
        ([sp.exactly(1, ["B"])], lambda y: y.count(0) == 1),
        ([sp.at_least(1, ["B"]), sp.parse('I -> "prev=B"')], lambda y: 0 in y and obeys_prev(y)),
        (["!(.* O .* B .*)"], lambda y: 0 not in y[y.index(2) :] if 2 in y else True),
    ],
)
def test_counts_and_patterns_by_enumeration(rules: Any, obeys: Any) -> None:
    torch.manual_seed(0)
    p = sp.SequenceSPL(TAGS, rules)(torch.randn(5, 3, dtype=torch.float64))
    y = torch.tensor(list(itertools.product(range(3), repeat=5)))
    expected = torch.tensor([obeys(tuple(row)) for row in y.tolist()])
    assert 0 < expected.sum() < len(y)
    assert torch.equal(p.log_prob(y) > -torch.inf, expected)
    assert p.log_prob(y).exp().sum().item() == pytest.approx(1)


def obeys_prev(y: tuple[int, ...]) -> bool:
    return all(tag != 1 or before == 0 for before, tag in zip((-1, *y), y, strict=False))


OTHERS: dict[str, Any] = {
    "count": sp.at_most(1, ["O"]),
    "exactly": sp.exactly(1, ["I"]),
    "pattern": "!(.* B .* O .*)",
    "neighbours": sp.parse('I -> "prev=B"'),
    "list": [sp.at_least(1, ["B"]), ".* O"],
    "free": sp.logic.TRUE,
    "impossible": sp.logic.FALSE,
}


@pytest.mark.parametrize("transitions", [True, False])
def test_log_prob_of_rules_that_no_first_tag_obeys(transitions: bool) -> None:
    p = sp.SequenceSPL(TAGS, "I*", transitions)(torch.zeros(2, 3, 3))
    assert p.log_prob_of("B .*").tolist() == [-math.inf, -math.inf]


@pytest.mark.parametrize("transitions", [True, False])
@pytest.mark.parametrize("rules", RULES)
@pytest.mark.parametrize("other", OTHERS)
def test_log_prob_of_rules(rules: str, other: str, transitions: bool) -> None:
    torch.manual_seed(0)
    layer = make(rules, transitions)
    logits = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    lengths = torch.tensor([4, 3])
    p = layer(logits, lengths)
    found = p.log_prob_of(OTHERS[other])
    if other == "impossible":
        assert found.tolist() == [-math.inf, -math.inf]
        return
    machine = sp.SequenceSPL(TAGS, OTHERS[other]).machine
    for row, length in enumerate(lengths.tolist()):
        all_of_them = oracle.listed(layer, logits[row, :length])
        obey = torch.tensor([machine.accepts(y) for y in all_of_them.y.tolist()])
        torch.testing.assert_close(found[row].exp(), all_of_them.log_probs.exp()[obey].sum())
    (gradient,) = torch.autograd.grad(found.exp().sum(), logits)
    assert torch.isfinite(gradient).all()
    given = p.condition({0: ["B", "O"]}) if rules != "none" else p.condition({1: "O"})
    y = given.sample((2000,))
    share = torch.tensor([[machine.accepts([t for t in row if t >= 0]) for row in rows] for rows in y.tolist()])
    torch.testing.assert_close(given.log_prob_of(OTHERS[other]).exp(), share.double().mean(0), atol=0.06, rtol=0)


def test_violations_of_sequences() -> None:
    layer = sp.SequenceSPL(TAGS, [sp.parse(oracle.BIO), sp.at_most(2, ["B"]), ".* O"])
    y, lengths = layer.indices([["B", "I", "O"], ["O", "I", "O"], ["B", "B", "B", "O"], ["B"]])
    expected = [
        "row 1: 'I' at position 1, after 'O'",
        "row 2: 'B' at position 2, after 'B'",
        "row 3: it ends with 'B' at position 0",
    ]
    assert [str(each) for each in sp.violations(layer, y)] == expected
    p = sp.SequenceSPL(TAGS, [sp.parse(oracle.BIO), sp.at_most(2, ["B"])])(torch.zeros(4, 4, 3), lengths)
    assert [str(each) for each in sp.violations(p, y)] == expected[:2]
    assert [each.row for each in p.violations(y.expand(2, 4, 4))] == [(0, 1), (0, 2), (1, 1), (1, 2)]
    assert [each.rule for each in p.condition({0: "B"}).violations(y)][:1] == [
        "'O' at position 0, against the evidence"
    ]
    assert sp.violations(layer, torch.tensor([2, 1, 2]))[0].row == ()
    for wrong in (torch.tensor([[3]]), torch.tensor([[0, -1, 0]]), torch.tensor([[0.5]])):
        with pytest.raises(ValueError, match="tag"):
            layer.violations(wrong)
    with pytest.raises(TypeError, match="tags only"):
        sp.violations(layer, y, labels=["a"])
