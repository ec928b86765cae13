"""Rows that break the rules: listed, refused, left out, or moved to the nearest state that obeys."""

from __future__ import annotations

from typing import Any

import numpy as np
import oracle
import pytest
import torch
import worlds
import zoo
from selection import spread
from worlds import Setting, world

import semprola as sp

pytestmark = pytest.mark.usefixtures("each_engine")
PETS = "(cat -> animal) & (dog -> animal)"
BAD = torch.tensor([[1.0, 1, 0], [1, 0, 0], [0, 0, 0], [1, 0, 1]])
SMALL = [case for case in zoo.CASES if not case.large]
SOME_LAYERS = ("spl-m1-k1", "spl-m2-k2", "product-1", "product-3", "hmm-2", "vtree-2")


def pets() -> Any:
    return sp.constrain(torch.tensor([0.3, -0.5, 0.7]).expand(4, 3), PETS)


# listing -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("case", spread(SMALL, 22), ids=lambda case: case.name)
@pytest.mark.parametrize("kind", ["formula", "circuit", "unknown source"])
def test_the_rows_listed_are_those_that_violate(case: zoo.Case, kind: str) -> None:
    states = oracle.all_states(len(case.columns))
    x = oracle.all_states(len(case.given))[-1].expand(len(states), -1) if case.given else None
    constraint = {
        "formula": lambda: case.formula,
        "circuit": lambda: case.circuit,
        "unknown source": lambda: _reloaded(case.circuit),
    }[kind]()
    given = None if x is None else {name: x[:, i] for i, name in enumerate(case.given)}
    labels = list(case.columns) if kind == "formula" else None
    found = sp.violations(constraint, states, labels=labels, given=given)
    obeys = oracle.allowed(case, x[:1]).reshape(-1) if x is not None else oracle.allowed(case)
    assert sorted({violation.row for violation in found}) == torch.nonzero(~obeys)[:, 0].tolist()
    if kind == "unknown source":
        for violation in found[:12]:
            _check_core(case, violation.values)


def _check_core(case: zoo.Case, values: dict[str, int]) -> None:
    """No model has these values, and any fewer of them fit one."""
    names = [*case.columns, *case.given]
    states = oracle.all_states(len(names))
    models = states[torch.as_tensor(case.formula.evaluate(states, labels=names))]

    def fits(part: dict[str, int]) -> bool:
        return bool(sum((models[:, names.index(n)] == v).int() for n, v in part.items()).eq(len(part)).any())

    assert not fits(values)
    for name in values if len(values) > 1 else ():
        assert fits({n: v for n, v in values.items() if n != name})


def _reloaded(circuit: sp.Circuit) -> sp.Circuit:
    again = sp.Circuit(**circuit.__getstate__())
    assert again.source is None
    return again


def test_rules_in_the_users_words() -> None:
    found = sp.violations(PETS, BAD)
    assert [str(violation) for violation in found] == [
        "row 1: cat -> animal (cat=1, animal=0)",
        "row 3: cat -> animal (cat=1, animal=0)",
        "row 3: dog -> animal (dog=1, animal=0)",
    ]
    assert sp.violations(sp.compile(PETS), BAD) == found
    assert sp.violations(sp.SPL(2, PETS), BAD) == sp.violations(pets(), BAD) == found
    assert sp.violations(PETS, BAD[:1]) == []
    assert sp.violations(PETS, BAD[1])[0].row == 0
    assert sp.violations(PETS, BAD.reshape(2, 2, 3))[0].row == (0, 1)
    assert sp.violations(PETS, BAD.numpy()) == sp.violations(PETS, BAD.tolist()) == found


def test_families_by_name() -> None:
    rules = sp.constraints.hierarchy([("cat", "animal"), ("dog", "animal")]) & sp.parse("cat | dog")
    found = sp.violations(rules, {"cat": [1, 0], "animal": [0, 1], "dog": [0, 0]})
    assert [(v.row, v.rule, v.values) for v in found] == [
        (0, "hierarchy(3 labels, 2 edges)", {"cat": 1, "animal": 0}),
        (1, "cat | dog", {"cat": 0, "dog": 0}),
    ]


