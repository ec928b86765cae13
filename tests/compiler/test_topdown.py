"""The top-down compiler compared with brute force, published counts and its own promises."""

from __future__ import annotations

import gzip
import itertools
import json
import math
import random
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from semprola.circuit import LITERAL, PRODUCT, SUM
from semprola.compiler.backends.topdown import search as topdown
from semprola.compiler.backends.topdown.backend import circuit_of
from semprola.compiler.backends.topdown.native import native_library
from semprola.compiler.backends.topdown.search import Ddnnf, compile_cnf
from semprola.compiler.budget import Budget, Progress
from semprola.errors import CompilationBudgetError, FormatError, UnsatisfiableError

needs_native = pytest.mark.skipif(native_library() is None, reason="the native module is not built")


@pytest.fixture(params=["python", pytest.param("native", marks=needs_native)])
def backend(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs a test once with each implementation."""
    if request.param == "python":
        monkeypatch.setattr(topdown, "native_library", lambda: None)
    return str(request.param)


# --- independent checks ----------------------------------------------------------------------------------------------


def children_of(circuit: Ddnnf, node: int) -> list[int]:
    return circuit.children[circuit.child_start[node] : circuit.child_start[node + 1]].tolist()


def model_count(circuit: Ddnnf, num_vars: int) -> int:
    """Exact count with Python integers; each variable that a node does not mention doubles its count."""
    counts: list[int] = []
    scopes: list[int] = []  # bit sets
    for node in range(circuit.num_nodes):
        children = children_of(circuit, node)
        if circuit.kind[node] == LITERAL:
            counts.append(1)
            scopes.append(1 << (abs(int(circuit.literal[node])) - 1))
        elif circuit.kind[node] == PRODUCT:
            counts.append(math.prod(counts[c] for c in children))
            scopes.append(0)
            for c in children:
                assert scopes[-1] & scopes[c] == 0, f"product {node} is not decomposable"
                scopes[-1] |= scopes[c]
        else:
            scope = scopes[children[0]] | scopes[children[1]]
            counts.append(sum(counts[c] << (scope & ~scopes[c]).bit_count() for c in children))
            scopes.append(scope)
    return counts[-1] << (num_vars - scopes[-1].bit_count())


def check_form(circuit: Ddnnf, hidden: Sequence[int] = ()) -> None:
    """Topological order, root last, no repeated node, sums are decisions."""
    assert circuit.child_start[0] == 0
    assert circuit.child_start[-1] == circuit.num_edges
    seen: set[tuple[int, ...]] = set()
    used = np.zeros(circuit.num_nodes, bool)
    for node in range(circuit.num_nodes):
        children = children_of(circuit, node)
        assert all(0 <= c < node for c in children)
        used[children] = True
        kind = int(circuit.kind[node])
        key = (kind, int(circuit.literal[node]), *sorted(children))
        assert key not in seen, f"node {node} is a copy"
        seen.add(key)
        if kind == LITERAL:
            assert not children
            assert abs(int(circuit.literal[node])) not in hidden
        elif kind == PRODUCT:
            assert circuit.literal[node] == 0
            assert len(children) != 1
        else:
            assert kind == SUM
            assert len(children) == 2
            first, second = (leaf_literals(circuit, c) for c in children)
            assert hidden or any(-literal in second for literal in first), f"sum {node} is not a decision"
    assert used[:-1].all(), "only the root has no parent"


def leaf_literals(circuit: Ddnnf, node: int) -> set[int]:
    nodes = [node] if circuit.kind[node] == LITERAL else children_of(circuit, node)
    return {int(circuit.literal[c]) for c in nodes if circuit.kind[c] == LITERAL}


def evaluate(circuit: Ddnnf, rows: np.ndarray) -> np.ndarray:
    """Truth value of the circuit on each row [rows, num_vars]."""
    values: list[np.ndarray] = []
    for node in range(circuit.num_nodes):
        children = children_of(circuit, node)
        if circuit.kind[node] == LITERAL:
            literal = int(circuit.literal[node])
            values.append(rows[:, abs(literal) - 1] == (literal > 0))
        elif circuit.kind[node] == PRODUCT:
            values.append(np.logical_and.reduce([values[c] for c in children] or [np.ones(len(rows), bool)]))
        else:
            assert not (values[children[0]] & values[children[1]]).any(), f"sum {node} is not deterministic"
            values.append(values[children[0]] | values[children[1]])
    return values[-1]


def all_rows(num_vars: int) -> np.ndarray:
    return np.array(list(itertools.product([0, 1], repeat=num_vars)), bool).reshape(2**num_vars, num_vars)


def holds(clauses: Sequence[Sequence[int]], rows: np.ndarray) -> np.ndarray:
    result = np.ones(len(rows), bool)
    for clause in clauses:
        satisfied = np.zeros(len(rows), bool)
        for literal in clause:
            satisfied |= rows[:, abs(literal) - 1] == (literal > 0)
        result &= satisfied
    return result


def check_equivalent(num_vars: int, clauses: Sequence[Sequence[int]]) -> None:
    rows = all_rows(num_vars)
    expected = holds(clauses, rows)
    if not expected.any():
        with pytest.raises(UnsatisfiableError):
            compile_cnf(num_vars, clauses)
        return
    circuit = compile_cnf(num_vars, clauses)
    check_form(circuit)
    assert (evaluate(circuit, rows) == expected).all()
    assert model_count(circuit, num_vars) == expected.sum()


def random_cnf(
    rng: random.Random, num_vars: int, num_clauses: int, widths: Sequence[int] = (1, 2, 3, 3, 4)
) -> list[list[int]]:
    """Random clauses with repeated literals, tautologies and repeated clauses among them."""
    clauses = []
    for _ in range(num_clauses):
        clause = [rng.choice([-1, 1]) * rng.randint(1, num_vars) for _ in range(rng.choice(widths))]
        clauses.extend([clause] * (2 if rng.random() < 0.05 else 1))
    return clauses


# --- correctness -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("num_vars", "clauses"),
    [
        (0, []),
        (3, []),
        (0, [[]]),
        (2, [[1], []]),
        (1, [[1], [-1]]),
        (1, [[1, -1]]),
        (2, [[1, 1, 1], [1]]),
        (3, [[1, 2], [1, 2], [2, 1]]),
        (4, [[1, 2], [3, 4]]),
        (3, [[1, 2, 3], [-1, -2], [-1, -3], [-2, -3]]),
        (3, [[1, 2], [-1, 2], [1, -2]]),
        (2, [[1, 2], [-1, 2], [1, -2], [-1, -2]]),
    ],
)
def test_corner_cases(backend: str, num_vars: int, clauses: list[list[int]]) -> None:
    check_equivalent(num_vars, clauses)


def test_random_small_formulas(backend: str) -> None:
    rng = random.Random(0)
    for _ in range(150 if backend == "python" else 400):
        num_vars = rng.randint(1, 10)
        check_equivalent(num_vars, random_cnf(rng, num_vars, rng.randint(0, 4 * num_vars)))


@needs_native
def test_random_larger_formulas() -> None:
    rng = random.Random(1)
    for _ in range(120):
        num_vars = rng.randint(10, 13)
        check_equivalent(num_vars, random_cnf(rng, num_vars, int(rng.uniform(1, 4.4) * num_vars), (2, 3, 3, 3, 5)))


@needs_native
def test_many_components_under_one_decision() -> None:
    # Blocks become independent once the selector is set, and some are unsatisfiable on one side. Here a careless cache
    # would keep results that depend on a sibling.
    rng = random.Random(2)
    for _ in range(60):
        clauses: list[list[int]] = []
        for block in range(4):
            first = 2 + 3 * block
            for clause in random_cnf(rng, 3, rng.randint(3, 8), (2, 3)):
                shifted = [(abs(x) + first - 1) * (1 if x > 0 else -1) for x in clause]
                clauses.append([*shifted, rng.choice([1, -1])])
        check_equivalent(13, clauses)


@needs_native
def test_agrees_with_the_python_compiler_on_middle_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(3)
    for _ in range(15):
        num_vars = rng.randint(20, 32)
        clauses = random_cnf(rng, num_vars, 3 * num_vars, (2, 3, 3, 3, 3))
        with monkeypatch.context() as patch:
            native = count_or_zero(num_vars, clauses)
            patch.setattr(topdown, "native_library", lambda: None)
            assert native == count_or_zero(num_vars, clauses)


def count_or_zero(num_vars: int, clauses: Sequence[Sequence[int]]) -> int:
    try:
        circuit = compile_cnf(num_vars, clauses)
    except UnsatisfiableError:
        return 0
    check_form(circuit)
    return model_count(circuit, num_vars)


def test_arrays_are_accepted(backend: str) -> None:
    clauses = (np.array([0, 2, 3], np.int32), np.array([1, -2, 3], np.int64))
    assert model_count(compile_cnf(4, clauses), 4) == 6


def test_same_input_same_circuit(backend: str) -> None:
    clauses = random_cnf(random.Random(4), 30, 70, (3,))
    first, second = compile_cnf(30, clauses), compile_cnf(30, clauses)
    assert (first.literal == second.literal).all()
    assert (first.children == second.children).all()


# --- hidden variables ------------------------------------------------------------------------------------------------


def tseitin(rng: random.Random, inputs: int, gates: int) -> tuple[int, list[list[int]]]:
    """A random circuit of and / xor gates with its last gate asserted; gates are the variables after the inputs."""
    clauses: list[list[int]] = []
    for gate in range(inputs + 1, inputs + gates + 1):
        a, b = (rng.choice([-1, 1]) * v for v in rng.sample(range(1, gate), 2))
        if rng.random() < 0.5:
            clauses += [[-gate, a], [-gate, b], [gate, -a, -b]]
        else:
            clauses += [[-gate, a, b], [-gate, -a, -b], [gate, -a, b], [gate, a, -b]]
    return inputs + gates, [*clauses, [inputs + gates]]


def test_hidden_definitions_are_not_counted(backend: str) -> None:
    rng = random.Random(5)
    for _ in range(60):
        inputs = rng.randint(2, 7)
        num_vars, clauses = tseitin(rng, inputs, rng.randint(1, 6))
        hidden = list(range(inputs + 1, num_vars + 1))
        rows = all_rows(num_vars)
        models = rows[holds(clauses, rows)][:, :inputs]
        if not len(models):
            continue
        circuit = compile_cnf(num_vars, clauses, projected_out=hidden)
        check_form(circuit, hidden)
        inputs_only = all_rows(inputs)
        expected = {tuple(m) for m in models.tolist()}
        assert [tuple(r) in expected for r in inputs_only.tolist()] == evaluate(circuit, inputs_only).tolist()
        assert model_count(circuit, inputs) == len(expected) == len(models)


def test_quantified_variables(backend: str) -> None:
    rng = random.Random(7)
    for _ in range(100):
        visible, hidden_count = rng.randint(1, 6), rng.randint(1, 5)
        num_vars = visible + hidden_count
        clauses = random_cnf(rng, num_vars, rng.randint(1, 3 * num_vars), (2, 3, 3))
        rows = all_rows(num_vars)
        expected = {tuple(m) for m in rows[holds(clauses, rows)][:, :visible].tolist()}
        if not expected:
            continue
        hidden = list(range(visible + 1, num_vars + 1))
        circuit = compile_cnf(num_vars, clauses, projected_out=hidden, determined=False)
        check_form(circuit)
        visible_rows = all_rows(visible)
        assert [tuple(r) in expected for r in visible_rows.tolist()] == evaluate(circuit, visible_rows).tolist()


# --- files with known counts -----------------------------------------------------------------------------------------


def read_dimacs(path: Path) -> tuple[int, list[list[int]]]:
    opener = gzip.open if path.suffix == ".gz" else open
    num_vars, clauses, clause = 0, [], []
    with opener(path, "rt") as lines:
        for line in lines:
            words = line.split()
            if not words or words[0] == "c":
                continue
            if words[0] == "%":
                break
            if words[0] == "p":
                num_vars = int(words[2])
                continue
            for literal in map(int, words):
                if literal:
                    clause.append(literal)
                else:
                    clauses.append(clause)
                    clause = []
    return num_vars, clauses


@pytest.mark.usefixtures("backend")
def test_uf20_counts(shared_data: Path) -> None:
    oracles = shared_data / "oracles"
    for name, count in json.loads((oracles / "uf20_counts.json").read_text()).items():
        num_vars, clauses = read_dimacs(oracles / "uf20" / name)
        assert count_or_zero(num_vars, clauses) == count, name


@needs_native
def test_competition_counts(shared_data: Path) -> None:
    oracles = shared_data / "oracles"
    for row in json.loads((oracles / "mc2022_counts.json").read_text()):
        # The slow ones belong to the benchmark.
        if row["weighted"] or not row["exact_count"] or row["sec_pyganak"] > 0.2 or row["name"] == "mc2022_track1_002":
            continue
        num_vars, clauses = read_dimacs(oracles / "mc2022" / f"{row['name']}.cnf.gz")
        circuit = compile_cnf(num_vars, clauses, Budget(timeout=30))
        assert model_count(circuit, num_vars) == int(row["exact_count"]), row["name"]


@pytest.mark.usefixtures("backend")
def test_circuit_tests_of_ganak(shared_data: Path) -> None:
    for path in sorted((shared_data / "oracles" / "ganak_tests").glob("*.cnf")):
        num_vars, clauses = read_dimacs(path)
        if num_vars <= 16:
            check_equivalent(num_vars, clauses)


# --- size ------------------------------------------------------------------------------------------------------------


@needs_native
def test_long_chain() -> None:
    n = 50_000
    circuit = compile_cnf(n, [[-v, v + 1] for v in range(1, n)], Budget(timeout=60))
    assert model_count_small_scopes(circuit) == n + 1


def model_count_small_scopes(circuit: Ddnnf) -> int:
    """Count modulo 2^61 - 1 from scope sizes alone: bit sets of 50,000 variables would be slow."""
    modulus = 2**61 - 1
    counts, sizes = [], []
    for node in range(circuit.num_nodes):
        children = children_of(circuit, node)
        if circuit.kind[node] == LITERAL:
            counts.append(1)
            sizes.append(1)
        elif circuit.kind[node] == PRODUCT:
            counts.append(math.prod(counts[c] for c in children) % modulus)
            sizes.append(sum(sizes[c] for c in children))
        else:
            size = max(sizes[c] for c in children)
            counts.append(sum(counts[c] * pow(2, size - sizes[c], modulus) for c in children) % modulus)
            sizes.append(size)
    return counts[-1]


def test_deep_propagation_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topdown, "native_library", lambda: None)
    n = 20_000
    circuit = compile_cnf(n, [[1], *([-v, v + 1] for v in range(1, n))])
    assert circuit.num_nodes == n + 1


def test_declared_variables_cost_nothing(backend: str) -> None:
    assert compile_cnf(2**30 - 1, [[5, -(2**30 - 1)]]).num_nodes == 5


# --- budgets, interruption, bad input --------------------------------------------------------------------------------


def hard_cnf() -> tuple[int, list[list[int]]]:
    return 150, random_cnf(random.Random(6), 150, 330, (3,))


def test_time_budget(backend: str) -> None:
    began = time.monotonic()
    with pytest.raises(CompilationBudgetError, match="time"):
        compile_cnf(*hard_cnf(), Budget(timeout=0.5))
    assert time.monotonic() - began < 10


def test_node_budget(backend: str) -> None:
    with pytest.raises(CompilationBudgetError, match="nodes"):
        compile_cnf(*hard_cnf(), Budget(max_nodes=500, timeout=20))


def test_memory_budget(backend: str) -> None:
    with pytest.raises(CompilationBudgetError, match="memory"):
        compile_cnf(*hard_cnf(), Budget(memory=2_000_000, timeout=20))


@needs_native
def test_components_are_forgotten_before_memory_runs_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """If all components together exceed the budget, some are forgotten and searched again; nothing is lost."""
    # the budget is so small that memory left over from other tests would matter
    monkeypatch.setattr("semprola.compiler.budget._resident", lambda: None)
    clauses = random_cnf(random.Random(3), 60, 170, (3,))

    def compiled(memory: int | None) -> tuple[int, int]:
        made = compile_cnf(60, clauses, Budget(memory=memory))
        return made.num_nodes, circuit_of(made, [str(v) for v in range(1, 61)]).model_count()

    (nodes, models), (less_memory_nodes, same_models) = compiled(None), compiled(5_400_000)
    assert models == same_models
    assert less_memory_nodes <= 1.1 * nodes


def test_progress_is_reported_and_may_stop_the_compilation(backend: str) -> None:
    seen: list[Progress] = []

    def stop(progress: Progress) -> None:
        seen.append(progress)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compile_cnf(*hard_cnf(), Budget(timeout=20, progress=stop))
    assert seen[0].phase.startswith("compiling top-down")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@needs_native
def test_ctrl_c_stops_within_a_second() -> None:
    # In a process of its own: the interrupt must not reach the test run.
    script = f"""
        import os, signal, threading, time
        from semprola.compiler.backends.topdown.search import compile_cnf

        def interrupt():
            global sent
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

        threading.Timer(0.5, interrupt).start()
        try:
            compile_cnf(*{hard_cnf()!r})
        except KeyboardInterrupt:
            print(time.monotonic() - sent)
    """
    command = [sys.executable, "-c", textwrap.dedent(script)]
    output = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    assert float(output) < 1


@pytest.mark.parametrize(
    ("num_vars", "clauses"),
    [
        (2, [[0]]),
        (2, [[1], [3]]),
        (2, [[-3]]),
        (2, [[1.5]]),
        (2, [["a"]]),
        (2, [1, 2]),
        (-1, []),
        (2**40, []),
        (2, [[10**30]]),
        (2, (np.array([0, 5]), np.array([1, 2]))),
        (2, (np.array([0, 2, 1, 2]), np.array([1, 2]))),
        (2, (np.array([0.0, 1.0]), np.array([1]))),
    ],
)
def test_bad_clauses(backend: str, num_vars: int, clauses: object) -> None:
    with pytest.raises(FormatError):
        compile_cnf(num_vars, clauses)  # type: ignore[arg-type]


def test_bad_options(backend: str) -> None:
    with pytest.raises(FormatError, match="projected_out: 3"):
        compile_cnf(2, [[1, 2]], projected_out=[3])
    with pytest.raises(FormatError, match="not determined"):
        compile_cnf(2, [[1, 2]], projected_out=[2])
