"""Vtrees: shape, order, intervals, restriction."""

from __future__ import annotations

import pickle
import random

import numpy as np
import pytest

from semprola.circuit import Vtree


def random_vtree(rng: random.Random, count: int) -> Vtree:
    left, right, variable = [-1] * count, [-1] * count, rng.sample(range(count), count)
    tops = list(range(count))
    while len(tops) > 1:
        a = tops.pop(rng.randrange(len(tops)))
        b = tops.pop(rng.randrange(len(tops)))
        left.append(a)
        right.append(b)
        variable.append(-1)
        tops.append(len(variable) - 1)
    return Vtree(left, right, variable)


def below(tree: Vtree, node: int) -> list[int]:
    """The variables below a node from left to right."""
    if tree.variable[node] >= 0:
        return [int(tree.variable[node])]
    return below(tree, int(tree.left[node])) + below(tree, int(tree.right[node]))


def test_orders() -> None:
    order = [3, 1, 4, 0, 2]
    assert Vtree.right_linear(order).order.tolist() == order
    assert Vtree.right_linear(order).is_right_linear
    assert Vtree.balanced(order).order.tolist() == order
    assert not Vtree.balanced(order).is_right_linear
    assert int(Vtree.balanced(range(64)).depth.max()) == 6
    assert repr(Vtree.right_linear([0, 1])) == "Vtree(2 variables, right-linear)"
    assert Vtree.right_linear([0]).num_variables == 1


def test_intervals_and_covering_nodes() -> None:
    rng = random.Random(0)
    for _ in range(30):
        tree = random_vtree(rng, rng.randint(1, 12))
        variables = [below(tree, node) for node in range(len(tree))]
        assert tree.order.tolist() == variables[tree.root]
        for node, under in enumerate(variables):
            assert tree.order[tree.first[node] : tree.last[node] + 1].tolist() == under
        assert tree.order[tree.position].tolist() == [tree.order[p] for p in tree.position]
        assert [int(tree.variable[leaf]) for leaf in tree.leaf] == tree.order.tolist()
        first = np.array([rng.randrange(tree.num_variables) for _ in range(20)], np.int32)
        last = np.array([rng.randrange(f, tree.num_variables) for f in first], np.int32)
        for f, e, node in zip(first, last, tree.lowest_covering(first, last), strict=True):
            covering = [n for n in range(len(tree)) if tree.first[n] <= f and e <= tree.last[n]]
            assert node == min(covering, key=lambda n: len(variables[n]))


def test_restriction() -> None:
    rng = random.Random(1)
    for _ in range(30):
        tree = random_vtree(rng, rng.randint(1, 10))
        kept = sorted(rng.sample(range(tree.num_variables), rng.randint(0, tree.num_variables)))
        rename = {v: i for i, v in enumerate(kept)}
        restricted = tree.restrict(rename)
        if not kept:
            assert restricted is None
        else:
            assert restricted is not None
            assert restricted.order.tolist() == [rename[v] for v in tree.order.tolist() if v in rename]


def test_from_forest() -> None:
    tree = Vtree.from_forest([-1, 0, 0, -1, 1])
    assert sorted(tree.order.tolist()) == [0, 1, 2, 3, 4]
    # 0 stands above the subtrees of 1 and 2; 1 above 4
    node = next(n for n in range(len(tree)) if tree.variable[n] < 0 and tree.variable[tree.left[n]] == 0)
    assert sorted(below(tree, int(tree.right[node]))) == [1, 2, 4]
    deep = Vtree.from_forest([-1, *range(4999)])
    assert deep.is_right_linear
    assert deep.order.tolist() == list(range(5000))
    with pytest.raises(ValueError, match="vtree"):
        Vtree.from_forest([])
    for parent in ([1, 0], [0], [-1, 2, 1]):
        with pytest.raises(ValueError, match="cycle"):
            Vtree.from_forest(parent)


@pytest.mark.parametrize(
    ("left", "right", "variable"),
    [
        ([], [], []),
        ([-1, -1], [-1, -1], [0, 1]),
        ([-1, -1, 0], [-1, -1, 0], [0, 1, -1]),
        ([-1, -1, 0], [-1, -1, 2], [0, 1, -1]),
        ([-1, -1, 0], [-1, -1, 1], [0, 0, -1]),
        ([-1, -1, 0], [-1, -1, 1], [0, 2, -1]),
        ([-1, -1, 0], [-1, -1], [0, 1, -1]),
        ([1, -1, -1], [2, -1, -1], [-1, 0, 1]),
        ([-1, -1, -1], [-1, -1, -1], [0, 1, -1]),
    ],
)
def test_not_a_vtree(left: list[int], right: list[int], variable: list[int]) -> None:
    with pytest.raises(ValueError, match="vtree"):
        Vtree(left, right, variable)


def test_identity_and_pickles() -> None:
    one = Vtree.balanced([0, 1, 2])
    assert one == Vtree.balanced([0, 1, 2])
    assert hash(one) == hash(Vtree.balanced([0, 1, 2]))
    assert one != Vtree.balanced([1, 0, 2])
    assert one != "vtree"
    assert pickle.loads(pickle.dumps(one)) == one


def test_the_caller_keeps_its_arrays() -> None:
    variable = np.array([0, 1, -1], np.int32)
    tree = Vtree([-1, -1, 0], [-1, -1, 1], variable)
    variable[0] = 7
    assert tree.variable.tolist() == [0, 1, -1]
