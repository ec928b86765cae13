"""`compile` agrees with brute force, keeps the labels asked for, and stays within its budget."""

from __future__ import annotations

import itertools
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import semprola as sp
from semprola.circuit import CircuitBuilder
from semprola.compiler import Progress, compile
from semprola.errors import CompilationBudgetError, LabelError, ParseError, UnsatisfiableError
from semprola.logic import FALSE, TRUE, And, Bool, Bools, Formula, Iff, Or, Xor, count, exactly, from_dimacs

NAMES = ("a", "b", "c", "d", "e", "f")


def formulas() -> st.SearchStrategy[Formula]:
    atoms = st.sampled_from([*Bools(list(NAMES)), TRUE, FALSE])

    def grow(parts: st.SearchStrategy[Formula]) -> st.SearchStrategy[Formula]:
        several = st.lists(parts, min_size=2, max_size=4)
        return st.one_of(
            parts.map(lambda x: ~x),
            several.map(And),
            several.map(Or),
            several.map(Xor),
            st.tuples(parts, parts).map(lambda pair: pair[0] >> pair[1]),
            st.tuples(parts, parts).map(lambda pair: Iff(*pair)),
            st.tuples(several, st.integers(0, 4), st.integers(0, 4)).map(
                lambda item: count(min(item[1:]), max(item[1:]), item[0])
            ),
        )

    return st.recursive(atoms, grow, max_leaves=16)


class TestAgainstBruteForce:
    @given(
        st.lists(formulas(), min_size=1, max_size=3),
        st.permutations(NAMES),
        st.integers(0, len(NAMES) - 1),
        st.booleans(),
    )
    def test_random_formulas(self, parts: list[Formula], names: list[str], inputs: int, cache: bool) -> None:
        formula = And(parts)
        rows = np.array(list(itertools.product([0, 1], repeat=len(NAMES))))
        truth = formula.evaluate(rows, labels=names)
        try:
            circuit = compile(formula, labels=names[inputs:], given=names[:inputs], cache=cache)
        except UnsatisfiableError:
            assert not truth.any()
            return
        assert circuit.labels == tuple(names[inputs:])
        assert circuit.given == tuple(names[:inputs])
        held = circuit.satisfied(rows[:, inputs:], rows[:, :inputs] if inputs else None)
        np.testing.assert_array_equal(held, truth)
        assert circuit.model_count() == truth.sum()
        assert circuit.is_decomposable
        assert circuit.is_deterministic
        assert circuit.is_structured


@pytest.mark.shared
class TestPublishedCounts:
    def test_uniform_random_3_sat(self, shared_data: Path) -> None:
        counts = json.loads((shared_data / "oracles" / "uf20_counts.json").read_text())
        for name, models in list(counts.items())[:40]:
            assert compile(from_dimacs(shared_data / "oracles" / "uf20" / name)).model_count() == models


