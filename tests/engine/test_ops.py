"""The engine's operators: values against plain enumeration, derivatives of every order, function transforms."""

from __future__ import annotations

import pytest
import torch
from engine_cases import INF, NAMES, leaves_of, numbers, plan_value, plans, states
from selection import only
from torch import Tensor

from semprola.engine import Literals, active, log_softmax, log_value, logits_of, possible, posterior, supported

pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("units", [1, 2])
def test_log_value(name: str, units: int) -> None:
    plan = plans(name, units).layer
    weights, leaves = numbers(plan)
    torch.testing.assert_close(log_value(plan, weights, leaves), plan_value(plan, weights, leaves))
    torch.testing.assert_close(log_value(plan, None, leaves), plan_value(plan, None, leaves))


@pytest.mark.parametrize("name", NAMES)
def test_first_and_second_derivatives(name: str) -> None:
    plan = plans(name, 2 if name == "cat_dog_animal" else 1).layer
    inputs = tuple(t.requires_grad_() for t in numbers(plan, 2))
    assert torch.autograd.gradcheck(lambda w, x: log_value(plan, w, x), inputs)
    assert torch.autograd.gradgradcheck(lambda w, x: log_value(plan, w, x), inputs)
    assert torch.autograd.gradcheck(lambda w, x: posterior(plan, w, x), inputs)


@pytest.mark.parametrize("name", only(["cat_dog_animal", "exactly_two_of_five"], lambda name: name == "cat_dog_animal"))
def test_third_derivatives(name: str) -> None:
    plan = plans(name, 2 if name == "cat_dog_animal" else 1).layer
    weights, leaves = (t.requires_grad_() for t in numbers(plan, 2))
    assert torch.autograd.gradgradcheck(lambda w, x: posterior(plan, w, x), (weights, leaves))
    assert torch.autograd.gradgradcheck(lambda x: posterior(plan, None, x)[1], (leaves,))


def test_third_derivatives_where_something_is_impossible() -> None:
    plan = plans("exactly_two_of_five").layer
    weights, leaves = (t.requires_grad_() for t in numbers(plan, 3))
    dead = torch.zeros_like(leaves, dtype=torch.bool)
    dead[0, 0] = True
    dead[0::2, 1] = True  # five ones: the column is impossible
    value = log_value(plan, weights, leaves.masked_fill(dead, -INF))
    derivatives = (weights, leaves)
    total = value[[0, 2]].sum()
    for _ in range(3):
        slopes = torch.autograd.grad(total, derivatives, create_graph=True)
        assert all(slope.isfinite().all() for slope in slopes)
        assert all((slope[:, 1] == 0).all() for slope in slopes)
        total = _mixed(slopes)


def _mixed(tensors: tuple[Tensor, ...]) -> Tensor:
    return torch.stack([t.sin().sum() for t in tensors]).sum()


