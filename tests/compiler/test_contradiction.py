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
from semprola.logic import And, Bool, Cnf, Formula, Not

C = sp.constraints


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
    if has_model(rules, labels):
        assert contradiction(rules, Budget()) is None
        assert sp.compile(And(rules), labels=labels, cache=False).model_count() > 0
        return
    with pytest.raises(sp.UnsatisfiableError) as caught:
        sp.compile(And(rules), labels=labels, cache=False)
    found = contradiction(rules, Budget())
    assert found is not None
    assert set(found) <= set(rules)
    assert not has_model(found, labels)
    assert all(has_model([other for other in found if other is not rule], labels) for rule in found)
    if len(found) > 1:
        assert caught.value.rules == found
        assert f"these {len(found)} of its {len(rules)} rules contradict each other" in str(caught.value)
        assert repr(found[0])[:20] in str(caught.value)


@pytest.mark.parametrize("backend", ["auto", "sdd", "topdown", "automata"])
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
    assert all(sum(name.startswith("n0") for name in rule.labels) != 2 for rule in caught.value.rules)  # type: ignore[attr-defined]


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
