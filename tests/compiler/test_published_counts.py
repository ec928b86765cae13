"""Published counts of constraints written as formulas and files, compiled with `sp.compile` as a user would."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
import torch

import semprola as sp
from semprola.circuit.weighted import weighted_count
from semprola.compiler.backends.topdown.backend import compile_projected
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.budget import Budget

needs_native = pytest.mark.skipif(native_library() is None, reason="needs the native module")


@pytest.fixture(scope="module")
def oeis(shared_data: Path) -> Any:
    return json.loads((shared_data / "oracles" / "oeis_counts.json").read_text())


def cells(n: int) -> list[tuple[int, int]]:
    return list(itertools.product(range(n), repeat=2))


def models(formula: Any, **options: Any) -> int:
    return sp.compile(formula, cache=False, **options).model_count()


def queens(n: int) -> Any:
    q = sp.logic.Predicate("q")
    rows = [sp.one_hot([q(r, c) for c in range(n)]) for r in range(n)]
    columns = [sp.one_hot([q(r, c) for r in range(n)]) for c in range(n)]
    attacks = sp.logic.forall(
        cells(n),
        cells(n),
        lambda a, b: ~(q(a) & q(b)),
        where=lambda a, b: a[0] < b[0] and b[0] - a[0] == abs(b[1] - a[1]),
    )
    return sp.And([*rows, *columns, attacks])


def latin(n: int) -> Any:
    x = sp.logic.Predicate("x")
    groups = [[x(i, j, k) for k in range(n)] for i, j in cells(n)]
    groups += [[x(i, j, k) for j in range(n)] for i, k in cells(n)]
    groups += [[x(i, j, k) for i in range(n)] for j, k in cells(n)]
    return sp.And([sp.one_hot(group) for group in groups])


def independent(n: int) -> Any:
    v = sp.logic.Predicate("v")
    near = [((r, c), (r + dr, c + dc)) for r, c in cells(n) for dr, dc in ((0, 1), (1, 0)) if r + dr < n and c + dc < n]
    return sp.And([~(v(a) & v(b)) for a, b in near])


def orders(n: int) -> Any:
    less = sp.logic.Predicate("less")
    items = range(n)
    transitive = sp.logic.forall(items, items, items, lambda a, b, c: (less(a, b) & less(b, c)) >> less(a, c))
    return transitive & sp.logic.forall(items, lambda a: ~less(a, a))


def test_queens(oeis: Any) -> None:
    for n in range(4, 9):
        assert models(queens(n)) == oeis["A000170"]["values"][n]


def test_no_queens(oeis: Any) -> None:
    for n in (2, 3):
        assert oeis["A000170"]["values"][n] == 0
        with pytest.raises(sp.UnsatisfiableError):
            models(queens(n))


@needs_native
@pytest.mark.extensive
def test_latin_squares(oeis: Any) -> None:
    for n in range(1, 6):
        assert models(latin(n)) == oeis["A002860"]["values"][n - 1]


def test_independent_sets(oeis: Any) -> None:
    for n in range(2, 9):
        assert models(independent(n)) == oeis["A006506"]["values"][n - 1]


@needs_native
def test_partial_orders(oeis: Any) -> None:
    for n in range(1, 6):
        assert models(orders(n)) == oeis["A001035"]["values"][n]


def test_derangements(oeis: Any) -> None:
    for n in range(2, 9):
        fixed = sp.And([~sp.Bool(f"y[{i},{i}]") for i in range(n)])
        assert models(sp.constraints.permutation(n) & fixed) == oeis["A000166"]["values"][n]


def test_grid_paths(oeis: Any, shared_data: Path) -> None:
    import networkx as nx

    derived = json.loads((shared_data / "oracles" / "derived_counts.json").read_text())
    lengths = derived["grid12_corner_paths_by_length"]
    short = sp.constraints.simple_paths(nx.grid_2d_graph(12, 12), source=(0, 0), target=(11, 11), max_length=24)
    assert models(short) == lengths["22"] + lengths["24"]


def test_ganak(shared_data: Path) -> None:
    """The comments in the files say what their counter must answer."""
    checked = 0
    for path in sorted((shared_data / "oracles" / "ganak_tests").glob("*.cnf")):
        text = path.read_text()
        count = re.search(r"exact arb int (\d+)|--expect-count (\d+)", text)
        fraction = re.search(r"exact arb frac ([\d/]+)\$", text)
        number = re.search(r"exact quadruple float (\S+)\$", text)  # a pattern itself
        if "UNSATISFIABLE" in text or "unsat" in path.name:
            with pytest.raises(sp.UnsatisfiableError):
                sp.compile(sp.from_dimacs(path, strict=False), cache=False)
        elif fraction or number:
            cnf = sp.from_dimacs(path, strict=False)
            total = weighted_count(sp.compile(cnf, cache=False), literal_weights(cnf))
            if fraction:
                assert total == Fraction(fraction[1])
            elif number:
                assert re.match(number[1] + "$", f"{float(total):.8e}"), path.name
        elif count:
            circuit = compile_projected(sp.from_dimacs(path, strict=False), Budget())
            assert circuit.model_count() == int(count[1] or count[2]), path.name
        else:
            continue
        checked += 1
    assert checked >= 12


def literal_weights(cnf: Any) -> dict[str, tuple[Fraction, Fraction]]:
    """Both weights of every variable; a missing one is 1 minus the other, as for the counter."""
    pairs = {}
    for v in range(1, cnf.num_vars + 1):
        no, yes = cnf.weights.get(-v), cnf.weights.get(v)
        if no is not None or yes is not None:
            pairs[str(v)] = (1 - yes if no is None else no, 1 - no if yes is None else yes)
    return pairs


def competition(shared_data: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((shared_data / "oracles" / "mc2022_counts.json").read_text())
    # slow ones are in benchmarks/compile_competition.py
    slow = {"track1_002", "track1_073", "track1_077", "track1_083", "track2_002", "track2_005", "track2_011"}
    return [row for row in rows if row["name"].removeprefix("mc2022_") not in slow]


@needs_native
@pytest.mark.extensive
def test_competition(shared_data: Path) -> None:
    unweighted = [row for row in competition(shared_data) if not row["weighted"]]
    for row in unweighted:
        cnf = sp.from_dimacs(shared_data / "oracles" / "mc2022" / f"{row['name']}.cnf.gz")
        count = sp.compile(cnf, cache=False, timeout=60).model_count()
        assert math.log10(count) == pytest.approx(row["published_log10"], abs=1e-6), row["name"]
        assert count == int(row["exact_count"])
    assert len(unweighted) >= 14


@needs_native
@pytest.mark.extensive
def test_weighted_competition(shared_data: Path) -> None:
    """Weighted counts by the engine: log Z of independent labels, plus the normalisers that their odds leave out."""
    weighted = [row for row in competition(shared_data) if row["weighted"]]
    for row in weighted:
        cnf = sp.from_dimacs(shared_data / "oracles" / "mc2022" / f"{row['name']}.cnf.gz")
        circuit = sp.compile(cnf, cache=False, timeout=60)
        pairs = [
            (cnf.weights.get(-v, Fraction(1)), cnf.weights.get(v, Fraction(1))) for v in range(1, cnf.num_vars + 1)
        ]
        logits = torch.tensor([math.log(yes / no) for no, yes in pairs], dtype=torch.float64)
        total = sum(math.log(no + yes) for no, yes in pairs)
        log_z = sp.distributions.ProductDistribution(circuit, logits[None, None]).log_partition.item()
        assert (log_z + total) / math.log(10) == pytest.approx(row["published_log10"], abs=1e-6), row["name"]
        if circuit.num_edges < 20_000:
            exact = weighted_count(circuit, dict(zip(circuit.labels, pairs, strict=True)))
            assert math.log10(exact) == pytest.approx((log_z + total) / math.log(10), abs=1e-9)
    assert len(weighted) >= 10
