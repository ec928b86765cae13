"""A budget is checked all the time: no step of a compilation runs for long without checking it."""

from __future__ import annotations

import contextlib
import gc
import pickle
import random
import time
from collections.abc import Callable
from typing import Any

import networkx as nx
import numpy as np
import pytest
from selection import spread

import semprola as sp
from semprola import constraints
from semprola.compiler import budget as budgets
from semprola.compiler.budget import Budget
from semprola.compiler.restructure import restructure
from semprola.errors import CompilationBudgetError, PropertyError
from semprola.logic import Cnf, Formula


def random_dag(size: int) -> Formula:
    rng = random.Random(0)
    edges = [(f"v{i}", f"v{rng.randrange(max(0, i - 40), i)}") for i in range(1, size)]
    more = [(f"v{i}", f"v{rng.randrange(max(0, i - 12), i)}") for i in range(1, size) if rng.random() < 0.25]
    return constraints.hierarchy(edges + more)


def random_clauses(variables: int, clauses: int, length: int) -> Cnf:
    rng = random.Random(0)
    return Cnf(
        variables,
        [
            [v if rng.random() < 0.5 else -v for v in rng.sample(range(1, variables + 1), length)]
            for _ in range(clauses)
        ],
    )


LARGE: dict[str, Callable[[], Formula]] = {
    "table": lambda: constraints.table(
        np.random.default_rng(0).integers(0, 2, (20_000, 48)), labels=[f"a{i}" for i in range(48)]
    ),
    "permutation": lambda: constraints.permutation(13),
    "paths": lambda: constraints.simple_paths(nx.grid_2d_graph(7, 7), (0, 0), (6, 6)),
    "count": lambda: constraints.cardinality([f"a{i}" for i in range(800)], exactly=300),
    "tree": lambda: constraints.hierarchy([(f"n{i}", f"n{(i - 1) // 3}") for i in range(1, 30_000)]),
    "dag": lambda: random_dag(2000),
    "chain": lambda: sp.And([sp.Bool(f"x{i}") >> sp.Bool(f"x{i + 1}") for i in range(8000)]),
    "wide clauses": lambda: random_clauses(2000, 6000, 8),
    "sparse clauses": lambda: random_clauses(20_000, 30_000, 3),
}


@pytest.mark.parametrize("name", spread(LARGE, 4, 1))
def test_no_long_silence(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any, **kwargs: Any) -> Any:
            asked.append(time.process_time())
            return function(*args, **kwargs)

        return noted

    monkeypatch.setattr(Budget, "watch", noting(Budget.watch))
    constraint = LARGE[name]()
    gc.disable()  # a collection takes longer the more tests ran before, and may start at any time
    silences = []
    try:
        for _ in range(3):  # a noisy machine lengthens one gap in one run, not the same gap in each
            asked.clear()
            began = time.process_time()
            with contextlib.suppress(CompilationBudgetError):
                sp.compile(constraint, cache=False, timeout=3)
            ended = time.process_time()
            silences.append(max(np.diff([began, *asked, ended])) / (ended - began + 0.1))
            if silences[-1] < 0.3:
                break
    finally:
        gc.enable()
    assert min(silences) < 0.5  # a tenth on an idle machine


def test_a_wide_formula_does_not_outlast_its_timeout() -> None:
    # the search for a variable order once took minutes before the time was checked
    began = time.monotonic()
    with pytest.raises(CompilationBudgetError, match="time budget of 1 s"):
        sp.compile(random_clauses(40_000, 60_000, 3), timeout=1, cache=False)
    assert time.monotonic() - began < 10


def test_rebuilding_a_circuit_along_an_order_has_limits() -> None:
    circuit = sp.compile(random_clauses(40, 90, 3), cache=False)
    with pytest.raises(PropertyError, match=r"rebuilding it along one ran out of nodes: .*backend='sdd'"):
        restructure(circuit, linear=True, budget=Budget(max_nodes=50))
    with pytest.raises(PropertyError, match="ran out of time"):
        restructure(circuit, linear=True, budget=Budget(timeout=1e-3))


