"""Vtree choice: orders of small width, bucket trees that hold every clique on one branch."""

from __future__ import annotations

import random
import time

import pytest

from semprola.circuit import CircuitBuilder, Vtree
from semprola.compile.orders import bucket_tree, choose_vtree, elimination_order, primal_cliques
from semprola.logic import Bool, Bools, Or, Xor, exactly, parse


def width(order: list[int], cliques: list[list[int]]) -> int:
    """Most neighbours at an elimination, computed the slow way."""
    near = {v: {u for clique in cliques if v in clique for u in clique} - {v} for v in order}
    widest = 0
    for v in order:
        around = near.pop(v)
        widest = max(widest, len(around))
        for u in around:
            near[u] = (near[u] | around) - {u, v}
    return widest


class TestElimination:
    def test_a_tree_has_width_one(self) -> None:
        rng = random.Random(0)
        cliques = [[v, rng.randrange(v)] for v in range(1, 200)]
        assert width(elimination_order(200, cliques), cliques) == 1

    def test_a_cycle_has_width_two(self) -> None:
        cliques = [[v, (v + 1) % 30] for v in range(30)]
        assert width(elimination_order(30, cliques), cliques) == 2

    def test_a_grid_is_near_its_side(self) -> None:
        side = 6
        cliques = [[side * r + c, side * r + c + 1] for r in range(side) for c in range(side - 1)]
        cliques += [[side * r + c, side * r + c + side] for r in range(side - 1) for c in range(side)]
        assert width(elimination_order(side * side, cliques), cliques) <= side + 1

    @pytest.mark.parametrize("seed", range(20))
    def test_bucket_tree_keeps_cliques_on_a_branch(self, seed: int) -> None:
        rng = random.Random(seed)
        count = rng.randrange(1, 15)
        cliques = [rng.sample(range(count), min(count, rng.randrange(1, 5))) for _ in range(rng.randrange(12))]
        order = elimination_order(count, cliques)
        assert sorted(order) == list(range(count))
        parent = bucket_tree(order, cliques)
        for clique in cliques:
            lowest = min(clique, key=order.index)
            branch = set()
            while lowest >= 0:
                branch.add(lowest)
                lowest = parent[lowest]
            assert set(clique) <= branch

    def test_thousands_of_variables_are_quick(self) -> None:
        rng = random.Random(0)
        cliques = [[v, rng.randrange(max(0, v - 20), v)] for v in range(1, 5000) for _ in range(2)]
        began = time.monotonic()
        bucket_tree(elimination_order(5000, cliques), cliques)
        assert time.monotonic() - began < 10  # well under a second on an idle machine


class TestCliques:
    def test_a_small_formula_is_one_clique(self) -> None:
        assert primal_cliques([parse("a & b | c")]) == [("a", "b", "c")]

    def test_a_long_count_is_a_path(self) -> None:
        names = [f"x{i}" for i in range(100)]
        cliques = primal_cliques([exactly(3, names)])
        assert ("x0", "x1") in cliques
        assert max(map(len, cliques)) == 2

    def test_a_large_disjunction_is_its_parts_on_a_path(self) -> None:
        cliques = primal_cliques([Or(Bool(f"a{i}") & Bool(f"b{i}") for i in range(20))])
        assert ("a3", "b3") in cliques
        assert ("a3", "a4") in cliques


class TestChoice:
    def test_counting_over_many_gets_a_line_in_the_order_written(self) -> None:
        names = [f"x{i}" for i in range(100)]
        for formula in (exactly(50, names), Xor(Bool(name) for name in names)):
            vtree = choose_vtree([formula], names)
            assert vtree.is_right_linear
            assert vtree.order.tolist() == list(range(100))

    @pytest.mark.parametrize("shape", [Vtree.right_linear, Vtree.balanced])
    def test_a_family_keeps_its_vtree(self, shape: object) -> None:
        builder = CircuitBuilder(["p", "q", "r"])
        circuit = builder.build(builder.true(), vtree=shape([2, 0, 1]))  # type: ignore[operator]
        names = ["s", "p", "t", "q", "r"]
        conjuncts = [parse("s -> r"), parse("t -> s & q")]
        vtree = choose_vtree(conjuncts, names, {Bools("z")[0]: circuit})
        family = [names[v] for v in vtree.order.tolist() if names[v] in "pqr"]
        assert family == ["r", "p", "q"]
        assert sorted(vtree.order.tolist()) == list(range(5))
