"""Every back end against plain Python, function by function; one that is added to the list is compared too."""

from __future__ import annotations

import threading
from dataclasses import replace

import numpy as np
import pytest
import torch
import zoo
from engine_cases import NAMES, leaves_of, numbers, plans, states
from plain_backend import PlainBackend

import semprola as sp
from semprola.engine import Literals, Plan
from semprola.engine.backends import BACKENDS, select
from semprola.engine.backends.base import Backend
from semprola.engine.skeleton import Skeleton

REFEREE = PlainBackend()
TYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
EXACT = {torch.float32: {"rtol": 1e-4, "atol": 1e-5}, torch.float64: {"rtol": 1e-9, "atol": 1e-9}}


@pytest.fixture(params=[backend.name for backend in BACKENDS if backend.name != "triton" or backend.is_present()])
def backend(request: pytest.FixtureRequest) -> Backend:
    found = next(backend for backend in BACKENDS if backend.name == request.param)
    if not found.is_present():
        pytest.skip(f"semprola was built without its {found.name} module")
    return found


@pytest.fixture(params=[*NAMES, "a dead sum"])
def plan(request: pytest.FixtureRequest) -> Plan:
    if request.param == "a dead sum":
        return Plan(with_root_twice(plans(NAMES[0]).layer_explicit.shape))
    return plans(request.param).layer_explicit


def with_root_twice(shape: Skeleton) -> Skeleton:
    """The skeleton with a second sum like the root, which nothing needs."""
    first, last = shape.edge_start[shape.root], shape.edge_start[shape.root + 1]
    start, end = shape.factor_start[first], shape.factor_start[last]
    return replace(
        shape,
        edge_start=np.append(shape.edge_start, shape.edge_start[-1] + last - first),
        factor_start=np.append(
            shape.factor_start, shape.factor_start[first + 1 : last + 1] - start + len(shape.factors)
        ),
        factors=np.append(shape.factors, shape.factors[start:end]),
    )


def some_leaves(plan: Plan, dtype: torch.dtype) -> torch.Tensor:
    """Random scores; in some columns some literals are impossible, in the last all are."""
    _, leaves = numbers(plan, 6, dtype)
    mask = torch.rand(leaves.shape, generator=torch.Generator().manual_seed(3)) < torch.linspace(0, 0.6, 6)
    mask[:, 0], mask[:, -1] = False, True
    return leaves.masked_fill(mask, -torch.inf)


@TYPES
def test_evaluate(backend: Backend, plan: Plan, dtype: torch.dtype) -> None:
    leaves = some_leaves(plan, dtype)
    for weights in (numbers(plan, 6, dtype)[0], None):
        found = backend.evaluate(plan, weights, leaves, flows=True)
        torch.testing.assert_close(found, REFEREE.evaluate(plan, weights, leaves, flows=True), **EXACT[dtype])
        value, edges, literals = backend.evaluate(plan, weights, leaves, flows=False)
        torch.testing.assert_close(value, found[0], **EXACT[dtype])
        assert edges is literals is None


@TYPES
def test_maximize_and_rank(backend: Backend, plan: Plan, dtype: torch.dtype) -> None:
    weights, leaves = numbers(plan, 5, dtype)
    leaves[0, 1:3] = -torch.inf
    value, literals = backend.maximize(plan, weights, leaves)
    expected = REFEREE.maximize(plan, weights, leaves)
    torch.testing.assert_close(value, expected[0], **EXACT[dtype])
    assert torch.equal(literals, expected[1])
    default = torch.zeros_like(leaves[0::2])
    best, found = backend.best_states(plan, weights, leaves, default)
    torch.testing.assert_close(best, value, **EXACT[dtype])
    assert torch.equal(found, literals[1::2])
    listed, values = backend.rank(plan, weights, leaves, 3)
    expected = REFEREE.rank(plan, weights, leaves, 3)
    torch.testing.assert_close(values, expected[1], **EXACT[dtype])
    real = (values > -torch.inf).expand(listed.shape)
    assert torch.equal(listed[real], expected[0][real])


def test_samples_have_the_right_frequencies(backend: Backend, plan: Plan) -> None:
    weights, leaves = numbers(plan, 2)
    literals = Literals(leaves, torch.zeros(2), torch.full((plan.shape.num_variables, 2), 0.25, dtype=leaves.dtype))
    column = torch.arange(2).repeat(3000)
    drawn = backend.sample(plan, weights, literals, column, torch.Generator().manual_seed(0))
    again = backend.sample(plan, weights, literals, column, torch.Generator().manual_seed(0))
    assert torch.equal(drawn, again)
    _, _, flows = REFEREE.evaluate(plan, weights, leaves, flows=True)
    ones = flows[1::2] + (1 - flows[0::2] - flows[1::2]) * 0.25
    for c in range(2):
        torch.testing.assert_close(drawn[:, column == c].mean(1), ones[:, c], rtol=0, atol=0.05)


@TYPES
def test_support_and_codes(backend: Backend, plan: Plan, dtype: torch.dtype) -> None:
    rows = states(plan).to(dtype)
    for edges in (None, "possible", "active"):
        flags, some = backend.support(plan, leaves_of(rows), edges)
        expected = REFEREE.support(plan, leaves_of(rows), edges)
        assert torch.equal(some, expected[1])
        assert torch.equal(flags, expected[0])
    leaves = some_leaves(plan, dtype)
    assert torch.equal(*(b.support(plan, leaves, "possible")[0] for b in (backend, REFEREE)))
    found, expected = (b.encode(plan, rows).sort(1).values for b in (backend, REFEREE))
    assert torch.equal(found, expected)


