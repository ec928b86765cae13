from __future__ import annotations

import itertools
import random
import time

import numpy as np
import pytest
from selection import spread

from semprola.circuit.vtree import VtreeBuilder
from semprola.compiler.budget import Budget
from semprola.compiler.diagram import decision_diagram
from semprola.errors import CompilationBudgetError, UnsatisfiableError


def _from_models(models, count, *, zero_suppressed, order, given=0):
    """A diagram whose states are the sets of models that agree so far, which works for any set of models."""
    names = [f"x{v}" for v in range(count)]

    def step(state, position, value):
        kept = frozenset(model for model in state if model[order[position]] == value)
        return kept or None

    return decision_diagram(
        names[: count - given],
        frozenset(models),
        step,
        bool,
        given=names[count - given :],
        order=order,
        zero_suppressed=zero_suppressed,
    )


@pytest.mark.parametrize(("zero_suppressed", "given"), spread([(True, 0), (True, 2), (False, 2), (False, 0)], 2))
def test_any_set_of_models(zero_suppressed, given):
    chance = random.Random(7)
    for _ in range(150):
        count = chance.randint(max(1, given), 6)
        everything = list(itertools.product([0, 1], repeat=count))
        models = [row for row in everything if chance.random() < chance.choice([0.1, 0.5, 0.9])]
        order = chance.sample(range(count), count)
        if not models:
            continue
        circuit = _from_models(models, count, zero_suppressed=zero_suppressed, order=order, given=given)
        rows = np.array(everything)
        inputs = rows[:, count - given :] if given else None
        result = circuit.satisfied(rows[:, : count - given], inputs)
        np.testing.assert_array_equal(result, [row in models for row in everything])
        assert circuit.model_count() == len(models)
        assert circuit.is_decomposable
        assert circuit.is_deterministic
        assert circuit.is_structured
        assert list(circuit.vtree.order) == order
        _is_lean(circuit)


def _is_lean(circuit):
    """No unused node, no sum or product with one child, no repeated literal, no chain of products."""
    counts = np.diff(circuit.child_start)
    assert not np.any((circuit.kind == 2) & (counts < 2))
    assert not np.any((circuit.kind == 1) & (counts == 1))
    used = np.bincount(circuit.children, minlength=circuit.num_nodes)
    assert np.all(used[:-1] > 0)
    literals = circuit.literal[circuit.literal != 0]
    assert len(set(literals.tolist())) == len(literals)
    parents = np.repeat(np.arange(circuit.num_nodes), counts)
    chained = (circuit.kind[parents] == 1) & (circuit.kind[circuit.children] == 1) & (used[circuit.children] == 1)
    assert not np.any(chained)


def test_no_model():
    with pytest.raises(UnsatisfiableError, match="the constraint has no model"):
        decision_diagram(["a", "b"], 0, lambda *_: 0, lambda _: False)


def test_forced_literals_are_one_product():
    circuit = decision_diagram([f"x{i}" for i in range(500)], 0, lambda s, _, v: s if v else None, lambda _: True)
    assert circuit.num_nodes == 501
    assert circuit.model_count() == 1


def test_true_needs_one_node():
    circuit = decision_diagram(["a", "b"], 0, lambda *_: 0, lambda _: True, zero_suppressed=False)
    assert (circuit.num_nodes, circuit.model_count()) == (1, 4)


def _doubling(state, position, value):
    return 2 * state + value


def test_node_budget_names_the_widest_part():
    with pytest.raises(CompilationBudgetError, match=r"budget of 1,000 nodes.*after label 'x7', number 8 of 30"):
        decision_diagram(
            [f"x{i}" for i in range(30)], 1, _doubling, lambda _: True, budget=Budget(max_nodes=1000).part("doubling")
        )


def test_time_budget_is_kept():
    began = time.monotonic()
    with pytest.raises(CompilationBudgetError, match=r"time budget of 0.3 s"):
        decision_diagram([f"x{i}" for i in range(30)], 1, _doubling, lambda _: True, budget=Budget(timeout=0.3))
    assert time.monotonic() - began < 10


@pytest.mark.parametrize("limits", [{"max_nodes": 0}, {"max_nodes": 1.5}, {"max_nodes": True}, {"timeout": 0}])
def test_invalid_budgets(limits):
    with pytest.raises(ValueError, match=next(iter(limits))):
        Budget(**limits)


def test_progress_is_reported():
    seen = []
    budget = Budget(progress=seen.append).part("counting")
    decision_diagram(["a", "b", "c"], 0, lambda s, _, v: s + v, lambda _: True, budget=budget)
    assert len(seen) >= 3
    assert [told.seconds for told in seen] == sorted(told.seconds for told in seen)
    assert seen[0].phase.startswith("building counting (after label 'a'")


def test_vtree_builder():
    tree = VtreeBuilder(range(5))
    vtree = tree.build(tree.balanced([tree.chain([3, 1]), 0, tree.pair(4, 2)]))
    assert vtree.order.tolist() == [3, 1, 0, 4, 2]
