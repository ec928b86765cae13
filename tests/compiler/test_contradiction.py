"""Errors name contradictions: compared with brute force, for formulas, families and mixtures, small and large."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence

import numpy as np
import pytest
from zoo import _nested, names

import semprola as sp
from semprola.compiler.budget import Budget
from semprola.compiler.contradiction import contradiction, written_rules
from semprola.compiler.sat import Solver
from semprola.logic import And, Bool, Cnf, Formula, Not

C = sp.constraints


def smallest_size(rules: Sequence[Formula], labels: Sequence[str]) -> int | None:
    """The size of a smallest contradictory set of rules, found by trying all; None if the rules have a model."""
    rows = np.array(list(itertools.product([0, 1], repeat=len(labels))))
    broken = np.array([~rule.evaluate(rows, labels=labels) for rule in rules])
    for size in range(1, len(rules) + 1):
        if any(broken[list(chosen)].any(axis=0).all() for chosen in itertools.combinations(range(len(rules)), size)):
            return size
    return None


def has_model(rules: Sequence[Formula], labels: Sequence[str]) -> bool:
    rows = np.array(list(itertools.product([0, 1], repeat=len(labels))))
    return bool(And(rules).evaluate(rows, labels=labels).any())


def random_rules(rng: random.Random, labels: list[str]) -> list[Formula]:
    """A mix of formulas and families, contradictory in most cases."""
    rules: dict[Formula, None] = {}
    while len(rules) < rng.randint(4, 9):
        kind = rng.randrange(5)
        some = rng.sample(labels, rng.randint(2, len(labels)))
        if kind == 0:
            rules[C.cardinality(some, at_least=rng.randint(1, len(some)))] = None
        elif kind == 1:
            rules[C.linear({name: rng.randint(1, 4) for name in some}, "<=", rng.randint(0, 5))] = None
        elif kind == 2:
            rules[C.hierarchy(list(itertools.pairwise(some)))] = None
        elif kind == 3:
            atom = Bool(rng.choice(labels))
            rules[atom if rng.random() < 0.5 else ~atom] = None
        else:
            rules[_nested(rng, labels, 2)] = None
    return list(rules)


@pytest.mark.parametrize("seed", range(80))
def test_against_brute_force(seed: int) -> None:
    rng = random.Random(seed)
    labels = names(5)
    rules = written_rules(And(random_rules(rng, labels)))
    least = smallest_size(rules, labels)
    if least is None:
        assert contradiction(rules, Budget()) is None
        assert sp.compile(And(rules), labels=labels, cache=False).model_count() > 0
        return
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(And(rules), labels=labels, cache=False)
    found = contradiction(rules, Budget())
    assert found is not None
    assert set(found.rules) <= set(rules)
    assert not has_model(found.rules, labels)
    assert found.minimal
    assert found.smallest
    assert len(found.rules) == least
    if least > 1:
        assert caught.value.rules == found.rules
        assert f"these {least} of its {len(rules)} rules contradict each other" in str(caught.value)
        assert repr(found.rules[0])[:20] in str(caught.value)


@pytest.mark.parametrize("backend", ["auto", "sdd", "topdown", "line"])
def test_every_back_end_says_so(backend: str) -> None:
    rules = "(cat -> animal) & (dog | cat) & ~animal & ~dog & (fish | bird)"
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(rules, backend=backend, cache=False)
    assert len(caught.value.rules) == 4
    assert "cat -> animal; dog | cat; ~animal; ~dog" in str(caught.value)


def test_an_overfull_roster() -> None:
    """Fifteen shifts, six nurses with at most two shifts each: a contradiction of numbers, hard for clauses."""
    one = {d: [f"n{n}d{d}" for n in range(6)] for d in range(15)}
    rules = [sp.one_hot(one[d]) for d in range(15)]
    rules += [C.cardinality([f"n{n}d{d}" for d in range(15)], at_most=2) for n in range(6)]
    rules += [~(Bool(f"n{n}d0") & Bool(f"n{n}d1")) for n in range(6)]
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(And(rules), cache=False)
    assert len(caught.value.rules) == 13 + 6
    assert all(sum(name.startswith("n0") for name in rule.labels()) != 2 for rule in caught.value.rules)  # type: ignore[attr-defined]


def test_one_impossible_rule() -> None:
    with pytest.raises(sp.UnsatisfiableError, match=r"the rule a & ~a|cannot hold"):
        sp.compile(And([Bool("b") | Bool("c"), sp.Xor(Bool("a"), Bool("a"))]), cache=False)
    with pytest.raises(sp.UnsatisfiableError, match="cannot hold"):
        sp.compile(C.linear({"a": 1, "b": 2}, ">=", 4) & Bool("c"), cache=False)


def test_labels_that_no_rule_needs() -> None:
    tree = sp.constraints.hierarchy([("c", "a")], labels=["c", "a", "g"])
    with pytest.raises(sp.UnsatisfiableError, match=r"rules contradict each other: .*c; ~a"):
        sp.compile(tree & sp.parse("c & !a"))


def test_clauses_of_a_file() -> None:
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(Cnf(3, [[1, 2], [-1], [3, 1], [-2]]), cache=False)
    assert len(caught.value.rules) == 3


@pytest.mark.parametrize("shape", ["chain", "needle"])
def test_ten_thousand_rules(shape: str) -> None:
    count = 10_000
    if shape == "chain":
        rules = [Bool(f"x{i}") >> Bool(f"x{i + 1}") for i in range(count - 2)] + [Bool("x0"), ~Bool(f"x{count - 2}")]
        expected = count
    else:
        rng = random.Random(1)
        rules = [
            sp.Or([Bool(f"v{v}") if k else Not(Bool(f"v{v}")) for k, v in enumerate(rng.sample(range(5000), 3))])
            for _ in range(count - 4)
        ]
        a, b, c, d = (Bool(f"v{v}") for v in (1, 2, 3, 7))
        rules += [a >> b, b >> c, sp.at_most(1, [a, c, d]), a]
        expected = 4
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(And(rules), cache=False)
    assert len(caught.value.rules) == expected


class TestSolver:
    @pytest.mark.parametrize("seed", range(40))
    def test_against_brute_force(self, seed: int) -> None:
        rng = random.Random(seed)
        count = rng.randint(3, 8)
        clauses = [
            [v * rng.choice((1, -1)) for v in rng.sample(range(1, count + 1), rng.randint(1, 3))]
            for _ in range(rng.randint(4, 40))
        ]
        solver = Solver(count)
        for clause in clauses:
            solver.add(clause)
        models = [
            bits
            for bits in itertools.product([False, True], repeat=count)
            if all(any(bits[abs(x) - 1] == (x > 0) for x in clause) for clause in clauses)
        ]
        for _ in range(12):
            assumed = [v * rng.choice((1, -1)) for v in rng.sample(range(1, count + 1), rng.randint(0, count))]
            fitting = [bits for bits in models if all(bits[abs(x) - 1] == (x > 0) for x in assumed)]
            assert solver.solve(assumed) is bool(fitting)
            if fitting:
                assert tuple(solver.model[1:]) in models
            else:
                assert set(solver.core) <= set(assumed)
                assert not [bits for bits in models if all(bits[abs(x) - 1] == (x > 0) for x in solver.core)]

    def test_pigeons_take_too_long(self) -> None:
        holes = 7
        solver = Solver(holes * (holes + 1))
        at = {(p, h): p * holes + h + 1 for p in range(holes + 1) for h in range(holes)}
        for p in range(holes + 1):
            solver.add([at[p, h] for h in range(holes)])
        for h in range(holes):
            for p, q in itertools.combinations(range(holes + 1), 2):
                solver.add([-at[p, h], -at[q, h]])
        assert solver.solve([], max_conflicts=20) is None
