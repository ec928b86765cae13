"""Defined variables: they are found only if they are determined, and leaving them out does not change a count."""

from __future__ import annotations

import itertools
import random
from fractions import Fraction

import pytest

import semprola as sp
from semprola.circuit.weighted import weighted_count
from semprola.compiler.backends.topdown.backend import compile_to_count
from semprola.compiler.backends.topdown.definitions import defined_variables, without
from semprola.compiler.budget import Budget
from semprola.errors import UnsatisfiableError
from semprola.logic import Cnf


def gates(rng: random.Random, variables: int) -> list[list[int]]:
    """Some definitions of variables by others, and some other clauses."""
    clauses: list[list[int]] = []
    for _ in range(rng.randint(0, variables)):
        name, *inputs = rng.sample(range(1, variables + 1), rng.randint(2, min(4, variables)))
        literals = [v if rng.random() < 0.5 else -v for v in inputs]
        sign = rng.choice([1, -1])
        clauses += [[-sign * name, literal] for literal in literals] + [[sign * name, *(-x for x in literals)]]
    for _ in range(rng.randint(0, 3)):
        chosen = rng.sample(range(1, variables + 1), min(variables, 3))
        clauses.append([v if rng.random() < 0.5 else -v for v in chosen])
    rng.shuffle(clauses)
    return clauses


def models(variables: int, clauses: list[list[int]]) -> list[tuple[bool, ...]]:
    rows = itertools.product((False, True), repeat=variables)
    return [row for row in rows if all(any(row[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)]


@pytest.mark.parametrize("seed", range(150))
def test_the_rest_determines_what_is_found(seed: int) -> None:
    rng = random.Random(seed)
    variables = rng.randint(2, 8)
    clauses = gates(rng, variables)
    found = defined_variables(clauses, rng.sample(range(1, variables + 1), variables))
    rest = [v - 1 for v in range(1, variables + 1) if v not in found]
    known = models(variables, clauses)
    assert len({tuple(row[v] for v in rest) for row in known}) == len(known)


@pytest.mark.parametrize("seed", range(150))
def test_elimination_is_projection(seed: int) -> None:
    rng = random.Random(1000 + seed)
    variables = rng.randint(2, 8)
    clauses = gates(rng, variables)
    hidden = rng.sample(range(1, variables + 1), rng.randint(0, variables))
    made, left = without(clauses, hidden)
    assert set(left) <= set(hidden)
    assert {abs(x) for clause in made for x in clause}.isdisjoint(set(hidden) - set(left))
    rest = [v - 1 for v in range(1, variables + 1) if v not in hidden]
    before, after = (models(variables, list(map(list, part))) for part in (clauses, made))
    assert {tuple(row[v] for v in rest) for row in before} == {tuple(row[v] for v in rest) for row in after}


@pytest.mark.parametrize("seed", range(60))
def test_counts_and_weights_stay(seed: int) -> None:
    rng = random.Random(2000 + seed)
    variables = rng.randint(2, 9)
    clauses = gates(rng, variables)
    weighted = rng.sample(range(1, variables + 1), rng.randint(0, variables))
    weights = {v: (Fraction(rng.randint(0, 5), 3), Fraction(rng.randint(0, 5), 4)) for v in weighted}
    known = models(variables, clauses)
    if not known:
        with pytest.raises(UnsatisfiableError):
            compile_to_count(Cnf(variables, clauses), Budget(), weighted)
        return
    circuit = compile_to_count(Cnf(variables, clauses), Budget(), weighted)
    assert circuit.model_count() == len(known)
    total = Fraction(0)
    for row in known:
        product = Fraction(1)
        for v, pair in weights.items():
            product *= pair[row[v - 1]]
        total += product
    assert weighted_count(circuit, {str(v): pair for v, pair in weights.items()}) == total


def test_hundreds_of_definitions_over_shared_inputs() -> None:
    rng = random.Random(0)
    clauses = []
    for name in range(101, 201):
        inputs = rng.sample(range(1, 101), 4)
        clauses += [[-v, name] for v in inputs] + [[-name, *inputs]]
    circuit = compile_to_count(Cnf(200, clauses), Budget(timeout=60))
    assert circuit.model_count() == 2**100


class TestLeavingOut:
    """Variables that others define need not be labels."""

    @pytest.mark.parametrize("seed", range(20))
    def test_same_models_without_them(self, seed: int) -> None:
        rng = random.Random(seed)
        clauses: list[list[int]] = []
        for gate in (7, 8, 9):
            inputs = [v * rng.choice((1, -1)) for v in rng.sample(range(1, gate), 2)]
            clauses += [[-gate, v] for v in inputs] + [[gate, *(-v for v in inputs)]]
        clauses += [[v * rng.choice((1, -1)) for v in rng.sample(range(1, 10), 3)] for _ in range(6)]
        cnf = Cnf(9, clauses)
        hidden = {"7", "8", "9"} if rng.random() < 0.5 else {"8"}
        shown = [name for name in cnf.labels if name not in hidden]
        try:
            whole = sp.compile(cnf, cache=False)
        except sp.UnsatisfiableError:
            with pytest.raises(sp.UnsatisfiableError):
                sp.compile(cnf, labels=shown, cache=False)
            return
        part = sp.compile(cnf, labels=shown, cache=False)
        assert part.labels == tuple(shown)
        columns = [whole.labels.index(name) for name in shown]
        expected = {tuple(row) for row in whole.enumerate()[:, columns].tolist()}
        assert {tuple(row) for row in part.enumerate().tolist()} == expected
        assert part.model_count() == whole.model_count()

    def test_only_defined_ones(self) -> None:
        with pytest.raises(sp.LabelError, match="mentions '2'"):
            sp.compile(Cnf(2, [[1, 2]]), labels=["1"])
        with pytest.raises(sp.LabelError, match="topdown"):
            sp.compile(Cnf(3, [[-3, 1], [-3, 2], [3, -1, -2]]), labels=["1", "2"], backend="sdd")

    def test_an_error_says_so(self) -> None:
        rng = random.Random(1)
        clauses: list[list[int]] = []
        for gate in range(101, 201):
            inputs = rng.sample(range(1, 101), 4)
            clauses += [[-v, gate] for v in inputs] + [[-gate, *inputs]]
        with pytest.raises(sp.CompilationBudgetError, match="100 of its 200 variables are defined by the others"):
            sp.compile(Cnf(200, clauses), backend="topdown", max_nodes=2000, cache=False)
        assert (
            sp.compile(Cnf(200, clauses), labels=[str(v) for v in range(1, 101)], cache=False).model_count() == 2**100
        )
