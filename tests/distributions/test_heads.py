"""Softmax heads, derived variables, values of whole variables in and out, and conditioning on formulas."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.errors import IntractableError, LabelError, UnsatisfiableError

C = sp.constraints
A, B, TOTAL = sp.Integer("a", 0, 3), sp.Integer("b", 1, 3), sp.Integer("sum", 1, 6)
COLOUR = C.Categorical("colour", ["red", "dark green"])
ADDITION = A + B == TOTAL
MIXED = ADDITION & ((COLOUR == "red") >> (A < B)) & (sp.Bool("x") >> (TOTAL >= 4))


def _logits(shape, dtype=torch.float64, *, colour=False):
    torch.manual_seed(0)
    made = {"a": torch.randn(*shape, 4, dtype=dtype), "b": 3 * torch.randn(*shape, 3, dtype=dtype)}
    if colour:
        made |= {"colour": torch.randn(*shape, 2, dtype=dtype), "x": torch.randn(shape, dtype=dtype)}
    return {name: part.requires_grad_() for name, part in made.items()}


def _joint(logits):
    """Every assignment of values, and its probability by softmaxes and the rules [*batch]."""
    worlds = []
    for a, b, c, x in itertools.product(A.values, B.values, COLOUR.values, [0, 1] if "x" in logits else [0]):
        if "x" in logits and ((c == "red" and a >= b) or (x and a + b < 4)):
            continue
        if "x" not in logits and c != "red":
            continue
        p = logits["a"].softmax(-1)[..., a] * logits["b"].softmax(-1)[..., b - 1]
        if "x" in logits:
            p = p * logits["colour"].softmax(-1)[..., COLOUR.values.index(c)] * (logits["x"] * (2 * x - 1)).sigmoid()
        worlds.append(({"a": a, "b": b, "sum": a + b, "colour": c, "x": x}, p))
    return worlds


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
@pytest.mark.parametrize("colour", [False, True])
def test_every_query_against_enumeration(shape, dtype, colour):
    logits = _logits(shape, dtype, colour=colour)
    p = sp.constrain(logits, MIXED if colour else ADDITION)
    joint = _joint(logits)
    names = ["a", "b", "sum", "colour", "x"] if colour else ["a", "b", "sum"]
    z = sum(q for _, q in joint)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype is torch.float32 else {"rtol": 1e-9, "atol": 1e-12}
    torch.testing.assert_close(p.log_partition.exp(), z, **close)
    assert p.evaluator.components.is_normalized == (not colour)
    for world, q in joint:
        torch.testing.assert_close(p.log_prob({n: world[n] for n in names}).exp(), q / z, **close)
    for total in TOTAL.values:
        expected = sum((q for w, q in joint if w["sum"] == total), torch.zeros(shape, dtype=dtype)) / z
        for found in (p.log_prob_of({"sum": total}), p.log_marginal({"sum": total}), p.log_prob_of(total == TOTAL)):
            torch.testing.assert_close(found.exp(), expected, **close)
        torch.testing.assert_close(p.mean[..., p.labels.index(f"sum={total}")], expected, **close)
    marginals = p.to_dict("marginals")
    torch.testing.assert_close(torch.tensor(marginals["sum"][6], dtype=dtype), expected, **close)
    best = torch.stack([q for _, q in joint]).argmax(0)
    for name in names:
        assert p.to_dict()[name] == np.asarray(np.array([w[name] for w, _ in joint], object)[best.numpy()]).tolist()
    given = p.condition({"sum": 4})
    rest = sum(q for w, q in joint if w["sum"] == 4)
    expected = sum(q for w, q in joint if w["sum"] == 4 and w["a"] == 2) / rest
    torch.testing.assert_close(given.mean[..., p.labels.index("a=2")], expected, **close)
    narrowed = p.condition((A + 1 == B) | (TOTAL == 5))
    holds = [(w, q) for w, q in joint if w["a"] + 1 == w["b"] or w["sum"] == 5]
    expected = sum(q for w, q in holds if w["a"] == 2) / sum(q for _, q in holds)
    torch.testing.assert_close(narrowed.mean[..., p.labels.index("a=2")], expected, **close)
    assert set(np.ravel(narrowed.sample((20,))[..., p.labels.index("a=3")]).tolist()) <= {0.0, 1.0}
    assert A.decode(p.to_dict()) == p.to_dict()["a"] == A.decode(p.mode, p.labels)


def test_a_tensor_of_sums_and_its_gradient():
    logits = _logits((5,))
    sums = torch.tensor([1, 6, 3, 4, 2])

    def log_prob(a, b):
        return sp.constrain({"a": a, "b": b}, ADDITION).log_prob_of({"sum": sums})

    joint = _joint(logits)
    expected = torch.stack([sum(q[i] for w, q in joint if w["sum"] == s) for i, s in enumerate(sums.tolist())]).log()
    torch.testing.assert_close(log_prob(*logits.values()), expected)
    assert torch.autograd.gradcheck(log_prob, tuple(logits.values()))
    p = sp.constrain(logits, ADDITION)
    torch.testing.assert_close(p.log_prob_of({"sum": sums.tolist()}), expected)
    torch.testing.assert_close(p.log_prob_of({"sum": sums.double()}), expected)
    torch.testing.assert_close(p.log_prob_of({"sum": sums, "a": [float("nan")] * 5}), expected)
    every = p.log_prob_of({"sum": torch.tensor(TOTAL.values)[:, None].expand(-1, 5)})
    torch.testing.assert_close(every.exp().sum(0), torch.ones(5, dtype=torch.float64))


def test_empty_batches():
    p = sp.ConstraintLayer(ADDITION)({"a": torch.randn(0, 4), "b": torch.randn(0, 3)})
    assert p.mode.shape == p.mean.shape == (0, 13)
    assert p.log_prob_of({"sum": torch.zeros(0, dtype=torch.long)}).shape == p.entropy().shape == (0,)
    assert p.to_dict() == {"a": [], "b": [], "sum": []}


def test_impossible_sums_have_no_gradient():
    a = torch.zeros(2, 4, requires_grad=True)
    log_prob = sp.constrain({"a": a, "b": torch.zeros(2, 3)}, ADDITION & (A + B != 4)).log_prob_of({"sum": [4, 5]})
    assert log_prob[0] == float("-inf")
    log_prob[1].backward()
    assert bool(a.grad.isfinite().all())


def test_several_digits():
    torch.manual_seed(0)
    a, b = ([sp.Integer(f"{x}{i}", 0, 9) for i in range(2)] for x in "ab")
    total = [sp.Integer("s0", 0, 1), sp.Integer("s1", 0, 9), sp.Integer("s2", 0, 9)]
    layer = sp.ConstraintLayer(C.number(a) + C.number(b) == C.number(total))
    logits = torch.randn(3, 4, 10)
    p = layer({v.name: logits[:, i] for i, v in enumerate([*a, *b])})
    assert p.evaluator.components.is_normalized
    table = logits.softmax(-1)
    for row, target in enumerate([0, 57, 131]):
        expected = 0.0
        for x, y in ((x, target - x) for x in range(100) if 0 <= target - x < 100):
            digits = [x // 10, x % 10, y // 10, y % 10]
            expected += float(np.prod([table[row, i, d].item() for i, d in enumerate(digits)]))
        seen = {"s0": target // 100, "s1": target // 10 % 10, "s2": target % 10}
        assert p.log_prob_of(seen)[row].exp().item() == pytest.approx(expected, rel=1e-4)


def test_other_layers_take_whole_values():
    torch.manual_seed(0)
    layer = sp.SPL(4, MIXED, replicas=2)
    p = layer(torch.randn(3, 4))
    assert sp.constraints.Integer is sp.Integer
    row = {"a": [0, 1, 1], "b": [1, 2, 3], "sum": [1, 3, 4], "colour": ["red", "red", "dark green"], "x": [0, 0, 1]}
    y = torch.tensor([[int(label.split("=")[1] == str(row[label.split("=")[0]][i])) if "=" in label else row[label][i]
                       for label in p.labels] for i in range(3)], dtype=torch.float32)  # fmt: skip
    torch.testing.assert_close(p.log_prob(row), p.log_prob(y))
    assert p.log_prob(row).isfinite().all()
    states, log_probs = p.enumerate_support()[:, 0], p.log_prob(p.enumerate_support())
    holds = states[:, p.labels.index("a=2")].bool() | states[:, p.labels.index("sum=3")].bool()
    expected = log_probs.masked_fill(~holds[:, None], float("-inf")).logsumexp(0)
    conditioned = p.condition((A == 2) | (TOTAL == 3))
    torch.testing.assert_close(
        conditioned.log_prob(states[:, None].expand(-1, 3, -1))[holds], (log_probs - expected)[holds]
    )
    assert (conditioned.log_prob(states[:, None].expand(-1, 3, -1))[~holds] == float("-inf")).all()
    torch.testing.assert_close(p.condition("x").mean, p.condition({"x": 1}).mean)
    with pytest.raises(UnsatisfiableError, match="probability zero"):
        p.condition({"x": 0}).condition("x")
    wide = sp.SPL(4, sp.at_least(1, [f"x{i}" for i in range(20)]))(torch.randn(4))
    with pytest.raises(IntractableError, match="more than 4096 cases"):
        wide.condition(sp.exactly(10, [f"x{i}" for i in range(20)]))


@pytest.mark.parametrize("make", [sp.SPL, sp.ProductSPL], ids=lambda make: make.__name__)
@pytest.mark.parametrize("options", [{}, {"replicas": 2}, {"units": 2}])
def test_conditioning_layers_on_formulas(make, options):
    torch.manual_seed(0)
    labels = [f"x{i}" for i in range(5)]
    if make is sp.ProductSPL:
        options = {"mixtures": 2} if options else {}
    layer = make(4, sp.at_least(1, labels), **options).double()
    p = layer(torch.randn(3, 4, dtype=torch.float64))
    formula = sp.parse("x0 ^ (x1 & x2) | x3 & x4")
    states = p.enumerate_support()
    holds = torch.from_numpy(formula.evaluate(states[:, 0].numpy(), labels=labels))
    joint = p.log_prob(states).masked_fill(~holds[:, None], float("-inf"))
    expected = joint - joint.logsumexp(0)
    q = p.condition(formula)
    torch.testing.assert_close(q.log_prob(states).exp(), expected.exp())
    torch.testing.assert_close(q.mean, (expected.exp()[..., None] * states).sum(0))
    assert q.enumerate_support().shape[0] == int(holds.sum())
    assert bool((q.support.check(states) == holds[:, None]).all())
    torch.testing.assert_close(q.log_prob(q.mode), expected.amax(0))
    assert bool(q.mode_is_exact.all())
    if not options:
        torch.testing.assert_close(q.entropy(), torch.special.entr(expected.exp()).sum(0))
    log_probs = q.top_k(3)[1]
    torch.testing.assert_close(log_probs, expected.sort(0, descending=True).values[:3].T)
    drawn = q.sample((400,))
    assert formula.evaluate(drawn.numpy(), labels=labels).all()
    torch.testing.assert_close(drawn.mean(0), q.mean, atol=0.15, rtol=0)
    twice = q.condition({"x0": 1})
    rest = expected.masked_fill(states[..., 0] != 1, float("-inf"))
    torch.testing.assert_close(twice.log_prob(states).exp(), (rest - rest.logsumexp(0)).exp())


def test_frames_have_one_column_per_variable():
    pytest.importorskip("pandas")
    p = sp.constrain(_logits((5,), colour=True), MIXED)
    frame = p.to_frame()
    assert list(frame.columns) == list(dict.fromkeys(label.partition("=")[0] for label in p.labels))
    assert frame["sum"].tolist() == p.to_dict()["sum"]
    torch.testing.assert_close(p.log_prob(frame), p.log_prob(p.mode))
    assert list(p.to_frame("top_k", k=2).columns[:-1]) == list(frame.columns)
    assert list(p.to_frame("marginals").columns) == list(p.labels)


def _sums(x):
    return sp.constrain({"a": x, "b": x[:, :3]}, ADDITION)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda x: sp.constrain({"a": x[..., :3], "b": x[..., :3]}, ADDITION), r"'a' must be \[\*batch, 4\]"),
        (lambda x: sp.constrain({"a": x, "c": x}, ADDITION), "logits for 'c', which is not a variable of the rules"),
        (lambda x: sp.constrain({"a": x}, ADDITION), "'(b|sum)' has no logits, and the rules leave it open"),
        (lambda x: sp.constrain({"a": x, "b": x[:2, :3]}, ADDITION), "the logits must have the same batch"),
        (lambda x: _sums(x).condition({"sum": 9}), "'sum' has no value 9, only 1 to 6"),
        (lambda x: _sums(x).log_prob_of({"sum": [1, 2, 0, 1, 1]}), "row 2: variable 'sum'"),
        (lambda x: _sums(x).condition({"sum": 2, "sum=3": 0}), "are both given"),
    ],
)  # fmt: skip
def test_errors(make, message):
    with pytest.raises(LabelError, match=message):
        make(torch.zeros(5, 4))


def test_more_errors():
    with pytest.raises(ValueError, match="the logits of 'b' must be finite: found NaN or infinite values in row 1"):
        sp.constrain({"a": torch.zeros(2, 4), "b": torch.tensor([[0.0] * 3, [float("nan")] * 3])}, ADDITION)
    p = sp.constrain({"a": torch.zeros(2, 4), "b": torch.zeros(2, 3)}, ADDITION)
    with pytest.raises(UnsatisfiableError, match="probability zero"):
        p.condition((A == 0) & (TOTAL == 6))
    with pytest.raises(TypeError, match="logits of 'a' must be a tensor"):
        sp.constrain({"a": [0.0] * 4, "b": torch.zeros(3)}, ADDITION)


def test_derived_variables_in_any_order():
    # the sum comes first in the rules: that it is determined is proved by a search
    rules = TOTAL - A == B
    p = sp.constrain({"a": torch.zeros(4), "b": torch.zeros(3)}, rules & (A != 3))
    assert p.log_prob_of({"sum": 1}).exp().item() == pytest.approx(1 / 9)