def test_clauses_of_a_file_and_circuits() -> None:
    rules = sp.from_dimacs("p cnf 3 2\n1 -2 0\n3 0\n")
    found = sp.violations(rules, np.array([[0, 1, 1], [1, 1, 0]]))
    assert [(v.row, v.rule) for v in found] == [(0, "1 | ~2"), (1, "3")] or [v.row for v in found] == [0, 1]
    [only] = sp.violations(_reloaded(sp.compile(PETS)), BAD[1])
    assert str(only) == "row 0: cat=1 and animal=0 cannot hold together"


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (
            lambda: sp.violations(PETS, BAD[:, :2]),
            sp.LabelError,
            "y has shape [4, 2], expected [*batch, 3]: columns 'cat', 'animal', 'dog'",
        ),
        (
            lambda: sp.violations(PETS, BAD + 0.5),
            ValueError,
            "y must contain only 0, 1, and NaN where not observed: row 0, label 'cat' is 1.5",
        ),
        (lambda: sp.violations(PETS, {"cat": 1, "dog": 1}), sp.LabelError, "y has no column 'animal'"),
        (
            lambda: sp.violations(PETS, BAD[:, :2], labels=["cat", "dog"]),
            sp.LabelError,
            "no column for 'animal', which the constraint mentions: add it to labels=",
        ),
        (
            lambda: sp.violations(sp.compile("a <-> x", given=["x"]), [[1]]),
            sp.LabelError,
            "the constraint has inputs (x): pass given=",
        ),
        (
            lambda: sp.violations(7, BAD),
            TypeError,
            "a constraint is a formula, its text, a family, a circuit or a file, not 7",
        ),
    ],
)
def test_bad_arguments(call: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


# log_prob ------------------------------------------------------------------------------------------------------------


def test_raise_names_rows_and_rules() -> None:
    with pytest.raises(sp.errors.ViolationError) as caught:
        pets().log_prob(BAD, on_violation="raise")
    assert str(caught.value) == (
        "y violates the constraint in 2 of 4 rows: row 1: cat -> animal (cat=1, animal=0); "
        "row 3: cat -> animal (cat=1, animal=0)"
    )
    frames = pytest.importorskip("pandas")
    frame = frames.DataFrame(BAD.numpy(), columns=["cat", "animal", "dog"], index=list("wxyz"))
    with pytest.raises(sp.errors.ViolationError, match=r"2 of 4 rows: row x: .*; row z: "):
        pets().log_prob(frame, on_violation="raise")
    with pytest.raises(sp.errors.ViolationError, match=r"5 of 5 rows.*; and 2 more"):
        sp.constrain(torch.zeros(5, 3), PETS).log_prob(BAD[1].expand(5, 3), on_violation="raise")
    with pytest.raises(sp.errors.ViolationError, match="it contradicts the evidence"):
        pets().condition({"cat": 0}).log_prob(BAD[:1].expand(4, 3), on_violation="raise")
    with pytest.raises(sp.errors.ViolationError, match=r"in 1 of 1 rows: cat -> animal"):
        sp.constrain(torch.zeros(3), PETS).log_prob(BAD[1], on_violation="raise")
    with pytest.raises(sp.errors.ViolationError, match=r"row \(1, 0\): cat -> animal"):
        sp.constrain(torch.zeros(2, 1, 3), PETS).log_prob(BAD[[0, 1], None], on_violation="raise")
    good = BAD[[0, 2]]
    p = sp.constrain(torch.zeros(2, 3), PETS)
    assert torch.equal(p.log_prob(good, on_violation="raise"), p.log_prob(good))
    layer = sp.SPL(2, sp.compile("a <-> x", given=["x"]))
    with pytest.raises(sp.errors.ViolationError, match=r"row 1: a <-> x \(a=1, x=0\)"):
        layer(torch.zeros(2, 2), given=torch.tensor([[1], [0]])).log_prob(torch.ones(2, 1), on_violation="raise")


def test_ignored_rows_have_no_weight() -> None:
    logits = torch.tensor([0.3, -0.5, 0.7]).repeat(4, 1).requires_grad_()
    value = sp.constrain(logits, PETS).log_prob(BAD, on_violation="ignore")
    assert value[[1, 3]].tolist() == [0, 0]
    assert torch.equal(value[[0, 2]], pets().log_prob(BAD)[[0, 2]])
    value.sum().backward()
    assert logits.grad is not None
    assert (logits.grad[[1, 3]] == 0).all()
    assert (logits.grad[[0, 2]] != 0).any()


def test_unknown_choice() -> None:
    with pytest.raises(ValueError, match="on_violation must be one of 'raise', 'ignore', 'project', not 'drop'"):
        pets().log_prob(BAD, on_violation="drop")


@pytest.mark.parametrize("case", spread(SMALL, 33, 1), ids=lambda case: case.name)
def test_projection_is_nearest_and_most_probable(case: zoo.Case) -> None:
    i = SMALL.index(case)
    layer = SOME_LAYERS[i % len(SOME_LAYERS)]
    dtype = torch.float32 if i % 5 == 0 else torch.float64
    batch = worlds.BATCHES[i % len(worlds.BATCHES)]
    w = world(Setting(case, layer, dtype, batch, scale=2.0))
    states = oracle.all_states(w.labels, dtype)
    y = states.reshape(-1, *[1] * len(batch), w.labels).expand(-1, *batch, w.labels)
    moved = w.p.project(y)
    distance = (states[:, None] != states).sum(-1)
    table = w.table.log_probs.reshape(-1, 2**w.labels)
    allowed = w.allowed.reshape(-1, 2**w.labels)
    for row in range(len(table)):
        apart = distance.masked_fill(~allowed[row], 10**6)
        least = apart.amin(1, keepdim=True)
        best = table[row].expand_as(distance).masked_fill(apart > least, -oracle.INF).amax(1)
        index = oracle.state_index(moved.reshape(len(states), -1, w.labels)[:, row])
        assert (apart.gather(1, index[:, None]) == least).all()
        torch.testing.assert_close(table[row][index], best, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(w.p.log_prob(y, on_violation="project"), w.p.log_prob(moved))


def test_projection_at_extreme_logits() -> None:
    logits = torch.tensor([1e4, -1e4, 3.0])
    p = sp.constrain(logits, sp.one_hot(["a", "b", "c"]))
    assert p.project(torch.tensor([0.0, 1.0, 1.0])).tolist() == [0, 0, 1]
    assert p.project(torch.zeros(3)).tolist() == [1, 0, 0]


def test_projection_of_a_large_constraint() -> None:
    rules = sp.constraints.cardinality([f"y{i}" for i in range(60)], exactly=5)
    logits = torch.randn(4, 60)
    y = torch.zeros(4, 60)
    moved = sp.constrain(logits, rules).project(y)
    expected = torch.zeros(4, 60).scatter(1, logits.topk(5).indices, 1.0)
    assert torch.equal(moved, expected)