class TestErrors:
    def test_say_by_attributes_what_ran_out(self) -> None:
        hard = random_clauses(150, 450, 3)
        with pytest.raises(CompilationBudgetError) as caught:
            sp.compile(hard, backend="topdown", max_nodes=500, cache=False)
        error = caught.value
        assert (error.resource, error.limit) == ("nodes", 500)
        assert error.nodes > 0
        assert error.decisions > 0
        assert error.phase.startswith("compiling top-down")
        with pytest.raises(CompilationBudgetError) as caught:
            sp.compile(hard, backend="sdd", timeout=0.3, cache=False)
        error = caught.value
        assert (error.resource, error.limit, error.tried) == ("time", 0.3, ("sdd",))
        assert error.spent is not None
        assert error.spent >= 0.3
        again = pickle.loads(pickle.dumps(error))
        assert (str(again), again.resource, again.tried) == (str(error), "time", ("sdd",))

    def test_advise_only_what_may_help(self) -> None:
        hard = random_clauses(150, 450, 3)
        with pytest.raises(CompilationBudgetError, match=r"sp\.split.*raise timeout=, or try backend='auto'"):
            sp.compile(hard, backend="topdown", timeout=0.3, cache=False)
        with pytest.raises(
            CompilationBudgetError, match=r"sp\.split\(rules\), or raise max_nodes= \(tried: [a-z, ]*\)$"
        ):
            sp.compile(hard, max_nodes=500, cache=False)  # all back ends that may be of use were tried

    @pytest.mark.extensive
    def test_stop_a_sudoku_of_formulas_by_nodes(self) -> None:
        cell = {(r, c, v): sp.Bool(f"{r},{c},{v}") for r in range(9) for c in range(9) for v in range(9)}
        groups: dict[tuple[object, ...], list[Formula]] = {}
        for (r, c, v), atom in cell.items():
            for group in (("cell", r, c), ("row", r, v), ("column", c, v), ("box", r // 3, c // 3, v)):
                groups.setdefault(group, []).append(atom)
        rules = sp.And(sp.exactly(1, group) for group in groups.values())
        with pytest.raises(CompilationBudgetError) as caught:  # no time limit: the search for an order has an end
            sp.compile(rules, max_nodes=3000, cache=False)
        assert caught.value.resource == "nodes"

    def test_a_family_names_its_widest_part(self) -> None:
        with pytest.raises(
            CompilationBudgetError, match=r"permutation\(20\) ran out of .*; the widest part is"
        ) as caught:
            sp.compile(constraints.permutation(20) & ~sp.Bool("x"), max_nodes=1000, cache=False)
        assert caught.value.resource == "nodes"


class TestTelling:
    def test_a_long_compilation_says_so(
        self, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(budgets, "_PATIENT_SECONDS", 0.1)
        with contextlib.suppress(CompilationBudgetError):
            sp.compile(random_clauses(150, 450, 3), timeout=1, cache=False)
        told = capsys.readouterr().err.splitlines()
        assert len(told) == 1
        assert told[0].startswith("semprola: still compiling a constraint (")

    @pytest.mark.parametrize("progress", [False, lambda _: None])
    def test_unless_told_otherwise(
        self, progress: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(budgets, "_PATIENT_SECONDS", 0.1)
        with contextlib.suppress(CompilationBudgetError):
            sp.compile(random_clauses(150, 450, 3), timeout=0.5, cache=False, progress=progress)
        assert capsys.readouterr().err == ""

    def test_long_constraints_are_cut(self) -> None:
        digits = [sp.Integer(f"d{i}", 0, 9) for i in range(100)]
        seen: list[str] = []
        with pytest.raises(CompilationBudgetError) as caught:
            sp.compile(
                sum(digits[1:], digits[0]) == 450, max_nodes=500, cache=False, progress=lambda p: seen.append(p.phase)
            )
        assert len(str(caught.value)) < 400
        assert max(map(len, seen)) < 200
