"""Every back end agrees with brute force, and `auto` chooses the right one and says why."""

from __future__ import annotations

import dataclasses
import itertools
import random
import subprocess
import sys
from typing import Any

import networkx as nx
import numpy as np
import pytest
from selection import spread
from zoo import _nested, names, random_cnf, random_dnf

import semprola as sp
from semprola.compiler import portfolio
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.budget import Budget
from semprola.compiler.restructure import restructure
from semprola.logic import And, Bool, Cnf, Or, exactly, one_hot

BACKENDS = [*portfolio.BACKENDS, "auto"]
native = pytest.mark.skipif(native_library() is None, reason="needs the native module")


def check(formula: Any, backend: str, labels: list[str]) -> None:
    rows = np.array(list(itertools.product([0, 1], repeat=len(labels))))
    truth = formula.evaluate(rows, labels=labels)
    try:
        circuit = sp.compile(formula, labels=labels, backend=backend, cache=False)
    except sp.UnsatisfiableError:
        assert not truth.any()
        return
    np.testing.assert_array_equal(circuit.satisfied(rows), truth)
    assert circuit.model_count() == truth.sum()
    assert circuit.is_decomposable
    assert circuit.is_deterministic
    if backend != "auto":
        assert circuit.info["backend"] in (backend, "direct")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    try:
        sp.compile("a | b", backend=name, cache=False)
    except sp.SemprolaError as error:
        if "pip install" not in str(error):
            raise
        pytest.skip(str(error))
    return name


class TestAgainstBruteForce:
    def test_random_formulas(self, backend: str) -> None:
        rng = random.Random(3)
        for _ in range(60):
            labels = names(rng.randint(3, 7))
            check(And([_nested(rng, labels, rng.randint(1, 3)) for _ in range(rng.randint(1, 4))]), backend, labels)

    def test_clauses_and_terms(self, backend: str) -> None:
        for seed in range(4):
            check(random_cnf(seed, 9, 25), backend, names(9))
            check(random_dnf(seed, 8, 9), backend, names(8))

    def test_several_independent_parts(self, backend: str) -> None:
        formula = And([Bool("a") | Bool("b"), Bool("c") ^ Bool("d"), ~(Bool("e") & Bool("f")), Bool("g")])
        check(formula, backend, names(8))

    def test_counting_and_parity(self, backend: str) -> None:
        labels = names(11)
        atoms = [Bool(name) for name in labels]
        check(exactly(4, atoms) & sp.Xor(atoms[2:9]), backend, labels)
        check(~sp.at_least(3, [atoms[0] & atoms[1], *atoms[1:8]]), backend, labels)

    def test_families_with_rules(self, backend: str) -> None:
        few = sp.constraints.cardinality(names(6), at_least=2, at_most=3)
        tree = sp.constraints.hierarchy([("a", "b"), ("c", "b"), ("d", "c")])
        a, f = Bool("a"), Bool("f")
        for formula in (few & tree, few | ~tree, ~few & (a | f), sp.Iff(few, tree) & (a >> f)):
            check(formula, backend, names(6))

    def test_a_file_inside_a_formula(self, backend: str) -> None:
        formula = ~Cnf(3, [[1, 2], [-2, 3]]) | Bool("x") & Bool("1")
        check(formula, backend, ["1", "2", "3", "x"])


