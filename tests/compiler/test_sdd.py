"""The PySDD back end on what it must do well: hierarchies, counting, parity, families combined with rules."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Hashable, Mapping

import numpy as np
import pytest

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.compiler import compile
from semprola.errors import UnsatisfiableError
from semprola.logic import And, Bool, Cnf, Formula, Iff, Implies, Leaf, Or, Xor, at_most, exactly, one_hot


class AtMostOne(Leaf):
    """A family for the tests: at most one of its labels, as a zero-suppressed circuit."""

    def __init__(self, *names: str, suppressed: bool = True, solvable: bool = True) -> None:
        self.names, self.suppressed, self.solvable = names, suppressed, solvable

    def evaluate_columns(self, columns: Mapping[str, np.ndarray], rows: int) -> np.ndarray:
        total = sum((columns[name].astype(int) for name in self.names), np.zeros(rows, int))
        return (total <= 1) & self.solvable

    def to_circuit(self) -> Circuit:
        if not self.solvable:
            raise UnsatisfiableError("no model")
        builder = CircuitBuilder(self.names)
        count = len(self.names)
        none = builder.true() if self.suppressed else builder.product(builder.literal(v, False) for v in range(count))
        cases = [none]
        for v in range(count):
            others = [] if self.suppressed else [builder.literal(u, False) for u in range(count) if u != v]
            cases.append(builder.product([builder.literal(v, True), *others]))
        return builder.build(
            builder.sum(cases), zero_suppressed=[self.suppressed] * count, vtree=Vtree.right_linear(range(count))
        )

    def describe(self) -> str:
        return f"at_most_one({', '.join(self.names)})"

    def key(self) -> Hashable:
        return (self.names, self.suppressed, self.solvable)


def agrees(formula: Formula, circuit: Circuit) -> bool:
    rows = np.array(list(itertools.product([0, 1], repeat=circuit.num_variables)))
    truth = formula.evaluate(rows, labels=circuit.variables)
    split = circuit.num_labels
    given = rows[:, split:] if circuit.given else None
    return bool(np.array_equal(circuit.satisfied(rows[:, :split], given), truth))


class TestStructure:
    def test_tree_hierarchy_is_linear(self) -> None:
        rng = random.Random(1)
        parent = {i: rng.randrange(i) for i in range(1, 500)}
        circuit = compile(And(Implies(Bool(f"x{i}"), Bool(f"x{above}")) for i, above in parent.items()))
        models = dict.fromkeys(range(500), 1)
        for i in range(499, 0, -1):
            models[parent[i]] *= models[i] + 1
        assert circuit.model_count() == models[0] + 1
        assert circuit.num_nodes < 2500
        assert circuit.is_structured

    def test_counting(self) -> None:
        names = [f"x{i}" for i in range(200)]
        for backend in ("sdd", "auto"):
            assert compile(exactly(100, names), backend=backend).model_count() == math.comb(200, 100)
            assert compile(at_most(3, names), backend=backend).model_count() == sum(math.comb(200, k) for k in range(4))
            assert compile(~at_most(198, names), backend=backend).model_count() == 201

    def test_parity(self) -> None:
        circuit = compile(Xor(Bool(f"x{i}") for i in range(300)))
        assert circuit.model_count() == 2**299
        assert circuit.num_nodes < 3000

    def test_permutations(self) -> None:
        rows = [one_hot([f"x{i}{j}" for j in range(5)]) for i in range(5)]
        columns = [one_hot([f"x{i}{j}" for i in range(5)]) for j in range(5)]
        assert compile(And(rows + columns)).model_count() == 120

    def test_counted_formulas_and_repeated_items(self) -> None:
        a, b, c = (Bool(name) for name in "abc")
        formula = exactly(2, [a, a, a & b, c, ~b])
        assert agrees(formula, compile(formula))

    def test_many_independent_parts(self) -> None:
        circuit = compile(And(Bool(f"a{i}") | Bool(f"b{i}") for i in range(300)))
        assert circuit.model_count() == 3**300
        assert circuit.is_structured

    def test_a_wide_disjunction_of_conjunctions(self) -> None:
        formula = Or(Bool(f"a{i}") & Bool(f"b{i}") for i in range(40))
        assert compile(formula).model_count() == 4**40 - 3**40


class TestCnf:
    def test_all_declared_variables_are_labels(self) -> None:
        circuit = compile(Cnf(5, [[1, -2], [3]]))
        assert circuit.labels == ("1", "2", "3", "4", "5")
        assert circuit.model_count() == 12

    def test_empty_clause_and_no_clause(self) -> None:
        with pytest.raises(UnsatisfiableError):
            compile(Cnf(2, [[]]))
        assert compile(Cnf(2, [])).model_count() == 4

    def test_inside_a_formula(self) -> None:
        formula = ~Cnf(3, [[1, 2], [-2, 3]]) | Bool("x") & Bool("1")
        assert agrees(formula, compile(formula))


class TestFamilies:
    @pytest.mark.parametrize("suppressed", [True, False])
    def test_alone_it_is_its_own_circuit(self, suppressed: bool) -> None:
        leaf = AtMostOne("a", "b", "c", suppressed=suppressed)
        circuit = compile(leaf, labels=["c", "z", "b", "a"])
        assert circuit.info["backend"] == "direct"
        assert circuit.model_count() == 8
        assert agrees(leaf, circuit)

    def test_disjoint_families_are_a_product(self) -> None:
        formula = AtMostOne("a", "b") & AtMostOne("c", "d", suppressed=False) & ~Bool("e") & (Bool("f") | Bool("g"))
        circuit = compile(formula)
        assert agrees(formula, circuit)
        assert circuit.zero_suppressed.tolist()[:5] == [True, True, False, False, False]
        assert circuit.is_decomposable
        assert circuit.is_structured

    @pytest.mark.parametrize("suppressed", [True, False])
    @pytest.mark.parametrize("solvable", [True, False])
    def test_combined_over_shared_labels(self, suppressed: bool, solvable: bool) -> None:
        leaf = AtMostOne("a", "b", "c", suppressed=suppressed, solvable=solvable)
        other = AtMostOne("c", "d", "e")
        a, d = Bool("a"), Bool("d")
        for formula in (~leaf, leaf | d, ~leaf & (a | d), Iff(leaf, other), leaf ^ a, other & (leaf | ~a)):
            circuit = compile(formula)
            assert agrees(formula, circuit)
            assert circuit.is_deterministic
            assert circuit.is_structured

    def test_unsatisfiable(self) -> None:
        with pytest.raises(UnsatisfiableError, match=r"at_most_one\(a, b\) cannot hold"):
            compile(AtMostOne("a", "b", solvable=False))

    def test_given_variables_are_never_suppressed(self) -> None:
        leaf = AtMostOne("a", "b", "c")
        circuit = compile(leaf, given=["b"])
        assert circuit.labels == ("a", "c")
        assert agrees(leaf, circuit)
