"""The PySDD process: its answers are right, and nothing that happens to it affects the user's process."""

from __future__ import annotations

import itertools
import math
import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from selection import spread

from semprola.circuit import Circuit, CircuitBuilder, Vtree
from semprola.compiler.backends.sdd import process as sdd_process
from semprola.compiler.backends.sdd.diagrams import run
from semprola.compiler.backends.sdd.program import Program
from semprola.compiler.budget import Budget, Progress
from semprola.errors import CompilationBudgetError, SemprolaError, UnsatisfiableError

NAMES = tuple("abcdefgh")
posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and fork")


def random_step(program: Program, rng: random.Random, variables: int, size: int) -> tuple[int, np.ndarray]:
    """A random step and its value on every assignment, computed alongside."""
    rows = np.array(list(itertools.product([False, True], repeat=variables)))
    pool = [(program.literal(v + 1), rows[:, v]) for v in range(variables)]
    for _ in range(size):
        (a, x), (b, y), (c, z) = (rng.choice(pool) for _ in range(3))
        pool.append(
            rng.choice(
                [
                    lambda a=a, b=b, x=x, y=y: (program.conjoin(a, b), x & y),
                    lambda a=a, b=b, x=x, y=y: (program.disjoin(a, b), x | y),
                    lambda a=a, x=x: (program.negate(a), ~x),
                    lambda a=a, b=b, c=c, x=x, y=y, z=z: (program.choose(a, b, c), np.where(x, y, z)),
                ]
            )()
        )
    return pool[-1]


def random_vtree(rng: random.Random, count: int) -> Vtree:
    order = rng.sample(range(count), count)
    kind = rng.randrange(3)
    if kind == 0:
        return Vtree.right_linear(order)
    return (
        Vtree.balanced(order)
        if kind == 1
        else Vtree.from_forest([rng.randrange(-1, v) if v else -1 for v in range(count)])
    )


def hard_program(variables: int = 150, seed: int = 0) -> tuple[Program, list[int], Vtree, tuple[str, ...]]:
    """Random 3-clauses that keep PySDD busy for minutes."""
    rng = random.Random(seed)
    program = Program()
    root = program.true
    for _ in range(3 * variables):
        clause = program.false
        for v in rng.sample(range(1, variables + 1), 3):
            clause = program.disjoin(clause, program.literal(rng.choice((v, -v))))
        root = program.conjoin(root, clause)
    return program, [root], Vtree.balanced(range(variables)), tuple(f"v{v}" for v in range(variables))


class TestRun:
    @pytest.mark.parametrize("seed", spread(range(60), 25))
    def test_random_programs_agree_with_their_truth_tables(self, seed: int) -> None:
        rng = random.Random(seed)
        count = rng.randrange(1, 7)
        program = Program()
        step, truth = random_step(program, rng, count, rng.randrange(1, 25))
        rows = np.array(list(itertools.product([0, 1], repeat=count)))
        try:
            circuit = run(program, [step], random_vtree(rng, count), NAMES[:count])
        except UnsatisfiableError:
            assert not truth.any()
            return
        np.testing.assert_array_equal(circuit.satisfied(rows), truth)
        assert circuit.model_count() == truth.sum()
        assert circuit.is_decomposable
        assert circuit.is_deterministic
        assert circuit.is_structured

    def test_several_roots_are_conjoined(self) -> None:
        program = Program()
        a, b, c, d = (program.literal(v) for v in (1, 2, 3, 4))
        roots = [program.disjoin(a, b), program.disjoin(c, program.negate(d)), program.true]
        circuit = run(program, roots, Vtree.balanced(range(4)), NAMES[:4])
        assert circuit.model_count() == 9
        assert circuit.is_structured

    def test_all_roots_true(self) -> None:
        program = Program()
        assert run(program, [program.true], Vtree.balanced(range(2)), NAMES[:2]).model_count() == 4

    def test_counts_beyond_machine_words(self) -> None:
        program = Program()
        row = [program.constant(j == 50) for j in range(52)]
        for v in range(100, 0, -1):
            literal = program.literal(v)
            row = [program.choose(literal, row[min(j + 1, 51)], row[j]) for j in range(52)]
        circuit = run(program, [row[0]], Vtree.right_linear(range(100)), tuple(f"x{v}" for v in range(100)))
        assert circuit.model_count() == math.comb(100, 50)

    def test_a_deep_vtree(self) -> None:
        program = Program()
        count = 5000
        step = program.true
        for v in range(count, 0, -1):
            step = (program.conjoin if v % 2 else program.disjoin)(program.literal(v), step)
        circuit = run(program, [step], Vtree.right_linear(range(count)), tuple(map(str, range(count))))
        assert circuit.is_decomposable

    def test_a_literal_outside_the_vtree_is_refused_here(self) -> None:
        program = Program()
        with pytest.raises(ValueError, match="not a variable of the vtree"):
            run(program, [program.literal(7)], Vtree.balanced(range(2)), NAMES[:2])