class TestChoice:
    def test_small_formulas_are_structured(self) -> None:
        circuit = sp.compile(random_cnf(0, 14, 36), cache=False)
        assert circuit.info["backend"] in ("automata", "sdd")
        assert "14 variables, few" in circuit.info["reason"]
        assert circuit.is_structured

    def test_narrow_ones_too(self) -> None:
        steps = [Bool(f"x{i}") >> (Bool(f"x{i + 1}") | Bool(f"x{i + 2}")) for i in range(300)]
        circuit = sp.compile(And(steps), cache=False)
        assert circuit.info["backend"] in ("automata", "sdd")
        assert circuit.is_structured

    @native
    def test_wide_ones_go_top_down(self) -> None:
        circuit = sp.compile(wide(), cache=False)
        assert circuit.info["backend"] == "topdown"
        assert "wider than 12" in circuit.info["reason"]
        assert circuit.vtree is None
        assert circuit.is_deterministic
        assert circuit.model_count() == sp.compile(wide(), backend="sdd", cache=False).model_count()

    @native
    def test_parts_are_chosen_for_one_by_one(self) -> None:
        circuit = sp.compile(wide() & (Bool("p") | Bool("q")), cache=False)
        assert circuit.info["backend"] == "automata+topdown"
        assert circuit.model_count() == 3 * sp.compile(wide(), cache=False).model_count()

    @native
    def test_a_file_of_clauses(self) -> None:
        rng = random.Random(1)
        cnf = Cnf(60, [[v * rng.choice((1, -1)) for v in rng.sample(range(1, 61), 3)] for _ in range(200)])
        circuit = sp.compile(cnf, cache=False)
        assert circuit.info["backend"] == "topdown"
        assert circuit.labels == cnf.labels
        assert cnf.evaluate(circuit.enumerate(50)).all()

    @native
    @pytest.mark.parametrize("stage", [20, 60, 2000])
    def test_stages_end_in_a_circuit(self, stage: int, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(portfolio, "TUNING", dataclasses.replace(portfolio.TUNING, stages=(stage, 10 * stage)))
        check(random_cnf(0, 14, 30), "auto", names(14))
        check(random_dnf(0, 13, 9), "auto", names(13))

    def test_long_counts(self) -> None:
        labels = [f"x{i}" for i in range(120)]
        circuit = sp.compile(exactly(30, labels) & (Bool("x0") | Bool("x119")), cache=False)
        assert circuit.info["backend"] == "automata"

    def test_without_the_native_module(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(portfolio, "native_library", lambda: None)
        queens = And([one_hot([f"q{i}{j}" for j in range(6)]) for i in range(6)])
        rest = [~(Bool(f"q{i}{j}") & Bool(f"q{a}{j}")) for j in range(6) for i in range(6) for a in range(i)]
        circuit = sp.compile(And([queens, *rest]), cache=False)
        assert circuit.model_count() == 720
        assert circuit.info["backend"] in ("automata", "sdd")

    def test_a_structured_q_restructures(self) -> None:
        circuit = sp.compile(random_cnf(2, 8, 16), backend="topdown", cache=False)
        assert not circuit.is_structured
        layer = sp.ProductSPL(3, circuit, q="hmm", units=2)
        import torch

        assert torch.isfinite(layer(torch.zeros(2, 3)).log_prob(torch.tensor(circuit.enumerate()[:2])).sum())

    def test_a_rebuilt_circuit_follows_its_rules(self) -> None:
        """In the order in which its literals appear, this one would have more than a million nodes."""
        edges = [(f"x{i}", f"x{i // 3}") for i in range(1, 100)] + [(f"x{i}", f"x{i % 17}") for i in range(60, 70)]
        circuit = sp.compile(sp.constraints.hierarchy(edges, edges="child-parent"), cache=False)
        assert not circuit.is_structured
        rebuilt = restructure(circuit, linear=False, budget=Budget(max_nodes=20_000))
        assert rebuilt.is_structured
        assert rebuilt.model_count() == circuit.model_count()

    @pytest.mark.parametrize("name", ["d9", "d4", "d4:", "cudd:/x", ""])
    def test_unknown(self, name: str) -> None:
        with pytest.raises(ValueError, match="unknown backend"):
            sp.compile("a", backend=name)

    @pytest.mark.parametrize("name", ["line", "bdd", "zdd"])
    def test_old_names(self, name: str) -> None:
        with pytest.warns(DeprecationWarning, match=f"backend='{name}' is now backend='automata'"):
            circuit = sp.compile("a | b", backend=name, cache=False)
        assert circuit.info["backend"] == "automata"


class TestBudgets:
    @pytest.mark.parametrize(
        ("backend", "limits"),
        spread(itertools.product(BACKENDS, [{"timeout": 0.5}, {"max_nodes": 2000}, {"memory": "40MB"}]), 8),
        indirect=["backend"],
    )
    def test_every_back_end(self, backend: str, limits: dict[str, Any]) -> None:
        budget = Budget(**limits)
        rng = random.Random(0)
        clauses = [Or([Bool(f"v{v}") ^ (rng.random() < 0.5) for v in rng.sample(range(140), 3)]) for _ in range(350)]
        with pytest.raises(sp.CompilationBudgetError, match=next(iter(limits)).replace("max_", "")[:4]):
            sp.compile(
                And(clauses),
                backend=backend,
                cache=False,
                **limits,
                **({} if "timeout" in limits else {"timeout": 120}),
            )
        assert budget.seconds < (10 if "timeout" in limits else 120)

    @pytest.mark.parametrize("family", spread(["paths", "permutation", "linear", "cardinality", "count"], 3))
    def test_every_family(self, family: str) -> None:
        rng = random.Random(0)
        labels = [f"x{i}" for i in range(3000)]
        corners = {"source": (0, 0), "target": (11, 11)}
        constraint: Any = {
            "paths": lambda: sp.constraints.simple_paths(nx.grid_2d_graph(12, 12), **corners),
            "permutation": lambda: sp.constraints.permutation(20),
            "linear": lambda: sp.constraints.linear({x: rng.randint(1, 10**9) for x in labels[:80]}, "<=", 2 * 10**10),
            "cardinality": lambda: sp.constraints.cardinality(labels, at_least=1000, at_most=2000),
            "count": lambda: exactly(1500, labels),
        }[family]()
        budget = Budget()
        with pytest.raises(sp.CompilationBudgetError, match=r"time budget of 0\.5"):
            sp.compile(constraint, timeout=0.5, cache=False)
        assert budget.seconds < 10
        with pytest.raises(sp.CompilationBudgetError, match="nodes"):
            sp.compile(constraint, max_nodes=2000, cache=False)
        with pytest.raises(sp.CompilationBudgetError, match="memory"):
            sp.compile(constraint, memory="4MB", cache=False, timeout=30)


def wide() -> Any:
    rng = random.Random(7)
    return And([Or([Bool(f"v{v}") ^ (rng.random() < 0.5) for v in rng.sample(range(40), 3)]) for _ in range(120)])


@pytest.mark.extensive
def test_the_same_circuit_whatever_the_load() -> None:
    """Two processes make the same circuit even if one of them is slowed down between all steps."""
    script = """
import sys, time
import semprola as sp
from semprola.compiler.budget import Budget
if len(sys.argv) > 1:
    watch = Budget.watch
    def slow(self, *args, **kwargs):
        time.sleep(0.001)
        return watch(self, *args, **kwargs)
    Budget.watch = slow
one = [sp.one_hot([f"n{n}d{d}" for n in range(5)]) for d in range(6)]
few = [sp.constraints.cardinality([f"n{n}d{d}" for d in range(6)], at_most=2) for n in range(3)]
odd = sp.constraints.linear({f"n{n}d{d}": 1 + (n + d) % 3 for n in range(5) for d in range(6)}, "<=", 11)
v = [sp.Bool(f"v{i}") for i in range(41)]
wide = [sp.Or([v[3 * i % 41], v[7 * i % 41], ~v[10 * i % 41]]) for i in range(1, 90)]
for rules in ([*one, *few, odd], wide):
    print(sp.compile(sp.And(rules), cache=False, timeout=100).digest)
"""
    runs = [
        subprocess.run([sys.executable, "-c", script, *more], capture_output=True, text=True, check=True).stdout
        for more in ([], ["slowly"])
    ]
    assert runs[0] == runs[1]
    assert len(runs[0].split()) == 2
