"""`split`: circuits that a constraint implies and that together state it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import semprola as sp
from semprola.errors import LabelError, UnsatisfiableError

C = sp.constraints


def letters(n: int) -> list[sp.Formula]:
    return [sp.Bool(f"v{i}") for i in range(n)]


def some_rules(n: int = 9) -> sp.Formula:
    v = letters(n)
    pairs = [v[i] ^ v[(i + 3) % n] ^ v[(i + 4) % n] for i in range(0, n, 2)]
    return sp.And([*pairs, sp.at_most(3, v[:6]), sp.exactly(2, v[3:]), v[0] >> v[5]])


def sudoku() -> sp.Formula:
    """4 × 4 sudokus."""
    cell = {(r, c, d): sp.Bool(f"r{r}c{c}d{d}") for r in range(1, 5) for c in range(1, 5) for d in range(1, 5)}
    units = [[(r, c) for c in range(1, 5)] for r in range(1, 5)] + [[(r, c) for r in range(1, 5)] for c in range(1, 5)]
    units += [[(r + i, c + j) for i in (0, 1) for j in (0, 1)] for r in (1, 3) for c in (1, 3)]
    one = [[cell[r, c, d] for r, c in unit] for unit in units for d in range(1, 5)]
    one += [[cell[r, c, d] for d in range(1, 5)] for r in range(1, 5) for c in range(1, 5)]
    return sp.And([sp.exactly(1, group) for group in one])


@pytest.mark.parametrize(
    "constraint",
    [
        some_rules(),
        C.permutation(4),
        sudoku(),
        sudoku() & sp.parse("r1c1d2 & r3c4d1"),
        C.hierarchy([("a", "b"), ("a", "c"), ("b", "d"), ("c", "d"), ("e", "c"), ("e", "b")]),
        C.permutation(3) & sp.parse('"y[0,0]" | "y[1,1]"'),
    ],
    ids=["mixed", "permutation", "sudoku", "sudoku with givens", "hierarchy", "family and rule"],
)
@pytest.mark.parametrize("max_nodes", [1, 12, 60, 400])
def test_the_circuits_and_the_rules_left_out_state_the_constraint(constraint: sp.Formula, max_nodes: int) -> None:
    S = sp.split(constraint, max_nodes=max_nodes)
    rng = np.random.default_rng(0)
    models = sp.compile(constraint).enumerate()
    near = models[rng.integers(len(models), size=300)] ^ (rng.random((300, models.shape[1])) < 0.1)
    rows = np.concatenate([models, near.astype(np.uint8), rng.integers(0, 2, size=(300, models.shape[1]))])
    expected = constraint.evaluate(rows)
    assert np.array_equal(S.satisfied(rows), expected)
    for circuit in S.circuits:
        assert circuit.satisfied(models).all()
        assert circuit.num_nodes <= max_nodes + len(S.labels) + 1  # facts come on top
    again = sp.split(constraint, max_nodes=max_nodes)
    assert [c.digest for c in again.circuits] == [c.digest for c in S.circuits]
    assert again.left_out == S.left_out


def test_one_circuit_is_exact() -> None:
    S = sp.split(C.permutation(4))
    assert S.is_exact
    assert S.circuits[0].model_count() == 24
    assert sp.split(S.circuits[0]).is_exact


def test_families_know_their_parts() -> None:
    dag = C.hierarchy([(f"t{i}", f"t{j}") for i in range(1, 60) for j in {i // 2, i // 3, max(0, i - 7)}])
    S = sp.split(dag, max_nodes=300)
    assert not S.left_out
    assert len(S.circuits) <= 3


def test_rules_of_a_file_are_named(tmp_path: Path) -> None:
    path = tmp_path / "rules.txt"
    path.write_text("a -> b\nparity: a ^ b ^ c ^ d ^ e ^ f\n")
    S = sp.split(path, max_nodes=8)
    assert S.left_out == (f"a ^ b ^ c ^ d ^ e ^ f [{path}:2 parity]",)
    assert "1 rules left out" in repr(S)


def test_contradictions_are_named() -> None:
    with pytest.raises(UnsatisfiableError, match="contradict"):
        sp.split("(a -> b) & a & ~b", max_nodes=5)
    pigeons = [sp.exactly(1, [sp.Bool(f"p{i}{k}") for k in range(5)]) for i in range(6)]
    holes = [sp.at_most(1, [sp.Bool(f"p{i}{k}") for i in range(6)]) for k in range(5)]
    with pytest.raises(UnsatisfiableError, match="contradict"):
        sp.split(sp.And([*pigeons, *holes]), max_nodes=40)


def test_bad_arguments() -> None:
    with pytest.raises(LabelError, match="not listed"):
        sp.split("a & b", labels=["a"])
    with pytest.raises(ValueError, match="timeout"):
        sp.split("a & b", timeout=-1)
    assert sp.split("a -> b", labels=["c", "b", "a"]).labels == ("c", "b", "a")


def test_a_timeout_leaves_rules_out() -> None:
    n = 40
    v = letters(n)
    K = sp.And([sp.exactly(5, v[i : i + 20]) ^ v[(i * 7) % n] for i in range(0, 20)])
    S = sp.split(K, timeout=0.2)
    assert len(S.labels) == n


@pytest.mark.parametrize("budget", [{"timeout": 1e-6}, {"max_nodes": 1}], ids=str)
def test_budgets_that_are_far_too_small(budget: dict[str, Any]) -> None:
    """Every rule may be left out; predictions obey all of them."""
    K = C.permutation(4) & sp.parse('"y[0,0]" | "y[1,1]"')
    S = sp.split(K, **budget)
    assert not S.is_exact
    states = sp.compile(K).enumerate()
    assert S.satisfied(states).all()
    p = sp.constrain(torch.randn(5, 16, generator=torch.Generator().manual_seed(0)), S)
    assert K.evaluate(p.mode.numpy()).all()
    assert bool(p.mode_is_exact.all())


def test_of_too_many_rules_the_tight_ones_get_circuits() -> None:
    """A round trip through eleven cities: two edges at each, and one at least out of every other set of cities."""
    cities = range(11)
    edge = {pair: sp.Bool(f"{pair[0]}-{pair[1]}") for pair in itertools.combinations(cities, 2)}
    degrees = [sp.exactly(2, [e for pair, e in edge.items() if city in pair]) for city in cities]
    cuts = [
        sp.Or(e for (a, b), e in edge.items() if (a in inside) != (b in inside))
        for size in (3, 4)
        for inside in itertools.combinations(cities, size)
    ]
    S = sp.split(sp.And([*degrees, *cuts]), max_nodes=100)
    assert len(S.circuits) <= len(degrees)
    assert set(S.rules_left_out) == set(cuts)
    p = sp.constrain(torch.randn(4, 55, generator=torch.Generator().manual_seed(0)), S)
    assert bool(p.mode_is_exact.all())
    tours = p.mode.bool()
    for tour in tours:
        visited, here = [0], 0
        while len(visited) < 12:
            ends = [pair for (pair, _), used in zip(edge.items(), tour.tolist(), strict=True) if used and here in pair]
            following = [a + b - here for a, b in ends if len(visited) < 2 or a + b - here != visited[-2]]
            here = following[0]
            visited.append(here)
        assert sorted(visited[:-1]) == list(cities)
        assert visited[-1] == 0
