"""Choice of vtrees: cliques, linear orders for long counts, and vtrees of families, which are kept."""

from __future__ import annotations

import pytest

from semprola.circuit import CircuitBuilder, Vtree
from semprola.compiler.vtree_choice import choose_vtree, primal_cliques
from semprola.logic import Bool, Bools, Or, Xor, exactly, parse


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
