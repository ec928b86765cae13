"""CCN: its authors' published rules and module, cases by hand, enumeration, HMCNN's loss, rules it cannot take."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.baselines.ccn import CCNScores, normal_rules, strata
from semprola.errors import IntractableError, LabelError, PropertyError

# several rules for one head, negation over strata, and labels that imply each other
RULES = "(a & b -> c) & (d -> c) & (c & !e -> f) & (f -> g) & (g -> f) & (!a & !b -> h) & i"


# Rules that the authors of CCN published with their code (github.com/EGiunchiglia/CCN, data/*/*_constraints.txt): the
# head, then the body, where a minus marks a negated label. "emotions" is the example of their README.
EMOTIONS = "5:-2,-4,-3,-1,-0"
IMAGE = "0:-1,-4,-3,-2"
SCENE = "0:-1,-2,-3,-5,-4"
YEAST = (
    "11:12 2:13 3:13 1:13,0 1:6,13 9:10,8 12:13,11 12:11,4 12:8,11 11:13,5 11:6,13 12:13,5 12:13,6 4:13,5 7:6,13 "
    "7:8,13 2:9,3 4:3,5 5:6,4 7:8,6 2:1,-0 10:9,-8 6:-8,7"
)
# what follows from them; the authors add these rules so that one pass over all of them is enough
YEAST_FOLLOWS = (
    "1:13,-8,7 12:3,11,5 11:13,-8,7 12:13,-8,7 2:3,10,8 5:-8,7,4 6:13,8,-8 1:8,13,-8 11:8,13,-8 12:8,13,-8 5:13,8,-8,4"
)
PUBLISHED = {"emotions": (6, EMOTIONS), "image": (5, IMAGE), "scene": (6, SCENE), "yeast": (14, YEAST)}


def published(text: str) -> list[tuple[int, list[int], list[int]]]:
    """Head, labels that must be on and labels that must be off, of every rule."""
    rules = []
    for word in text.split():
        head, body = word.split(":")
        parts = body.split(",")
        rules.append((int(head), [int(p) for p in parts if p[0] != "-"], [int(p[1:]) for p in parts if p[0] == "-"]))
    return rules


def as_formulas(text: str) -> list[str]:
    return [
        " & ".join([*(f"l{n}" for n in on), *(f"!l{n}" for n in off)]) + f" -> l{head}"
        for head, on, off in published(text)
    ]


def one_pass(text: str, h: np.ndarray) -> np.ndarray:
    """The published module for one stratum: the largest of a label's score and the smallest scores of its bodies."""
    out = h.copy()
    for head, on, off in published(text):
        out[:, head] = np.maximum(out[:, head], np.concatenate([h[:, on], 1 - h[:, off]], 1).min(1))
    return out


def one_pass_loss(text: str, h: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The published loss for one stratum, summed over labels: cross-entropy of scores that depend on y.

    For a label that is on, literals that are false in y count as 0; for one that is off, true literals count as 1.
    """
    plus, minus = h.copy(), h.copy()
    for head, on, off in published(text):
        right = np.concatenate([h[:, on] * y[:, on], (1 - h[:, off]) * (1 - y[:, off])], 1).min(1)
        wrong = np.concatenate([np.where(y[:, on] == 1, 1, h[:, on]), np.where(y[:, off] == 0, 1, 1 - h[:, off])], 1)
        plus[:, head] = np.maximum(plus[:, head], right)
        minus[:, head] = np.maximum(minus[:, head], wrong.min(1))
    return -np.log(np.where(y == 1, plus, 1 - minus)).sum(1)


def scores(layer: sp.baselines.CCN, logits: torch.Tensor) -> CCNScores:
    return CCNScores(logits, list(layer.strata))  # type: ignore[arg-type]


def by_definition(rules: str, logits: dict[str, float]) -> dict[str, float]:
    """Raise heads to the smallest score of a body until nothing changes, strata from below."""
    value = dict(logits)
    parsed = normal_rules(rules)
    for group in strata(parsed, list(logits)):
        for _ in range(len(logits)):
            for rule in group:
                body = [value[n] for n in rule.positive] + [-value[n] for n in rule.negative]
                value[rule.head] = max(value[rule.head], min(body, default=float("inf")))
    return value


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_rules_and_module(name: str) -> None:
    """Against the published module on the published rules, written anew from its description.

    The yeast rules imply each other in circles. We are given the rules alone and repeat them until nothing changes;
    the published module passes once over the rules and all that follow from them. The scores must be the same.
    """
    labels, rules = PUBLISHED[name]
    layer = sp.baselines.CCN(2, as_formulas(rules), labels=[f"l{n}" for n in range(labels)])
    h = np.random.default_rng(0).uniform(0.02, 0.98, size=(500, labels))
    closed = f"{rules} {YEAST_FOLLOWS}" if name == "yeast" else rules
    p = scores(layer, torch.logit(torch.from_numpy(h)))
    assert np.allclose(p.mean.numpy(), one_pass(closed, h))
    assert bool(sp.And(*map(sp.parse, as_formulas(rules))).evaluate(p.mode, layer.labels).all())


@pytest.mark.parametrize("name", ["emotions", "image", "scene"])
def test_published_loss(name: str) -> None:
    labels, rules = PUBLISHED[name]
    layer = sp.baselines.CCN(2, as_formulas(rules), labels=[f"l{n}" for n in range(labels)])
    every = np.array(list(itertools.product([0.0, 1.0], repeat=labels)))
    y = every[sp.And(*map(sp.parse, as_formulas(rules))).evaluate(every, list(layer.labels))]
    h = np.random.default_rng(1).uniform(0.02, 0.98, size=y.shape)
    loss = scores(layer, torch.logit(torch.from_numpy(h))).loss(torch.from_numpy(y))
    assert np.allclose(loss.numpy(), one_pass_loss(rules, h, y))


def test_emotions_by_hand() -> None:
    """The README's example: if a piece of music has none of the other five moods, it has the sixth."""
    layer = sp.baselines.CCN(2, as_formulas(EMOTIONS), labels=[f"l{n}" for n in range(6)])
    h = torch.tensor([[0.1, 0.2, 0.3, 0.1, 0.4, 0.2], [0.9, 0.2, 0.3, 0.1, 0.4, 0.2]])
    p = scores(layer, torch.logit(h))
    assert torch.allclose(p.mean[:, 5], torch.tensor([0.6, 0.2]))  # one minus the largest of the others; its own score
    assert p.mode.tolist() == [[0, 0, 0, 0, 0, 1], [1, 0, 0, 0, 0, 0]]


def test_two_rules_for_one_label() -> None:
    """By hand: the head has the largest of its own score and its bodies' smallest ones."""
    layer = sp.baselines.CCN(2, "(a & b -> c) & (d & !e -> c)", labels=list("abcde"))
    h = torch.tensor([0.9, 0.7, 0.2, 0.8, 0.4])
    mean = scores(layer, torch.logit(h)).mean
    assert mean[2].item() == pytest.approx(max(0.2, min(0.9, 0.7), min(0.8, 1 - 0.4)))
    assert torch.allclose(mean[[0, 1, 3, 4]], h[[0, 1, 3, 4]])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [(), (1,), (7,), (2, 3)])