class TestLabels:
    def test_order_of_first_appearance_without_the_given(self) -> None:
        circuit = compile("c -> a & b", given=["a", "unused"])
        assert circuit.labels == ("c", "b")
        assert circuit.given == ("a", "unused")

    def test_labels_that_simplification_drops_are_kept_free(self) -> None:
        circuit = compile("a & (b | ~b)")
        assert circuit.labels == ("a", "b")
        assert circuit.model_count() == 2

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"labels": ["a"]}, r"mentions 'b' \(and 1 more\), which is not listed: add it to labels="),
            ({"labels": ["a", "b", "c", "a"]}, "labels: 'a' is listed twice"),
            ({"labels": ["a", "b", "c"], "given": ["c"]}, "'c' is both a label and given"),
            ({"labels": ["a", "b", 3]}, "labels: a name must be a non-empty string, not 3"),
            ({"labels": "abc"}, "labels: expected a list of names, not 'abc'"),
            ({"given": 5}, "given: expected a list of names, not 5"),
        ],
    )
    def test_errors(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(LabelError, match=message) as caught:
            compile("a & b | c", **arguments)
        assert "\n" not in str(caught.value)

    def test_a_circuit_is_put_under_other_labels(self) -> None:
        circuit = compile("a -> b", given=["a"])
        wider = compile(circuit, labels=["z", "b"])
        assert wider.given == ("a",)
        assert wider.model_count() == 6
        as_labels = compile(circuit, labels=["b", "a"])
        assert as_labels.given == ()
        assert as_labels.satisfied([[0, 0], [0, 1], [1, 0], [1, 1]]).tolist() == [True, False, True, True]
        with pytest.raises(LabelError, match="mentions 'b'"):
            compile(circuit, labels=["a"])

    def test_a_zero_suppressed_circuit(self) -> None:
        builder = CircuitBuilder(["a", "b"])
        circuit = builder.build(builder.literal(0, True), zero_suppressed=[True, True])
        assert compile(circuit, labels=["c", "b", "a"]).enumerate().tolist() == [[0, 0, 1], [1, 0, 1]]
        assert compile(circuit, given=["b"]).satisfied([[1], [1]], [[0], [1]]).tolist() == [True, False]


class TestTrivial:
    def test_true(self) -> None:
        assert compile(TRUE, labels=["a", "b"]).model_count() == 4
        assert compile(TRUE).model_count() == 1
        assert compile("a | ~a").model_count() == 2

    @pytest.mark.parametrize("text", ["false", "a & ~a", "a & (a -> b) & ~b", "exactly(3, a, b)"])
    def test_false(self, text: str) -> None:
        with pytest.raises(UnsatisfiableError, match="no model"):
            compile(text)

    def test_single_label_and_single_model(self) -> None:
        assert compile("~a").enumerate().tolist() == [[0]]
        assert compile("a & ~b & c").enumerate().tolist() == [[1, 0, 1]]
        assert compile("(a | b) & ~b & (a <-> c)").enumerate().tolist() == [[1, 0, 1]]

    def test_info(self) -> None:
        info = compile("a | b").info
        assert info["backend"] == "table"
        assert info["seconds"] > 0
        assert info["nodes"] == compile("a | b").num_nodes
        assert compile("a | b", backend="sdd").info["reason"] == "chosen by the caller"

    def test_wrong_arguments(self) -> None:
        with pytest.raises(ValueError, match="unknown backend 'd9': choose one of 'auto', 'sdd'"):
            compile("a", backend="d9")
        with pytest.raises(TypeError, match="a formula, its text, a family, a circuit or a file, not"):
            compile(3)  # type: ignore[arg-type]
        with pytest.raises(ParseError):
            compile("a &")


class TestBudget:
    def test_time(self) -> None:
        began = time.monotonic()
        with pytest.raises(
            CompilationBudgetError, match=r"ran out of its time budget of 0.5 s .*: split .*sp.split.*raise timeout="
        ):
            compile(_hard(), timeout=0.5)
        assert time.monotonic() - began < 5

    def test_nodes(self) -> None:
        with pytest.raises(CompilationBudgetError, match=r"budget of 1,000 nodes .*: split .*raise max_nodes="):
            compile(_hard(), max_nodes=1000, timeout=60)
        with pytest.raises(CompilationBudgetError, match="more than max_nodes=5"):
            compile("a ^ b ^ c", max_nodes=5)

    def test_nodes_of_a_remembered_circuit(self) -> None:
        compile("a ^ b ^ c ^ d")
        with pytest.raises(CompilationBudgetError):
            compile("a ^ b ^ c ^ d", max_nodes=5)

    def test_memory(self) -> None:
        pytest.importorskip("resource")
        with pytest.raises(
            CompilationBudgetError, match=r"memory budget of 50,000,000 bytes .*: split .*raise memory="
        ):
            compile(_hard(), memory="50MB", timeout=60)

    def test_a_sufficient_budget_changes_nothing(self) -> None:
        circuit = compile(exactly(5, [f"x{i}" for i in range(20)]), timeout=60, max_nodes=10_000, memory="1GiB")
        assert circuit.model_count() == math.comb(20, 5)

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            ({"timeout": 0}, "timeout must be a number of seconds above 0, not 0"),
            ({"timeout": float("nan")}, "timeout must be"),
            ({"timeout": "5"}, "timeout must be"),
            ({"max_nodes": 2.5}, "max_nodes must be a whole number"),
            ({"max_nodes": True}, "max_nodes must be"),
            ({"memory": "lots"}, "memory must be a number of bytes or a text such as '2GB'"),
            ({"memory": -1}, "memory must be"),
            ({"memory": "0GB"}, "memory must be"),
            ({"progress": 3}, "progress must be None, True or a function"),
        ],
    )
    def test_invalid_budgets(self, arguments: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            compile("a", **arguments)

    def test_huge_budgets(self) -> None:
        assert compile("p | q", cache=False, timeout=1e300, max_nodes=10**30, memory="9999999999TB").model_count() == 3
        assert compile("p | q", cache=False, timeout=float("inf")).model_count() == 3

    def test_time_spent_on_the_order_counts(self) -> None:
        rng = random.Random(0)
        clauses = [[Bool(f"v{v}") for v in rng.sample(range(1500), 3)] for _ in range(6000)]
        began = time.monotonic()
        with pytest.raises(CompilationBudgetError, match="time budget"):
            compile(And(Or(clause) for clause in clauses), timeout=1)
        assert time.monotonic() - began < 5

    def test_progress(self) -> None:
        class SeenEnough(Exception):
            pass

        seen: list[Progress] = []

        def watch(progress: Progress) -> None:
            seen.append(progress)
            if progress.nodes > 0:
                raise SeenEnough

        with pytest.raises(SeenEnough):
            compile(_hard(), timeout=60, progress=watch)
        assert seen[-1].phase.startswith("compiling ")
        assert [p.seconds for p in seen] == sorted(p.seconds for p in seen)


class TestCache:
    def test_the_same_circuit_again(self) -> None:
        assert compile("m | n | o") is compile("m | n | o")
        assert compile("m | n | o") is not compile("m | n | o", cache=False)
        assert compile("m | n | o") is not compile("m | n | o", labels=["o", "n", "m"])


class TestLarge:
    def test_a_deep_chain(self) -> None:
        formula = Bool("y0")
        for i in range(6_000):
            atom = Bool(f"y{i * 7 % 50}")
            formula = formula & atom if i % 3 == 0 else formula | ~atom
        assert compile(formula).is_decomposable

    def test_many_facts(self) -> None:
        formula = TRUE
        for i in range(20_000):
            formula = formula & Bool(f"y{i}")
        assert compile(formula).num_edges == 20_000


def _hard() -> Formula:
    rng = random.Random(0)
    clauses = [[Bool(f"v{v}") ^ (rng.random() < 0.5) for v in rng.sample(range(150), 3)] for _ in range(450)]
    return And(Or(clause) for clause in clauses)


class TestFamiliesWithFacts:
    """A family with some labels fixed needs no compiler: its own circuit is conditioned."""

    def test_agrees_with_the_definition(self) -> None:
        tree = sp.constraints.hierarchy([("a", "b"), ("c", "b"), ("d", "c")])
        rows = np.array(list(itertools.product([0, 1], repeat=5)))
        for facts in (["a"], ["~b"], ["a", "~c"], ["d", "e"], ["~e"]):
            formula = And([tree, *(sp.parse(fact) for fact in facts)])
            circuit = compile(formula, labels=list("abcde"), cache=False)
            assert circuit.info["backend"] == "direct"
            np.testing.assert_array_equal(circuit.satisfied(rows), formula.evaluate(rows, labels=list("abcde")))

    def test_counting(self) -> None:
        circuit = compile(exactly(3, [*map(str, range(20))]) & ~Bool("3") & Bool("5"), cache=False)
        assert (circuit.model_count(), circuit.info["backend"]) == (153, "direct")

    def test_inputs(self) -> None:
        paths = sp.constraints.simple_paths(nx.grid_2d_graph(2, 3), endpoints="given")
        for fact in (Bool(paths.given[0]), ~Bool(paths.given[2]) & Bool(paths.labels[0])):
            circuit = compile(paths & fact, cache=False)
            assert circuit.given == paths.given
            assert circuit.model_count() == compile(paths & fact, backend="sdd", cache=False).model_count()

    def test_no_model(self) -> None:
        tree = sp.constraints.hierarchy([("a", "b")])
        with pytest.raises(UnsatisfiableError):
            compile(tree & Bool("a") & ~Bool("b"), cache=False)
        with pytest.raises(UnsatisfiableError):
            compile((tree & Bool("a")) & (~Bool("a") & tree), cache=False)


class TestInputsOfFamilies:
    def test_a_family_says_which_of_its_variables_are_inputs(self):
        paths = sp.constraints.simple_paths(nx.grid_2d_graph(2, 2), endpoints="given")
        circuit = sp.compile(paths)
        assert len(circuit.labels) == 4
        assert circuit.given == paths.given
        assert sp.compile(paths & sp.Bool("extra")).given == paths.given

    def test_the_caller_can_make_them_labels(self):
        paths = sp.constraints.simple_paths(nx.grid_2d_graph(2, 2), endpoints="given")
        assert sp.compile(paths, labels=paths.labels).given == ()
