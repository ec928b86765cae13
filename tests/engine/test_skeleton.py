"""Skeletons and their transforms keep the circuit's value."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import zoo
from engine_cases import NAMES, value

from semprola.engine.skeleton import binarize, expand, group_branches, skeleton


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("explicit", [False, True])
def test_a_filled_skeleton_mentions_every_label_of_every_state(name: str, explicit: bool) -> None:
    circuit = zoo.case(name).circuit
    shape = skeleton(circuit, fill_free=True, fill_suppressed=explicit)
    rows = torch.cartesian_prod(*[torch.tensor([0, 1])] * circuit.num_labels).reshape(-1, circuit.num_labels)
    satisfied = torch.as_tensor(circuit.satisfied(rows))
    for row, holds in zip(rows.tolist(), satisfied.tolist(), strict=True):
        suppressed = circuit.zero_suppressed & (not explicit)
        if any(suppressed):
            continue  # an absent literal stands for zero: the value does not depend on it
        leaf = [0.0 if row[v] == sign else float("-inf") for v in range(circuit.num_labels) for sign in (0, 1)]
        assert value(shape, [0.0] * shape.num_edges, leaf) == pytest.approx(float(holds))


@pytest.mark.parametrize("name", NAMES)
def test_the_number_of_states(name: str) -> None:
    circuit = zoo.case(name).circuit
    shape = skeleton(circuit, fill_free=True, fill_suppressed=True)
    assert value(shape, [0.0] * shape.num_edges, [0.0] * shape.num_leaves) == pytest.approx(circuit.model_count())


@pytest.mark.parametrize("name", NAMES)
def test_binarize(name: str) -> None:
    shape = skeleton(zoo.case(name).circuit, fill_free=True, fill_suppressed=True)
    small = binarize(shape)
    edge = np.repeat(np.arange(small.num_edges), np.diff(small.factor_start))
    assert np.bincount(edge[small.factors >= small.num_leaves], minlength=1).max() <= 2
    leaf = np.random.default_rng(0).normal(size=shape.num_leaves).tolist()
    before, after = (value(s, [0.0] * s.num_edges, leaf) for s in (shape, small))
    assert after == pytest.approx(before)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("units", [2, 3])
def test_units_with_equal_shares_change_nothing(name: str, units: int) -> None:
    shape = binarize(skeleton(zoo.case(name).circuit, fill_free=True, fill_suppressed=True))
    wide = expand(shape, units)
    # an edge of the original has become as many as there are combinations of units below it, for each unit above
    combinations = np.bincount(wide.edge_copied, minlength=shape.num_edges)
    copies = np.bincount(wide.sum_copied, minlength=shape.num_sums)
    owner = np.repeat(np.arange(shape.num_sums), np.diff(shape.edge_start))
    weight = -np.log(combinations / copies[owner])
    leaf = np.random.default_rng(1).normal(size=shape.num_leaves).tolist()
    expected = value(shape, [0.0] * shape.num_edges, leaf)
    assert value(wide, weight[wide.edge_copied].tolist(), leaf) == pytest.approx(expected)


def test_branches_of_an_expanded_skeleton_are_grouped() -> None:
    shape = expand(binarize(skeleton(zoo.case("nested_choice").circuit, fill_free=True, fill_suppressed=True)), 2)
    grouped, is_choice = group_branches(shape)
    leaf = np.random.default_rng(2).normal(size=shape.num_leaves).tolist()
    same = value(shape, [0.0] * shape.num_edges, leaf)
    assert value(grouped, [0.0] * grouped.num_edges, leaf) == pytest.approx(same)
    assert is_choice[: shape.num_sums].all()
    assert not is_choice[shape.num_sums :].any()
