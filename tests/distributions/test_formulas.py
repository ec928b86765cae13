"""The probability that a further formula holds, against a sum over all states."""

from __future__ import annotations

import oracle
import pytest
import torch
import worlds
import zoo
from selection import spread
from worlds import Setting, world

import semprola as sp

pytestmark = pytest.mark.usefixtures("each_engine")
SMALL = [case for case in zoo.CASES if not case.large]
LAYERS = ("spl-m1-k1", "spl-m2-k2", "product-1", "product-3", "hmm-2", "vtree-2")


def further(case: zoo.Case, index: int) -> sp.Formula:
    """Some formula over the variables of a case."""
    atoms = [sp.Bool(name) for name in (*case.columns, *case.given)]
    a, b, c = (atoms[i % len(atoms)] for i in (index, index + 1, index + 2))
    return [a | b, ~a, sp.exactly(1, [a, b & c, ~c]), (a >> b) ^ c, a & ~b, sp.at_most(1, atoms)][index % 6]


@pytest.mark.parametrize("turn", range(2))
@pytest.mark.parametrize("case", spread(SMALL, 33), ids=lambda case: case.name)
def test_against_all_states(case: zoo.Case, turn: int) -> None:
    i = SMALL.index(case)
    layer = LAYERS[(i + 3 * turn) % len(LAYERS)]
    dtype = torch.float32 if i % 4 == 0 else torch.float64
    w = world(Setting(case, layer, dtype, worlds.BATCHES[i % 4], observed=not case.given and i % 3 == 0))
    formula = further(case, i)
    expected = torch.logsumexp(w.table.log_probs.masked_fill(~holds(w, formula), -oracle.INF), -1)
    found = w.p.log_prob_of(formula)
    assert found.shape == w.batch
    w.close(found, expected)
    assert torch.equal(found == -oracle.INF, expected == -oracle.INF) or dtype == torch.float32


def holds(w: worlds.World, formula: sp.Formula) -> torch.Tensor:
    states = oracle.all_states(w.labels)
    rows = states.expand(*w.batch, *states.shape)
    if w.x is not None:
        x = w.x.double().unsqueeze(-2).expand(*w.batch, len(states), -1)
        rows = torch.cat([rows, x], -1)
    return torch.as_tensor(formula.evaluate(rows, labels=[*w.case.columns, *w.case.given]))


@pytest.mark.parametrize("layer", LAYERS)
def test_gradients(layer: str) -> None:
    w = world(Setting(zoo.case("nested_choice"), layer, batch=(2,)))
    formula = sp.parse("a ^ (b & c)")
    z = w.z.clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda z: w.at(z).log_prob_of(formula), z)


@pytest.mark.parametrize("layer", LAYERS)
def test_what_cannot_hold_and_what_must(layer: str) -> None:
    w = world(Setting(zoo.case("cat_dog_animal"), layer, batch=(2, 3)))
    z = w.z.clone().requires_grad_()
    p = w.at(z)
    for impossible in ("cat & !animal", "false", "cat & !cat"):
        assert (p.log_prob_of(impossible) == -oracle.INF).all()
    for certain in ("cat -> animal", "true", "cat | !cat"):
        w.close(p.log_prob_of(certain), torch.zeros(2, 3))
    log_prob = p.log_prob_of("cat & animal")
    log_prob.sum().backward()
    assert z.grad is not None
    assert z.grad.isfinite().all()


def test_families_and_circuits_without_a_known_formula() -> None:
    circuit = sp.compile(sp.exactly(2, ["a", "b", "c", "d"]))
    logits = torch.randn(3, 4)
    reloaded = sp.Circuit(**circuit.__getstate__())
    family = sp.constraints.hierarchy([("a", "b"), ("c", "d")])
    p, q = sp.constrain(logits, circuit), sp.constrain(logits, reloaded)
    expected = p.log_marginal({"a": 1, "b": 1}).exp() + p.log_marginal({"c": 1, "d": 1}).exp()
    expected += p.log_marginal({"b": 1, "d": 1}).exp()
    torch.testing.assert_close(p.log_prob_of(family).exp(), expected)
    torch.testing.assert_close(q.log_prob_of(family).exp(), expected)


def test_a_large_formula_over_a_product() -> None:
    names = [f"y{i}" for i in range(40)]
    p = sp.constrain(torch.zeros(40), sp.at_least(1, names))
    expected = torch.tensor(sum(__import__("math").comb(40, k) for k in range(20, 41)) / (2**40 - 1)).log()
    torch.testing.assert_close(p.log_prob_of(sp.at_least(20, names)), expected.float(), atol=1e-5, rtol=1e-5)
    with pytest.raises(sp.errors.IntractableError, match="more than 4096 cases"):
        sp.SPL(2, sp.at_least(1, names))(torch.zeros(2)).log_prob_of(sp.at_least(20, names))


def test_many_cases_are_settled_by_the_negation() -> None:
    names = [f"y{i}" for i in range(16)]
    p = sp.SPL(2, sp.at_least(1, names))(torch.randn(3, 2))
    many = p.log_prob_of(sp.Xor(sp.Bool(n) for n in names[:9]) | sp.Bool(names[10]))
    few = p.log_prob_of(~(sp.Xor(sp.Bool(n) for n in names[:9]) | sp.Bool(names[10])))
    torch.testing.assert_close(many.exp() + few.exp(), torch.ones(3))


def test_bad_formulas() -> None:
    p = sp.constrain(torch.zeros(2), "a | b")
    with pytest.raises(sp.LabelError, match="mentions 'c', which is not a variable of the constraint"):
        p.log_prob_of("a & c")
    with pytest.raises(sp.ParseError):
        p.log_prob_of("a &")
    with pytest.raises(TypeError, match="expected a formula or its text, not int"):
        p.log_prob_of(3)