def test_derivatives_of_literals_that_are_impossible() -> None:
    """Evidence makes one literal of a variable impossible; a branch may leave that variable out."""
    plan = plans("free_labels").constraint

    def value(zeros: Tensor, ones: Tensor) -> Tensor:
        observed = torch.zeros_like(ones).index_fill(0, torch.tensor([0, len(ones) - 1]), -torch.inf)
        literals = Literals.of(plan, zeros, ones + observed)
        return log_value(plan, None, literals.leaves) + literals.constant

    shape = (plan.num_leaves // 2, 2)
    scores = [torch.randn(shape, dtype=torch.float64, requires_grad=True) for _ in range(2)]
    assert torch.isfinite(value(*scores)).all()
    assert torch.autograd.gradcheck(value, scores)
    assert torch.autograd.gradgradcheck(value, scores)


def test_zeros_stay_zeros_and_have_no_gradient() -> None:
    plan = plans("exactly_two_of_five").layer
    weights, leaves = (t.requires_grad_() for t in numbers(plan, 4))
    dead = torch.zeros_like(leaves, dtype=torch.bool)
    dead[:, 1] = True  # a column with nothing possible
    dead[0::2, 2] = True  # five ones
    dead[1, 3] = True
    value = log_value(plan, weights, leaves.masked_fill(dead, -INF))
    assert torch.equal(value == -INF, torch.tensor([False, True, True, False]))
    value[[0, 3]].sum().backward()
    for tensor in (weights, leaves):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
        assert (tensor.grad[:, 1:3] == 0).all()


def test_huge_scores_overflow_nothing() -> None:
    plan = plans("nested_choice").layer
    for dtype in (torch.float32, torch.float64):
        weights, leaves = (1e4 * t.sign() for t in numbers(plan, 8, dtype))
        leaves.requires_grad_()
        value = log_value(plan, weights, leaves)
        value.sum().backward()
        assert value.isfinite().all()
        assert leaves.grad is not None
        assert leaves.grad.isfinite().all()
        torch.testing.assert_close(value.double(), log_value(plan, weights.double(), leaves.detach().double()))


def test_nan_is_not_hidden() -> None:
    plan = plans("nested_choice").layer
    weights, leaves = numbers(plan, 3)
    leaves[:, 1] = float("nan")
    assert log_value(plan, weights, leaves).isnan().tolist() == [False, True, False]


@pytest.mark.parametrize("name", NAMES)
def test_what_is_possible_and_active(name: str) -> None:
    one = plans(name)
    rows = states(one.layer_explicit)
    holds = torch.as_tensor(one.circuit.satisfied(rows.T))
    leaves = leaves_of(rows)
    assert torch.equal(supported(one.constraint_explicit, leaves), holds)
    used, some = active(one.layer_explicit, leaves)
    assert torch.equal(some, holds)
    weights, _ = numbers(one.layer_explicit, len(holds))
    values = log_value(one.layer_explicit, weights, leaves)
    torch.testing.assert_close((used * weights).sum(0)[holds], values[holds])
    alive, some = possible(one.layer_explicit, torch.zeros_like(leaves))
    assert alive.all()
    assert some.all()


@pytest.mark.parametrize("name", NAMES)
def test_a_softmax_of_every_sum_makes_a_distribution(name: str) -> None:
    plan = plans(name, units=2).layer
    weights, leaves = numbers(plan)
    for logits in (weights[: plan.num_logits], logits_of(plan, weights)):
        total = log_value(plan, log_softmax(plan, logits), torch.zeros_like(leaves))
        torch.testing.assert_close(total, torch.zeros_like(total))
    # the logits of log-weights give them back
    normal = log_softmax(plan, weights[: plan.num_logits])
    torch.testing.assert_close(log_softmax(plan, logits_of(plan, normal)), normal)


@pytest.mark.parametrize("columns", [0, 1, 2, 15, 16, 17, 63, 64, 65, 200])
def test_any_number_of_columns_in_any_layout(columns: int) -> None:
    plan = plans("exactly_two_of_five").layer
    for dtype in (torch.float32, torch.float64):
        weights, leaves = numbers(plan, columns, dtype)
        expected = torch.cat([log_value(plan, weights[:, [c]], leaves[:, [c]]) for c in range(columns)] or [leaves[0]])
        torch.testing.assert_close(log_value(plan, weights, leaves), expected)
        torch.testing.assert_close(log_value(plan, weights.T.contiguous().T, leaves.T.contiguous().T), expected)


class TestFunctionTransforms:
    @pytest.fixture(autouse=True)
    def _plan(self) -> None:
        self.plan = plans("nested_choice", units=2).layer
        self.weights, self.leaves = numbers(self.plan, 1)

    def function(self, row: Tensor) -> Tensor:
        return log_value(self.plan, self.weights * row.sum(), self.leaves * row[:1])[0]

    def test_vmap(self) -> None:
        rows = torch.randn(5, 3, dtype=torch.float64)
        expected = torch.stack([self.function(row) for row in rows])
        torch.testing.assert_close(torch.func.vmap(self.function)(rows), expected)

    def test_grad_and_hessian(self) -> None:
        row = torch.randn(3, dtype=torch.float64)
        slope = torch.autograd.functional.jacobian(self.function, row)
        torch.testing.assert_close(torch.func.grad(self.function)(row), slope)
        curvature = torch.autograd.functional.hessian(self.function, row)
        torch.testing.assert_close(torch.func.hessian(self.function)(row), curvature)
        both = torch.func.vmap(torch.func.grad(self.function))(torch.stack([row, 2 * row]))
        torch.testing.assert_close(both[0], slope)


def test_operators_keep_torch_rules() -> None:
    plan = plans("cat_dog_animal").layer
    weights, leaves = (t.requires_grad_() for t in numbers(plan, 2))
    checks = ("test_schema", "test_faketensor")
    torch.library.opcheck(torch.ops.semprola.log_value, (weights, leaves, plan.handle), test_utils=checks)
    torch.library.opcheck(torch.ops.semprola.evaluate, (weights, leaves, plan.handle), test_utils=checks)
