"""Rules followed along one order: machines match truth tables, and rosters match an independent count."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from zoo import _nested, names

import semprola as sp
from semprola.compiler.backends.automata.backend import Joint, absorbed
from semprola.compiler.backends.automata.machine import Machine, Product, complement, conjoined, growing
from semprola.compiler.backends.automata.order import candidate_orders, scope_of
from semprola.compiler.backends.automata.rules import Machines
from semprola.compiler.budget import Budget
from semprola.logic import And, Bool, Formula

C = sp.constraints


def accepts(machine: Machine | None, row: dict[int, int]) -> bool:
    if machine is None:
        return False
    state = 0
    for level, variable in enumerate(machine.variables):
        table = machine.high[level] if row[variable] else machine.low[level]
        state = int(table[state])
        if state < 0:
            return False
    return True


def machines_along(order: list[int], labels: list[str]) -> Machines:
    place = [order.index(v) for v in range(len(order))]
    return Machines({name: v for v, name in enumerate(labels)}, place, 10_000, Budget(), {})


def rows_of(labels: list[str]) -> list[dict[int, int]]:
    return [dict(enumerate(bits)) for bits in itertools.product([0, 1], repeat=len(labels))]


@pytest.mark.parametrize("seed", range(40))
def test_machines_against_truth_tables(seed: int) -> None:
    rng = random.Random(seed)
    labels = names(10)
    order = rng.sample(range(10), 10)
    made = machines_along(order, labels)
    some = rng.sample(labels, 9)
    rules: list[Formula] = [
        _nested(rng, labels, 3),
        sp.at_most(rng.randint(0, 5), some),
        sp.Or([Bool(name) if rng.random() < 0.5 else ~Bool(name) for name in some]),
        sp.Xor(Bool(name) for name in some),
        C.linear({name: rng.randint(-3, 4) for name in some}, rng.choice(["<=", ">=", "==", "!="]), rng.randint(-2, 4)),
        C.table(np.random.default_rng(seed).integers(0, 2, (40, 9)), labels=some),
        C.hierarchy(list(itertools.pairwise(some))) | ~Bool(labels[0]),
    ]
    for rule in rules:
        machine = made.of(rule)
        opposite = complement(machine)
        for row in rng.sample(rows_of(labels), 60):
            truth = bool(rule.evaluate({name: row[v] for v, name in enumerate(labels)}))
            assert accepts(machine, row) is truth
            assert accepts(opposite, row) is not truth
        if machine is not None:
            again = complement(opposite)
            assert again is not None
            assert again.same_as(machine)


def test_any_circuit_along_any_order() -> None:
    paths = C.simple_paths(nx.grid_2d_graph(3, 3), source=(0, 0), target=(2, 2))
    labels = list(paths.labels)
    order = random.Random(0).sample(range(len(labels)), len(labels))
    machine = machines_along(order, labels).of(paths)
    rows = rows_of(labels)
    truth = paths.evaluate(np.array([[row[v] for v in range(len(labels))] for row in rows]), labels=labels)
    assert [accepts(machine, row) for row in rows] == truth.tolist()


@pytest.mark.parametrize("seed", range(30))
def test_products_and_what_is_absorbed(seed: int) -> None:
    rng = random.Random(seed)
    labels = names(8)
    made = machines_along(rng.sample(range(8), 8), labels)
    rules = [_nested(rng, rng.sample(labels, rng.randint(2, 5)), 2) for _ in range(6)]
    found = [machine for rule in rules if (machine := made.of(rule)) is not None]
    whole = conjoined(found, made.place, 10**6)
    for row in rows_of(labels):
        assert accepts(whole, row) is all(accepts(machine, row) for machine in found)
    if whole is not None:
        fewer = absorbed(found, made.place)
        assert len(fewer) <= len(found)
        again = conjoined(fewer, made.place, 10**6)
        assert again is not None
        assert again.same_as(whole)


def test_redundant_rules_are_dropped() -> None:
    labels = [f"x{i}" for i in range(15)]
    days = [sp.at_most(1, labels[3 * d : 3 * d + 3]) for d in range(5)]
    made = machines_along(list(range(15)), labels)
    machines = [made.of(rule) for rule in (*days, sp.at_most(5, labels))]
    kept = absorbed([machine for machine in machines if machine is not None], made.place)
    assert sorted(len(machine.variables) for machine in kept) == [3] * 5


def test_states_are_joint_and_reached() -> None:
    made = machines_along([0, 1, 2], names(3))
    machines = [made.of(sp.parse(text)) for text in ("a -> b", "b -> c")]
    product = Product([machine for machine in machines if machine is not None], made.place)
    assert list(growing(product, most=100)) == [1, 3, 5]
    assert product.variables == [0, 1, 2]
    assert [len(level) for level in product.levels().low] == [1, 2, 2]


def test_groups_stay_together() -> None:
    labels = [f"d{d}n{n}" for n in range(4) for d in range(6)]  # written nurse by nurse
    index = {name: v for v, name in enumerate(labels)}
    rules = [sp.one_hot([f"d{d}n{n}" for n in range(4)]) for d in range(6)]
    rules += [sp.at_most(2, [f"d{d}n{n}" for d in range(6)]) for n in range(4)]
    scopes = [scope_of(rule, [index[name] for name in rule.labels]) for rule in rules]
    _, best = candidate_orders(len(labels), scopes, lambda: None)[0]
    days = [labels[v][1] for v in best]
    assert sum(a != b for a, b in itertools.pairwise(days)) == 5  # day by day


# rosters ------------------------------------------------------------------------------------------------------------

NURSES, SHIFTS, DAYS = 6, 3, 5


def on(nurse: int, shift: int, day: int) -> str:
    return f"n{nurse}s{shift}d{day}"


def roster() -> list[Formula]:
    slots = itertools.product(range(SHIFTS), range(DAYS))
    rules = [sp.one_hot([on(n, s, d) for n in range(NURSES)]) for s, d in slots]
    return rules + [sp.at_most(1, [on(n, s, d) for s in range(SHIFTS)]) for n in range(NURSES) for d in range(DAYS)]


def of_nurse(n: int) -> list[str]:
    return [on(n, s, d) for d in range(DAYS) for s in range(SHIFTS)]


def order_of(major: str) -> list[str]:
    keys = itertools.product(range(NURSES), range(SHIFTS), range(DAYS))
    place = {"nurse": (0, 2, 1), "shift": (1, 0, 2), "day": (2, 1, 0)}[major]
    return [on(*key) for key in sorted(keys, key=lambda key: tuple(key[i] for i in place))]


def counted(limits: dict[int, int], weights: dict[tuple[int, int], int], heavy: int, bound: int) -> int:
    """Count rosters by dynamic programming over days, on each limited nurse's shifts and the heavy nurse's load."""
    ways = Counter({((0,) * len(limits), 0): 1})
    for day in range(DAYS):
        after: Counter[tuple[tuple[int, ...], int]] = Counter()
        for team in itertools.permutations(range(NURSES), SHIFTS):
            for (worked, load), number in ways.items():
                now = tuple(count + (n in team) for count, n in zip(worked, limits, strict=True))
                weight = load + sum(weights[s, day] for s, n in enumerate(team) if n == heavy)
                if weight <= bound and all(count <= most for count, most in zip(now, limits.values(), strict=True)):
                    after[now, weight] += number
        ways = after
    return sum(ways.values())


@pytest.mark.parametrize("major", ["nurse", "shift", "day"])
def test_a_roster_with_four_kinds_of_rules(major: str) -> None:
    weights = {(s, d): 1 + (s + d) % 3 for s in range(SHIFTS) for d in range(DAYS)}
    rules: list[Any] = [*roster(), *(C.cardinality(of_nurse(n), at_most=3) for n in range(3))]
    rules.append(C.linear({on(3, s, d): weights[s, d] for s, d in weights}, "<=", 6))
    circuit = sp.compile(And(rules), labels=order_of(major), cache=False)
    assert circuit.model_count() == counted({0: 3, 1: 3, 2: 3}, weights, 3, 6)
    assert circuit.num_nodes <= 60_000
    assert circuit.info["backend"] == "automata"
    assert circuit.is_structured
    assert circuit.is_deterministic


ADDED: dict[str, tuple[str, list[Formula], int]] = {
    "count": ("nurse", [sp.at_most(3, of_nurse(0))], 3_493),
    "family": ("shift", [C.cardinality(of_nurse(0), at_most=3)], 3_493),
    "linear": ("day", [C.linear({name: 1 + i % 3 for i, name in enumerate(of_nurse(0))}, "<=", 6)], 4_978),
    "redundant": ("nurse", [sp.at_most(5, of_nurse(n)) for n in range(NURSES)], 1_865),
}


@pytest.mark.parametrize("name", ADDED)
def test_rules_added_to_a_roster(name: str) -> None:
    major, rules, most = ADDED[name]
    circuit = sp.compile(And([*roster(), *rules]), labels=order_of(major), cache=False)
    assert circuit.num_nodes <= 2 * most
    again = sp.compile(And([*roster(), *rules]), labels=order_of(major), cache=False)
    assert again == circuit


def test_goes_on_where_it_stopped() -> None:
    line = Joint([*roster(), *(sp.at_most(3, of_nurse(n)) for n in range(5))], Budget())
    with pytest.raises(sp.CompilationBudgetError) as caught:
        line.compile(50)
    assert caught.value.resource == "nodes"
    assert line.compile(None) == Joint(line.rules, Budget()).compile(None)