def test_scores_are_those_of_the_definition(shape: tuple[int, ...], dtype: torch.dtype) -> None:
    layer = sp.baselines.CCN(4, RULES)
    torch.manual_seed(0)
    logits = torch.randn(*shape, len(layer.labels), dtype=dtype)
    mean = scores(layer, logits).mean.reshape(-1, len(layer.labels))
    for row, found in zip(logits.reshape(-1, len(layer.labels)).tolist(), mean, strict=True):
        value = by_definition(RULES, dict(zip(layer.labels, row, strict=True)))
        expected = torch.sigmoid(torch.tensor([value[name] for name in layer.labels], dtype=dtype))
        assert torch.allclose(found, expected)


def test_every_prediction_obeys_and_obeying_ones_stay() -> None:
    layer = sp.baselines.CCN(4, RULES)
    rule = sp.parse(RULES)
    rows = torch.tensor(list(itertools.product([-1.0, 0.0, 1.0], repeat=5)))
    rows = torch.cat([rows, rows.flip(1)[:, : len(layer.labels) - 5]], 1)
    mode = scores(layer, rows).mode
    assert bool(rule.evaluate(mode, layer.labels).all())
    every = torch.tensor(list(itertools.product([0.0, 1.0], repeat=len(layer.labels))))
    obeying = every[rule.evaluate(every, layer.labels)]
    assert torch.equal(scores(layer, 2 * obeying - 1).mode, obeying)


def test_on_a_hierarchy_it_is_hmcnn() -> None:
    pairs = [("b", "a"), ("c", "a"), ("d", "b"), ("d", "c"), ("e", "d")]
    hierarchy = sp.constraints.hierarchy(pairs)
    layer, other = sp.baselines.CCN(4, hierarchy), sp.baselines.HMCNN(4, hierarchy)
    order = [layer.labels.index(name) for name in other.labels]
    torch.manual_seed(0)
    logits = torch.randn(20, 5, dtype=torch.float64)
    ours = scores(layer, logits)
    theirs = sp.baselines.HMCNNScores(logits[:, order], list(other.strata))  # type: ignore[arg-type]
    assert torch.allclose(ours.mean[:, order], theirs.mean)
    every = torch.tensor(list(itertools.product([0.0, 1.0], repeat=5)))
    y = every[hierarchy.evaluate(every, layer.labels)][torch.arange(20) % 7].double()
    assert torch.allclose(ours.loss(y), theirs.loss(y[:, order]))


def test_loss_by_hand() -> None:
    """c follows from a and not b: an off c blames the literal of the body that is false in y, and only that one."""
    layer = sp.baselines.CCN(2, "a & !b -> c")
    h = torch.tensor([0.9, 0.3, 0.2], dtype=torch.float64)
    p = scores(layer, torch.logit(h))
    assert float(p.loss(torch.tensor([1.0, 0.0, 1.0]))) == pytest.approx(
        -torch.log(torch.tensor(0.9 * 0.7 * max(0.2, min(0.9, 0.7)))).item()
    )
    # y: a on, b on, c off; the body's false literal is "not b"
    assert float(p.loss(torch.tensor([1.0, 1.0, 0.0]))) == pytest.approx(
        -torch.log(torch.tensor(0.9 * 0.3 * (1 - max(0.2, 1 - 0.3)))).item()
    )


