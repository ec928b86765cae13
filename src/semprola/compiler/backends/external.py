"""External compilers that the user has installed: they get clauses, and the circuit that they return is not trusted.

It is parsed, proven to be decomposable and deterministic, and proven to be equivalent to the clauses: every clause
follows from it, and the clauses together with its negation have no model.
"""

from __future__ import annotations

import functools
import operator
import os
import signal
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from semprola.circuit import Circuit, CircuitBuilder
from semprola.circuit.fold import fold
from semprola.circuit.nnf_files import read_nnf
from semprola.circuit.transforms import smooth
from semprola.compiler.backends import Components
from semprola.compiler.backends.topdown.backend import compile_clauses, encoded
from semprola.compiler.backends.topdown.tseitin import Encoding
from semprola.compiler.budget import Budget
from semprola.errors import FormatError, SemprolaError, UnsatisfiableError
from semprola.logic.cnf import Cnf
from semprola.logic.dimacs import write_dimacs

_COMMANDS = {
    "d4": ["-dDNNF", "{cnf}", "-out={nnf}"],
    "d4v2": ["-i", "{cnf}", "-m", "ddnnf-compiler", "--dump-ddnnf", "{nnf}"],
    "dsharp": ["-q", "-Fnnf", "{nnf}", "{cnf}"],
    "c2d": ["-in", "{cnf}"],
    "sharpsat-td": ["-dDNNF", "-decot", "1", "-decow", "100", "-tmpdir", "{folder}", "-dDNNF_out", "{nnf}", "{cnf}"],
}
"""How each compiler is called; c2d writes its output next to its input."""
_POLL_SECONDS = 0.05
_BLOCK = 4096


def is_external(backend: str) -> bool:
    """Whether a back end is a compiler and its path, such as "d4:/usr/local/bin/d4"."""
    name, colon, path = backend.partition(":")
    return bool(colon and path) and name in _COMMANDS


def compile_external(components: Components, backend: str, budget: Budget) -> Circuit:
    """A circuit made by an external compiler and checked here.

    Args:
        backend: the kind of compiler and its path, such as "d4:/usr/local/bin/d4".
    """
    name, _, path = backend.partition(":")
    encoding = encoded(components, budget)
    clauses = [clause for clause in encoding.clauses if clause]
    if len(clauses) < len(encoding.clauses):
        raise UnsatisfiableError("the constraint has no model")
    with tempfile.TemporaryDirectory(prefix="semprola-") as folder:
        cnf, nnf = Path(folder) / "constraint.cnf", Path(folder) / "constraint.cnf.nnf"
        write_dimacs(Cnf(encoding.num_vars, clauses), cnf)
        words = [word.format(cnf=cnf, nnf=nnf, folder=folder) for word in _COMMANDS[name]]
        _run([path, *words], folder, budget, name)
        if not nnf.is_file():
            raise FormatError(f"{path} wrote no circuit: check that it is {name} and that it runs on its own")
        variables = [str(v) for v in range(1, encoding.num_vars + 1)]
        try:
            circuit = read_nnf(nnf, labels=variables)
        except UnsatisfiableError:
            circuit = None
    budget.check("checking the circuit", 0 if circuit is None else circuit.num_nodes)
    _check(circuit, encoding, budget, path)
    if circuit is None:
        raise UnsatisfiableError("the constraint has no model")
    return _projected(circuit, encoding)


def entails(circuit: Circuit, clauses: Sequence[Sequence[int]], check: Callable[[], None] | None = None) -> bool:
    """Whether every model of a decomposable circuit satisfies all clauses of DIMACS literals.

    A clause fails in some model if and only if the circuit can still be true with all literals of the clause false. In
    a decomposable circuit this can be checked node by node, here for thousands of clauses at a time. `check` is called
    from time to time and may raise an exception to stop.
    """
    if circuit.zero_suppressed.any():
        circuit = smooth(circuit, circuit.zero_suppressed)
    for first in range(0, len(clauses), _BLOCK):
        block = clauses[first : first + _BLOCK]
        whole = (1 << len(block)) - 1
        # Python integers as bit vectors: one bit per clause, set if the node can be true
        blocked: dict[int, int] = defaultdict(int)
        for i, clause in enumerate(block):
            for item in clause:
                blocked[item] |= 1 << i
        possible = fold(
            circuit,
            lambda signed, blocked=blocked, whole=whole: whole & ~blocked[signed],  # type: ignore[misc]
            lambda _, parts, whole=whole: functools.reduce(operator.and_, parts, whole),  # type: ignore[misc]
            lambda _, parts: functools.reduce(operator.or_, parts),
            check,
        )
        if possible:
            return False
    return True


def _check(circuit: Circuit | None, encoding: Encoding, budget: Budget, path: str) -> None:
    clauses, count = list(encoding.clauses), encoding.num_vars
    if circuit is not None:
        if not entails(circuit, clauses, lambda: budget.check("checking the circuit", circuit.num_nodes)):
            raise FormatError(f"{path} wrote a wrong circuit: it has a model that the constraint forbids")
        more, root = _definitions(circuit, count)
        clauses += [*more, (-root,)]
        count = max(count, root, circuit.num_nodes + count)
    try:
        compile_clauses(count, clauses, budget, projected_out=range(encoding.num_vars + 1, count + 1))
    except UnsatisfiableError:
        return
    raise FormatError(f"{path} wrote a wrong circuit: it lacks a model of the constraint")


def _definitions(circuit: Circuit, offset: int) -> tuple[list[tuple[int, ...]], int]:
    """Clauses that define a variable equivalent to each inner node, and the literal of the root."""
    clauses: list[tuple[int, ...]] = []

    def named(node: int, parts: list[int], sign: int) -> int:
        name = offset + node + 1
        clauses.extend((-sign * name, sign * part) for part in parts)
        clauses.append((sign * name, *(-sign * part for part in parts)))
        return name

    root = fold(
        circuit,
        lambda signed: signed,
        lambda node, parts: named(node, parts, 1),
        lambda node, parts: named(node, parts, -1),
    )
    return clauses, root


def _projected(circuit: Circuit, encoding: Encoding) -> Circuit:
    """The circuit without auxiliary variables; the labels determine them, so no two models become one."""
    builder = CircuitBuilder(encoding.names)
    labels = len(encoding.names)
    root = fold(
        circuit,
        lambda signed: builder.literal(abs(signed) - 1, signed > 0) if abs(signed) <= labels else builder.true(),
        lambda _, parts: builder.product(parts),
        lambda _, parts: builder.sum(parts),
    )
    return builder.build(root)


def _run(command: Sequence[str], folder: str, budget: Budget, name: str) -> None:
    """Run a program in its own session; end the whole session if the budget runs out or the user stops it."""
    try:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_memory_limit(budget.memory),
        )
    except OSError as error:
        raise SemprolaError(f"cannot run {command[0]}: {error.strerror or error}: check the path in backend=") from None
    try:
        while process.poll() is None:
            budget.check(f"compiling with {name}")
            time.sleep(_POLL_SECONDS)
    finally:
        if process.poll() is None:
            _end(process)
    # d4 and others exit with their own codes (10, 20) after success: what counts is what they wrote
    if process.returncode < 0:
        if budget.memory is not None:
            raise budget.error("memory")
        raise SemprolaError(f"{command[0]} was ended by {signal.Signals(-process.returncode).name}: run it on its own")


def _end(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    process.wait()


def _memory_limit(memory: int | None) -> Callable[[], None] | None:
    if memory is None or os.name != "posix":
        return None

    def limit() -> None:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    return limit
