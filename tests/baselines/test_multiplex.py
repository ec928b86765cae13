"""MultiplexNet against enumeration on the zoo; normal forms against truth tables; large ones refused with a count."""

from __future__ import annotations

import itertools

import pytest
import torch
from zoo import CASES, Case

import semprola as sp
from semprola.baselines.multiplex import terms_of
from semprola.errors import CompilationBudgetError, IntractableError, LabelError, UnsatisfiableError

SMALL = [case for case in CASES if not case.given and not case.large]


def rows(labels: int) -> torch.Tensor:
    return torch.tensor(list(itertools.product([0.0, 1.0], repeat=labels)), dtype=torch.float64).reshape(-1, labels)


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.name)
def test_normalised_and_exactly_zero_outside(case: Case) -> None:
    torch.manual_seed(0)
    layer = sp.baselines.MultiplexNet(3, case.formula, labels=case.columns).double()
    p = layer(torch.randn(4, 3, dtype=torch.float64))
    every = rows(len(case.columns))
    log_prob = p.log_prob(every[:, None].expand(-1, 4, -1))
    holds = torch.as_tensor(case.formula.evaluate(every, list(case.columns)))
    assert torch.equal(log_prob > -torch.inf, holds[:, None].expand(-1, 4))
    assert torch.allclose(log_prob.exp().sum(0), torch.ones(4, dtype=torch.float64))
    assert torch.allclose(torch.einsum("sb,sl->bl", log_prob.exp(), every), p.mean)
    assert bool(torch.as_tensor(case.formula.evaluate(p.mode, list(case.columns))).all())
    assert bool(torch.as_tensor(case.formula.evaluate(p.sample((20,)), list(case.columns))).all())


def test_terms_are_the_formula() -> None:
    formula = sp.parse("(a -> b & c) & (c ^ d | !b)") & sp.at_least(2, ["a", "b", "c", "d"])
    labels = list(formula.labels)
    every = rows(4)
    terms = terms_of(formula, 1000)
    covered = torch.tensor(
        [any(all(bool(row[labels.index(name)]) == on for name, on in term) for term in terms) for row in every]
    )
    assert torch.equal(covered, torch.as_tensor(formula.evaluate(every, labels)))
    assert not any(a < b for a in terms for b in terms)


def test_too_many_terms_are_counted_not_written() -> None:
    pairs = [sp.Bool(f"a{i}") | sp.Bool(f"b{i}") for i in range(40)]
    with pytest.raises(CompilationBudgetError, match=r"about 10\^12 terms, more than 1,024: raise"):
        sp.baselines.MultiplexNet(3, sp.And(*pairs))
    with pytest.raises(CompilationBudgetError, match="up to 8 terms") as error:
        sp.baselines.MultiplexNet(3, sp.And(*pairs[:3]), max_terms=5)
    assert (error.value.resource, error.value.limit, error.value.spent) == ("terms", 5, 8)


def test_samples_have_the_marginals() -> None:
    torch.manual_seed(0)
    p = sp.baselines.MultiplexNet(3, "(a -> b) & (b ^ c)")(torch.randn(2, 3))
    assert torch.allclose(p.sample((20_000,)).mean(0), p.mean, atol=0.02)


def test_gradients_and_training() -> None:
    torch.manual_seed(0)
    layer = sp.baselines.MultiplexNet(3, "(a -> b) & (b ^ c)", gate=[8]).double()
    z = torch.randn(4, 3, dtype=torch.float64, requires_grad=True)
    y = torch.tensor([[0, 1, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]], dtype=torch.float64)
    p = layer(z)
    assert p.log_prob(y)[3] == -torch.inf
    p.log_prob(y)[:3].sum().backward()
    assert torch.isfinite(z.grad).all()  # type: ignore[arg-type]
    assert torch.autograd.gradcheck(lambda x: layer(x).log_prob(y)[:3], z)
    x = torch.randn(200, 3, dtype=torch.float64)
    truth = torch.stack([(x[:, 0] > 0.5), x[:, 0] > 0, x[:, 0] <= 0], 1).double()
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.03)
    for _ in range(150):
        optimizer.zero_grad()
        (-layer(x).log_prob(truth).mean()).backward()
        optimizer.step()
    assert (layer(x).mode == truth).all(1).double().mean() > 0.9


def test_bad_input() -> None:
    with pytest.raises(UnsatisfiableError, match="no term of its disjunctive normal form"):
        sp.baselines.MultiplexNet(3, "a & !a")
    with pytest.raises(LabelError, match="mentions 'b'"):
        sp.baselines.MultiplexNet(3, "a & b", labels=["a"])
    p = sp.baselines.MultiplexNet(3, "a | b")(torch.zeros(2, 3))
    with pytest.raises(IntractableError, match="MultiplexNet has no entropy: its terms overlap"):
        p.entropy()
    with pytest.raises(IntractableError, match="decodes by 'mode' only"):
        p.decode("hamming")
    with pytest.raises(ValueError, match="y must contain only 0 and 1"):
        p.log_prob(torch.full((2, 2), 0.3))


def test_marginals_and_conditions_against_enumeration() -> None:
    torch.manual_seed(0)
    layer = sp.baselines.MultiplexNet(3, "(a -> b & c) & (c ^ d | !b)").double()
    p = layer(torch.randn(4, 3, dtype=torch.float64))
    every = rows(4)
    weights = p.log_prob(every[:, None].expand(-1, 4, -1)).exp()  # [states, batch]
    for b, d in ((1.0, None), (0.0, 1.0), (None, 0.0)):
        evidence = {name: value for name, value in (("b", b), ("d", d)) if value is not None}
        seen = torch.stack([every[:, layer.labels.index(name)] == value for name, value in evidence.items()]).all(0)
        mass = (weights * seen[:, None]).sum(0)
        assert torch.allclose(p.log_marginal(evidence).expand(4).exp(), mass)
        given = p.condition(evidence)
        expected = weights * seen[:, None] / mass
        assert torch.allclose(given.log_prob(every[:, None].expand(-1, 4, -1)).exp(), expected)
        assert torch.allclose(given.mean, expected.T @ every)
        assert torch.allclose(given.sample((20_000,)).mean(0), given.mean, atol=0.02)
        for row, state in enumerate(given.mode):
            assert expected[(every == state).all(1), row].item() > 0
    both = p.condition({"b": 1.0}).condition({"d": 0.0})
    assert torch.allclose(both.mean, p.condition({"b": 1.0, "d": 0.0}).mean)
    observed = torch.tensor([float("nan"), 1.0, float("nan"), 0.0], dtype=torch.float64).expand(4, -1)
    assert torch.allclose(p.condition(observed).mean, both.mean)


def test_impossible_and_bad_evidence() -> None:
    p = sp.baselines.MultiplexNet(3, "(a -> b) & (b ^ c)")(torch.zeros(2, 3))
    assert p.log_marginal({"a": 1.0, "b": 0.0}).tolist() == [-torch.inf, -torch.inf]
    with pytest.raises(UnsatisfiableError, match="probability zero in 2 rows"):
        p.condition({"a": 1.0, "b": 0.0})
    with pytest.raises(UnsatisfiableError, match="probability zero"):
        p.condition({"a": 1.0}).condition({"a": 0.0})
    with pytest.raises(LabelError, match="e"):
        p.condition({"e": 1.0})
    with pytest.raises(ValueError, match="evidence must contain only 0, 1, and NaN"):
        p.log_marginal(torch.full((2, 3), 0.5))
    with pytest.raises(ValueError, match="expected evidence of 3 labels"):
        p.log_marginal(torch.zeros(2, 2))
