"""The likelihood by active sums alone, against the dense evaluation of the whole circuit."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
import zoo
from engine_cases import INF, leaves_of, plans, states
from selection import spread

import semprola as sp
from semprola.engine import encode, likelihood, log_softmax, log_value
from semprola.engine.backends import BACKENDS, torch_likelihood
from semprola.engine.backends.library import library

LARGER = {
    "tree": lambda: sp.constraints.hierarchy([(f"n{i}", f"n{(i - 1) // 2}") for i in range(1, 12)]),
    "permutation": lambda: sp.constraints.permutation(4),
    "count": lambda: sp.constraints.cardinality([f"y{i}" for i in range(9)], exactly=4),
    "table": lambda: sp.constraints.table(
        [[i >> j & 1 for j in range(8)] for i in range(0, 256, 7)], labels=list("abcdefgh")
    ),
}
CASES = [case.name for case in zoo.CASES if not case.given and not case.large]


pytestmark = pytest.mark.usefixtures("each_engine")


@pytest.mark.parametrize("name", spread(CASES, 20))
def test_all_states(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several samples and components at once, plain and encoded, values and gradients."""
    monkeypatch.setattr("semprola.engine.backends.native._WEIGHTS_PER_CODE", 0)  # read codes, however long
    plan = plans(name).layer_explicit
    rows = states(plan)
    labels, count = rows.shape
    logits = torch.randn((plan.num_logits, 2, 3), dtype=torch.float64, requires_grad=True)
    dense = torch.stack(
        [
            torch.stack(
                [log_value(plan, log_softmax(plan, logits[:, c]), leaves_of(rows[:, [i] * 3])) for c in range(2)]
            )
            for i in range(count)
        ]
    )
    y = rows[:, :, None].expand(-1, -1, 3)
    sparse = likelihood(plan, logits, y, None, labels)
    codes = encode(plan, rows)
    encoded = likelihood(plan, logits, y, codes[:, None].expand(-1, 3, -1), labels)
    torch.testing.assert_close(sparse, dense)
    torch.testing.assert_close(encoded, dense)
    holds = dense > -INF
    factor = torch.randn_like(dense)
    expected = torch.autograd.grad((dense * factor)[holds].sum(), logits)[0]
    for value in (sparse, encoded):
        torch.testing.assert_close(torch.autograd.grad((value * factor)[holds].sum(), logits)[0], expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", ["tree", "permutation", "count", "table"])
def test_many_columns(name: str, dtype: torch.dtype) -> None:
    """Whole words and a part of one, states inside and outside of the support, on circuits of decisions and others."""
    circuit = sp.compile(LARGER[name]())
    plan = sp.SPL(2, circuit).plans.layer_explicit
    models = torch.from_numpy(circuit.enumerate(limit=100)).to(dtype)
    rows = torch.cat([models, models, torch.randint(0, 2, (160, circuit.num_labels)).to(dtype)])
    rows = rows[torch.randperm(len(rows))[:224]].T
    logits = torch.randn((plan.num_logits, 1, rows.shape[1]), dtype=dtype, requires_grad=True)
    dense = log_value(plan, log_softmax(plan, logits[:, 0]), leaves_of(rows))
    holds = dense > -INF
    assert holds.any()
    assert not holds.all()
    factor = torch.randn_like(dense)
    (expected,) = torch.autograd.grad((dense * factor)[holds].sum(), logits)
    for _ in each_instruction_set():
        value = likelihood(plan, logits, rows[:, None], None, circuit.num_labels)[0, 0]
        torch.testing.assert_close(value, dense, rtol=1e-4 if dtype == torch.float32 else 1e-9, atol=1e-4)
        (gradient,) = torch.autograd.grad((value * factor)[holds].sum(), logits)
        torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-4)


def each_instruction_set() -> Iterator[None]:
    native = library()
    if native is None or sp.engine.get_engine() == "torch":
        yield
        return
    try:
        for level in (0, 1, 2):
            native.semprola_engine_set_level(level)
            yield
    finally:
        native.semprola_engine_set_level(-1)


def test_second_derivatives() -> None:
    plan = plans("cat_dog_animal").layer_explicit
    y = states(plan)[:, [0, 5]][:, None]
    logits = torch.randn((plan.num_logits, 2, 2), dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradgradcheck(lambda x: likelihood(plan, x, y, None, 3), (logits,))


def test_tall_sums_and_extreme_logits() -> None:
    circuit = sp.compile(sp.one_hot([f"y{i}" for i in range(70)]))
    layer = sp.SPL(2, circuit)
    plan = layer.plans.layer_explicit
    y = torch.eye(70)[:, None].expand(-1, 1, 70).permute(0, 1, 2)
    logits = 1e4 * torch.randn(plan.num_logits, 1, 70)
    value = likelihood(plan, logits, y, None, 70)
    double = likelihood(plan, logits.double(), y.double(), None, 70)
    assert value.isfinite().all()
    torch.testing.assert_close(value.double(), double, rtol=1e-5, atol=1e-2)


@pytest.mark.parametrize("at_once", [7, 2**17])
@pytest.mark.parametrize("per_code", [0, 10**6])
@pytest.mark.parametrize("name", spread(CASES, 14, 1))
def test_short_cuts_of_the_torch_engine(
    name: str, per_code: int, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sample per row: by codes or by all sums, in portions or at once, the numbers are those of the plain terms."""
    monkeypatch.setattr(torch_likelihood, "_LOGITS_PER_CODE", per_code)
    monkeypatch.setattr(torch_likelihood, "_NUMBERS_AT_ONCE", at_once)
    plan = plans(name).layer_explicit
    rows = torch.cat([states(plan), 1 - states(plan)], 1)[:, None]
    labels, _, batch = rows.shape
    logits = 4 * torch.randn((plan.num_logits, 2, batch), dtype=torch.float64)
    cotangent = torch.randn((1, 2, batch), dtype=torch.float64)
    backend = BACKENDS[-1]
    for codes in (encode(plan, rows[:, 0])[None], rows.new_empty((1, batch, 0), dtype=torch.int32)):
        arguments = (plan, logits, rows, codes)
        value, slopes = torch_likelihood.dense_both(*arguments, cotangent, labels, backend.support)
        torch.testing.assert_close(value, torch_likelihood.dense(*arguments, labels, backend.support))
        expected = torch_likelihood.dense_gradient(*arguments, cotangent, labels, backend.support)
        torch.testing.assert_close(slopes, expected)