def test_gradients_are_right_and_finite() -> None:
    layer = sp.baselines.CCN(4, RULES)
    torch.manual_seed(1)
    logits = torch.randn(6, len(layer.labels), dtype=torch.float64, requires_grad=True)
    y = scores(layer, torch.randn(6, len(layer.labels), dtype=torch.float64)).mode
    assert torch.autograd.gradcheck(lambda x: (scores(layer, x).mean, scores(layer, x).loss(y)), logits)


def test_learns() -> None:
    torch.manual_seed(0)
    layer = sp.baselines.CCN(3, "(a & b -> c) & (a & !b -> d)", gate=[16])
    x = torch.randn(300, 3)
    a, b = x[:, 0] > 0, x[:, 1] > 0
    y = torch.stack([a, b, a & b | (x[:, 2] > 1), a & ~b], 1).float()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.02)
    for _ in range(150):
        optimizer.zero_grad()
        layer(x).loss(y).mean().backward()
        optimizer.step()
    p = layer(x)
    assert (p.mode == y).all(1).float().mean() > 0.85
    assert bool(sp.parse("(a & b -> c) & (a & !b -> d)").evaluate(p.mode, layer.labels).all())


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ("a | b", r"rules of the form 'a & !b -> c', but 'a \| b' is not one"),
        ("!a | !b", "is not one: rewrite it, or use sp.SPL"),
        ("a -> b | c", "is not one: rewrite it"),
        ("a -> !b", "is not one: rewrite it"),
        ("(a -> b) & (a ^ c)", r"but 'a \^ c' is not one"),
        ("(!a -> b) & (b -> a)", "not stratified: in '~a -> b'"),
    ],
)
def test_rules_outside_the_fragment_are_named(rules: str, message: str) -> None:
    with pytest.raises(PropertyError, match=message):
        sp.baselines.CCN(4, rules)


def test_bad_input() -> None:
    with pytest.raises(PropertyError, match="exactly"):
        sp.baselines.CCN(4, sp.exactly(1, ["a", "b"]))
    with pytest.raises(LabelError, match="a rule mentions 'b'"):
        sp.baselines.CCN(4, "a -> b", labels=["a", "c"])
    layer = sp.baselines.CCN(4, "a -> b")
    with pytest.raises(ValueError, match=r"expected features of shape \[\*batch, 4\]"):
        layer(torch.zeros(2, 3))
    p = layer(torch.zeros(2, 4))
    with pytest.raises(IntractableError, match="CCN has no log_prob: it scores each label and defines no joint"):
        p.log_prob(torch.zeros(2, 2))
    with pytest.raises(ValueError, match="y must contain only 0 and 1"):
        p.loss(torch.full((2, 2), 0.5))
    with pytest.raises(ValueError, match="expected y of shape"):
        p.loss(torch.zeros(2, 3))
    with pytest.raises(ValueError, match="not by 'f1'"):
        p.decode("f1")


@pytest.mark.parametrize("query", ["sample", "entropy", "condition", "log_marginal", "top_k"])
def test_every_query_that_it_cannot_answer_says_why(query: str) -> None:
    arguments = {"condition": ({"a": 1},), "log_marginal": ({"a": 1},), "top_k": (2,)}.get(query, ())
    p = sp.baselines.CCN(4, "a -> b")(torch.zeros(2, 4))
    with pytest.raises(IntractableError, match=f"CCN has no {query}: it scores each label"):
        getattr(p, query)(*arguments)


LAYERS = {
    "rules": lambda: sp.baselines.CCN(4, "(a & !b -> c) & (c -> d)"),
    "hierarchy": lambda: sp.baselines.HMCNN(4, [("a", "c"), ("b", "c"), ("c", "d")]),
}


@pytest.mark.parametrize("kind", LAYERS)
def test_a_score_that_is_no_number_stays_visible(kind):
    """Where logits cannot be checked, as under vmap, a label that depends on NaN is NaN, not the best of the others."""
    layer, z = LAYERS[kind](), torch.randn(3, 4)
    with torch.no_grad():
        layer.gate[-1].bias[layer.labels.index("a")] = math.nan
    with pytest.raises(ValueError, match="logits must be finite"):
        layer(z)
    missing = torch.vmap(lambda row: layer(row).mean)(z).isnan()
    for column, name in enumerate(layer.labels):
        assert missing[:, column].tolist() == [name in ("a", "c", "d")] * 3, name


@pytest.mark.parametrize("kind", LAYERS)
def test_vmap(kind):
    layer, z = LAYERS[kind](), torch.randn(5, 4)
    torch.testing.assert_close(torch.vmap(lambda row: layer(row).mean)(z), layer(z).mean)

    def total(row):
        return layer(row).mean.sum()

    torch.testing.assert_close(torch.vmap(torch.func.grad(total))(z), torch.func.grad(total)(z))