@TYPES
@pytest.mark.parametrize("encoded", [False, True])
def test_likelihood(backend: Backend, plan: Plan, dtype: torch.dtype, encoded: bool) -> None:
    rows = states(plan).to(dtype)[:, -12:]
    y = rows[:, :, None].expand(-1, -1, 2)
    codes = REFEREE.encode(plan, rows)[:, None].expand(-1, 2, -1) if encoded else None
    logits = numbers(plan, 4, dtype)[0][: plan.num_logits].unflatten(1, (2, 2))
    arguments = (plan, logits, y, codes, len(rows))
    cotangent = torch.randn((rows.shape[1], 2, 2), generator=torch.Generator().manual_seed(1)).to(dtype)
    for outer in (None, cotangent):
        found = backend.likelihood(*arguments, outer, gradient=True)
        expected = REFEREE.likelihood(*arguments, outer, gradient=True)
        torch.testing.assert_close(found, expected, **EXACT[dtype])
    assert backend.likelihood(*arguments, value=False, gradient=False) == (None, None)


@TYPES
@pytest.mark.parametrize("name", NAMES)
def test_independent_labels(backend: Backend, name: str, dtype: torch.dtype) -> None:
    """log Z, likelihoods, their gradients and best states straight from log-odds, in tiles of every width."""
    made = plans(name)
    plan, referee, every = made.constraint, made.constraint_explicit, states(made.constraint)
    generator = torch.Generator().manual_seed(0)
    for columns in (0, 1, 3, 70):
        odds = 4 * torch.randn((columns, len(every)), generator=generator, dtype=dtype).T
        y = every[:, torch.randint(every.shape[1], (columns,), generator=generator)].to(dtype)
        for states_ in (None, y, y.T.contiguous().T):
            for own in (odds, odds.contiguous()):
                found = backend.independent(plan, referee, own, states_, gradient=True)
                expected = REFEREE.independent(plan, referee, odds, states_, gradient=True)
                torch.testing.assert_close(found, expected, **EXACT[dtype])
                value, nothing = backend.independent(plan, referee, own, states_, gradient=False)
                torch.testing.assert_close(value, found[0])
                assert nothing is None
        assert torch.equal(backend.likeliest(plan, odds), REFEREE.likeliest(plan, odds))
        norm = float(odds.norm(dim=0).max()) if columns else 0.0
        assert backend.largest_norm(odds.T) == pytest.approx(norm, rel=1e-5)


@TYPES
def test_independent_labels_far_apart(backend: Backend, dtype: torch.dtype) -> None:
    """Odds of exp(±80): values and slopes stay finite, and right."""
    made = plans("cat_dog_animal")
    odds = torch.linspace(-80, 80, 21, dtype=dtype).view(3, 7)
    for y in (None, backend.likeliest(made.constraint, odds)):
        own = [None if y is None else y.to(kind) for kind in (dtype, torch.float64)]
        found = backend.independent(made.constraint, made.constraint_explicit, odds, own[0], gradient=True)
        expected = REFEREE.independent(made.constraint, made.constraint_explicit, odds.double(), own[1], gradient=True)
        torch.testing.assert_close(found, tuple(part.to(dtype) for part in expected), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", [case.name for case in zoo.CASES if case.given and not case.large])
def test_likelihood_with_given_variables(backend: Backend, name: str) -> None:
    circuit = zoo.case(name).circuit
    plan = sp.SPL(1, circuit).plans.layer_explicit
    rows = torch.from_numpy(circuit.enumerate(limit=20)).T.to(torch.float64)[:, None]
    logits = numbers(plan, rows.shape[2])[0][: plan.num_logits, None]
    arguments = (plan, logits, rows, None, circuit.num_labels)
    found, expected = (b.likelihood(*arguments, gradient=True) for b in (backend, REFEREE))
    torch.testing.assert_close(found, expected)


def test_a_back_end_is_one_entry_in_the_list(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whole layers work on one that is new: values, gradients, modes and samples."""
    monkeypatch.setattr("semprola.engine.backends.BACKENDS", [REFEREE, *BACKENDS])
    for layer in (sp.SPL(3, "(a -> b) & (b -> c)", components=2), sp.ProductSPL(3, "a | b | c")):
        layer = layer.double()
        z = torch.randn(2, 3, dtype=torch.float64)
        y = layer(z).mode
        answers = []
        for name in ("plain", "torch"):
            with sp.engine.using(name):
                p = layer(z)
                value = p.log_prob(y)
                slopes = torch.autograd.grad(value.sum(), list(layer.parameters()))
                answers.append([value, *slopes, p.mean, p.mode, p.top_k(3)[1], p.entropy(), p.log_marginal(y)])
                assert bool(layer.circuit.satisfied(p.sample((4,)).flatten(0, 1)).all())
        torch.testing.assert_close(*answers)


def test_a_choice_for_a_few_lines() -> None:
    outside = sp.engine.get_engine()
    seen = []
    with sp.engine.using("torch"):
        assert sp.engine.get_engine() == "torch"
        assert select(torch.zeros(1)).name == "torch"
        other = threading.Thread(target=lambda: seen.append(sp.engine.get_engine()))
        other.start()
        other.join()
        with sp.engine.using("auto"):
            assert sp.engine.get_engine() == "auto"
        assert sp.engine.get_engine() == "torch"
    assert sp.engine.get_engine() == outside
    assert seen == [outside]
    with (
        pytest.raises(ValueError, match=r"must be one of .*, not .cuda."),
        sp.engine.using("cuda"),
    ):
        pass


def test_select_looks_at_all_tensors() -> None:
    half, single, double = (torch.zeros(1, dtype=t) for t in (torch.float16, torch.float32, torch.float64))
    assert select(half).name == "torch"
    assert select(single, double).name == "torch"
    assert select(None, single).name == select(single).name
    assert select(torch.zeros(1, device="meta")).name == "torch"
