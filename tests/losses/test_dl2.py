"""DL2 and fuzzy logics: by hand on small cases, and against the formula on certain labels for every constraint."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from zoo import CASES, Case

import semprola as sp
from semprola.errors import LabelError

LOGICS = ("dl2", "product", "godel", "lukasiewicz")
P, Q = 0.3, 0.9


def loss(formula: str, logic: str, **options: object) -> float:
    """The loss where a has probability 0.3 and b has 0.9."""
    logits = torch.logit(torch.tensor([P, Q], dtype=torch.float64))
    return float(sp.losses.DL2(formula, labels=["a", "b"], logic=logic, **options)(logits))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("formula", "dl2", "product", "godel", "lukasiewicz"),
    [
        ("a", 1 - P, P, P, P),
        ("!a", P, 1 - P, 1 - P, 1 - P),
        ("a & b", (1 - P) + (1 - Q), P * Q, P, P + Q - 1),
        ("a | b", (1 - P) * (1 - Q), 1 - (1 - P) * (1 - Q), Q, 1),
        ("a -> b", P * (1 - Q), 1 - P * (1 - Q), Q, 1),
        ("!(a & b)", P * Q, 1 - P * Q, 1 - P, (1 - P) + (1 - Q)),
        ("a ^ b", (1 - P + Q) * (P + 1 - Q), None, max(min(P, 1 - Q), min(1 - P, Q)), 0.6),
    ],
)
def test_by_hand(formula: str, dl2: float, product: float | None, godel: float, lukasiewicz: float) -> None:
    assert loss(formula, "dl2") == pytest.approx(dl2)
    if product is not None:
        assert loss(formula, "product") == pytest.approx(-math.log(product))
    assert loss(formula, "godel") == pytest.approx(1 - godel)
    assert loss(formula, "lukasiewicz") == pytest.approx(1 - lukasiewicz)


def test_it_depends_on_how_a_formula_is_written() -> None:
    """As the paper says: equivalent formulas have different losses, where the semantic loss has one."""
    assert loss("a & a & b", "dl2") > loss("a & b", "dl2") + 0.5
    assert loss("a & (a | b)", "product") != pytest.approx(loss("a", "product"))
    logits = torch.zeros(1, 2)
    semantic = [sp.losses.SemanticLoss(sp.parse(text))(logits).item() for text in ("a & b", "a & a & b")]
    assert semantic[0] == pytest.approx(semantic[1])


@pytest.mark.parametrize("logic", LOGICS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_zero_on_certain_labels_that_obey(case: Case, logic: str) -> None:
    names = [*case.columns, *case.given]
    numbers = np.arange(2 ** len(names))[:: max(1, 2 ** len(names) // 256)]
    rows = ((numbers[:, None] >> np.arange(len(names))) & 1).astype(float)
    layer = sp.losses.DL2(case.formula, labels=names, logic=logic, reduction="none")
    values = layer(torch.from_numpy(rows * 600 - 300))
    holds = torch.from_numpy(np.asarray(case.formula.evaluate(rows, names)))
    assert (values[holds] < 1e-6).all()
    assert (values[~holds] > 0.99).all()


@pytest.mark.parametrize("logic", LOGICS)
def test_gradients_and_shapes(logic: str) -> None:
    formula = sp.parse("(a -> b) & (b ^ c)") & sp.at_most(2, ["a", "b", "c", "d"]) & sp.constraints.permutation(2)
    layer = sp.losses.DL2(formula, logic=logic, reduction="none")
    torch.manual_seed(0)
    for shape in ((), (1,), (7,), (2, 3)):
        assert layer(torch.randn(*shape, 8)).shape == shape
    logits = torch.randn(5, 8, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: layer(x), logits)
    far = (torch.randn(50, 8) * 1e4).requires_grad_()
    layer(far).sum().backward()
    assert torch.isfinite(far.grad).all()  # type: ignore[arg-type]


def test_reductions() -> None:
    logits = torch.randn(4, 2)
    each = sp.losses.DL2("a & b", reduction="none")(logits)
    assert torch.isclose(sp.losses.DL2("a & b")(logits), each.mean())
    assert torch.isclose(sp.losses.DL2("a & b", reduction="sum")(logits), each.sum())


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="logic must be one of 'dl2'"):
        sp.losses.DL2("a", logic="zadeh")
    with pytest.raises(ValueError, match="reduction must be"):
        sp.losses.DL2("a", reduction="max")
    with pytest.raises(LabelError, match="mentions 'b', which is not among the labels"):
        sp.losses.DL2("a & b", labels=["a"])
    with pytest.raises(TypeError, match="how a formula is written, so it needs a formula, not a compiled circuit"):
        sp.losses.DL2(sp.compile("a"))  # type: ignore[arg-type]
    with pytest.raises(LabelError, match=r"labels: expected a list of names, not 'ab'"):
        sp.losses.DL2("a & b", labels="ab")


@pytest.mark.parametrize("call", ["forward", "values"])
@pytest.mark.parametrize("logic", LOGICS)
def test_bad_logits(logic: str, call: str) -> None:
    loss = getattr(sp.losses.DL2("a & b", logic=logic), call)
    with pytest.raises(ValueError, match=r"logits must be \[\*batch, 2\], one column for each of a, b; not \(3, 4\)"):
        loss(torch.zeros(3, 4))
    with pytest.raises(TypeError, match=r"logits must be a tensor \[\*batch, 2\], not list: use torch.as_tensor"):
        loss([1.0, 2.0])
    for wrong in (math.nan, math.inf, -math.inf):
        logits = torch.zeros(3, 2)
        logits[1, 0] = wrong
        with pytest.raises(ValueError, match=r"^logits must be finite: found NaN or infinite values in row 1$"):
            loss(logits)


def test_learns() -> None:
    logits = torch.zeros(3, requires_grad=True)
    layer = sp.losses.DL2("(a -> b) & (b -> c) & a")
    optimizer = torch.optim.Adam([logits], lr=0.2)
    for _ in range(100):
        optimizer.zero_grad()
        layer(logits).backward()
        optimizer.step()
    assert (logits > 1).all()