class TestLimits:
    def test_time(self) -> None:
        began = time.monotonic()
        with pytest.raises(CompilationBudgetError) as caught:
            run(*hard_program(), Budget(timeout=0.5))
        assert caught.value.resource == "time"
        assert time.monotonic() - began < 5

    @pytest.mark.skipif(not sys.platform.startswith("linux"), reason="address-space limits are set on Linux only")
    def test_memory(self) -> None:
        with pytest.raises(CompilationBudgetError) as caught:
            run(*hard_program(), Budget(timeout=60, memory=50_000_000))
        assert caught.value.resource == "memory"

    def test_nodes(self) -> None:
        with pytest.raises(CompilationBudgetError) as caught:
            run(*hard_program(), Budget(timeout=60, max_nodes=2000))
        assert caught.value.resource == "nodes"

    def test_the_next_request_is_unaffected(self) -> None:
        for limits in (Budget(timeout=0.2), Budget(timeout=60, max_nodes=100)):
            with pytest.raises(CompilationBudgetError):
                run(*hard_program(), limits)
            program = Program()
            step = program.disjoin(program.literal(1), program.literal(2))
            assert run(program, [step], Vtree.balanced(range(2)), NAMES[:2]).model_count() == 3


@posix
class TestProcess:
    def test_killed_in_the_middle(self) -> None:
        def on_progress(_: Progress) -> None:
            assert sdd_process._State.worker is not None
            os.kill(sdd_process._State.worker.process.pid, signal.SIGKILL)

        with pytest.raises(SemprolaError, match="ended from outside by SIGKILL"):
            run(*hard_program(), Budget(timeout=60, progress=on_progress))

    def test_killed_while_idle(self) -> None:
        program = Program()
        step = program.disjoin(program.literal(1), program.literal(2))
        run(program, [step], Vtree.balanced(range(2)), NAMES[:2])
        assert sdd_process._State.worker is not None
        sdd_process._State.worker.process.kill()
        sdd_process._State.worker.process.wait()
        assert run(program, [step], Vtree.balanced(range(2)), NAMES[:2]).model_count() == 3

    def test_an_exception_in_the_callback_ends_it(self) -> None:
        def on_progress(_: Progress) -> None:
            raise RuntimeError("enough")

        with pytest.raises(RuntimeError, match="enough"):
            run(*hard_program(), Budget(timeout=60, progress=on_progress))
        assert sdd_process._State.worker is None

    def test_threads_share_it(self) -> None:
        counts: dict[int, int] = {}

        def work(width: int) -> None:
            program = Program()
            step = program.false
            for v in range(width):
                step = program.disjoin(step, program.literal(v + 1))
            counts[width] = run(program, [step], Vtree.balanced(range(width)), NAMES[:width]).model_count()

        threads = [threading.Thread(target=work, args=(width,)) for width in (2, 3, 4, 5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert counts == {width: 2**width - 1 for width in (2, 3, 4, 5)}

    def test_after_fork(self) -> None:
        code = """
            import os
            from semprola.compiler import compile
            assert compile("a | b").model_count() == 3
            child = os.fork()
            if child == 0:
                os._exit(0 if compile("a | b | c").model_count() == 7 else 1)
            assert os.waitpid(child, 0)[1] == 0
            assert compile("a | b | c | d").model_count() == 15
        """
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", textwrap.dedent(code)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        assert not done.stderr

    @pytest.mark.parametrize("sent", spread([signal.SIGINT, signal.SIGKILL], 1))
    def test_interrupted_parent_leaves_no_orphan(self, sent: signal.Signals) -> None:
        code = """
            import random
            from semprola.compiler.backends.sdd import process as sdd_process
            from semprola.compiler import compile
            from semprola.logic import And, Bool, Or
            rng = random.Random(0)
            pick = lambda: [Bool(f"v{v}") ^ (rng.random() < 0.5) for v in rng.sample(range(150), 3)]
            told = []
            def tell(progress):
                if progress.nodes and not told:
                    told.append(1)
                    print(sdd_process._State.worker.process.pid, flush=True)
            compile(And(Or(pick()) for _ in range(450)), backend="sdd", progress=tell, timeout=60)
        """
        parent = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        began = time.monotonic()
        parent.send_signal(sent)
        _, errors = parent.communicate(timeout=20)
        assert time.monotonic() - began < 5  # a second on an idle machine
        if sent == signal.SIGINT:
            assert "KeyboardInterrupt" in errors
        for _ in range(50):
            if not _running(worker):
                break
            time.sleep(0.1)
        assert not _running(worker)


class TestWriteSdd:
    @pytest.mark.parametrize("seed", range(8))
    def test_pysdd_reads_it_back(self, seed: int, tmp_path: Path) -> None:
        rng = random.Random(seed)
        program = Program()
        step, truth = random_step(program, rng, 5, 12)
        if not truth.any():
            pytest.skip("this one has no model")
        circuit = run(program, [step], random_vtree(rng, 5), NAMES[:5])
        self.check(circuit, tmp_path)

    def test_zero_suppressed_without_a_vtree(self, tmp_path: Path) -> None:
        builder = CircuitBuilder(["a", "b", "c"])
        one = [builder.literal(v, True) for v in range(3)]
        circuit = builder.build(builder.sum([one[0], builder.product(one[1:])]), zero_suppressed=[True] * 3)
        assert circuit.model_count() == 2
        self.check(circuit, tmp_path)
        self.check(circuit, tmp_path, Vtree.balanced([2, 1, 0]))

    def test_no_draft_is_left_when_it_fails(self, tmp_path: Path) -> None:
        builder = CircuitBuilder(["a"])
        circuit = builder.build(builder.literal(0, True))
        with pytest.raises(FileNotFoundError):
            circuit.write_sdd(tmp_path / "k.sdd", tmp_path / "missing" / "k.vtree")
        assert not list(tmp_path.iterdir())
        with pytest.raises(ValueError, match="the vtree has 2 variables"):
            circuit.write_sdd(tmp_path / "k.sdd", tmp_path / "k.vtree", Vtree.balanced(range(2)))

    def check(self, circuit: Circuit, folder: Path, vtree: Vtree | None = None) -> None:
        circuit.write_sdd(folder / "k.sdd", folder / "k.vtree", vtree)
        assert sorted(path.name for path in folder.iterdir()) == ["k.sdd", "k.vtree"]
        code = """
            import sys
            from pysdd.sdd import SddManager, Vtree
            manager = SddManager.from_vtree(Vtree.from_file(sys.argv[2]))
            print(manager.global_model_count(manager.read_sdd_file(sys.argv[1].encode())))
        """
        command = [sys.executable, "-c", textwrap.dedent(code), str(folder / "k.sdd"), str(folder / "k.vtree")]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        assert int(done.stdout) == circuit.model_count()


def _running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")
