"""Top-down knowledge compilation: from a CNF to a decision-DNNF.

The compiler proper is native (`_native_src/ddnnf*.cpp`): exhaustive DPLL with conflict learning, connected components,
a component cache, and branching guided by a tree decomposition. Where the native module is absent the same circuits, up
to the order of decisions, come from `_topdown_python`, which is meant for small inputs.
"""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from semprola._library import open_library
from semprola.compiler._topdown_python import BudgetExceeded, NotDetermined, compile_arrays
from semprola.errors import CompilationBudgetError, FormatError, SemprolaError, UnsatisfiableError

LITERAL, PRODUCT, SUM = 0, 1, 2

_POLL_SECONDS = 0.05

Csr = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
Clauses = Sequence[Sequence[int]] | Csr


@dataclass(frozen=True)
class Ddnnf:
    """A decision-DNNF as flat arrays: children before parents, the root last, no two nodes equal.

    A product without children is TRUE; there is no FALSE. Every sum has two children, which disagree on a decision
    variable: each is that variable's literal or a product with that literal among its children. Not smoothed:
    variables that do not occur below a node are free there.

    Attributes:
        kind: [nodes] LITERAL, PRODUCT or SUM.
        literal: [nodes] DIMACS literal of a LITERAL, else 0.
        child_start: [nodes + 1] the children of node n are `children[child_start[n]:child_start[n + 1]]`.
        children: [edges] node numbers.
    """

    kind: npt.NDArray[np.int8]
    literal: npt.NDArray[np.int32]
    child_start: npt.NDArray[np.int64]
    children: npt.NDArray[np.int32]

    @property
    def num_nodes(self) -> int:
        """Number of nodes, leaves included."""
        return len(self.kind)

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self.children)


@dataclass(frozen=True)
class Progress:
    """How far a compilation is.

    Attributes:
        phase: "simplify", "order" or "search".
        seconds: time since the start.
        nodes: nodes emitted so far.
        edges: edges emitted so far.
        decisions: steps of the search so far.
        cache_entries: components remembered.
        memory: bytes held by the compiler.
        width: width of the tree decomposition that guides the search, 0 if there is none yet.
    """

    phase: str
    seconds: float
    nodes: int
    edges: int = 0
    decisions: int = 0
    cache_entries: int = 0
    memory: int = 0
    width: int = 0


def compile_cnf(
    num_vars: int,
    clauses: Clauses,
    *,
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | None = None,
    progress: Callable[[Progress], None] | None = None,
    projected_out: Sequence[int] = (),
    determined: bool = True,
) -> Ddnnf:
    """Compile a CNF to a decision-DNNF with the same models.

    Args:
        num_vars: number of variables; literals are ±1 … ±num_vars.
        clauses: a sequence of sequences of DIMACS literals, or a pair of arrays (start, literals) in which clause c
            is `literals[start[c]:start[c + 1]]`.
        timeout: seconds; None for no limit.
        max_nodes: nodes of the circuit; None for no limit.
        memory: bytes held by the compiler; None for three quarters of the machine's memory.
        progress: called several times a second, from the calling thread.
        projected_out: variables to leave out of the circuit.
        determined: whether the other variables determine those in every model, as they do the definitions of a
            Tseitin encoding. Then the search may branch on them; sums that decide on one of them stay deterministic,
            because their sides still have no model in common, but show no conflicting literal. If False they are
            existentially quantified: never branched on, so that every sum shows its decision.

    Returns:
        The circuit, over the variables that are not projected out.

    Raises:
        UnsatisfiableError: the CNF has no model.
        CompilationBudgetError: time, nodes or memory ran out.
        FormatError: a literal or an option is out of range, or a variable was seen not to be determined.

    Example:
        >>> circuit = compile_cnf(2, [[1, 2]])
        >>> sorted(circuit.literal.tolist()), circuit.num_edges
        ([-1, 0, 0, 1, 2], 4)
    """
    began = time.monotonic()
    start, literals = _csr(num_vars, clauses)
    hidden = _variables(num_vars, projected_out)
    # The compiler sees only variables that occur: a declared variable costs nothing.
    used = np.unique(np.abs(literals))
    compact = np.searchsorted(used, np.abs(literals)) + 1
    task = _Task(
        num_vars=len(used),
        start=start,
        literals=np.where(literals < 0, -compact, compact).astype(np.int32),
        hidden=np.isin(used, hidden).astype(np.uint8),
        determined=determined,
        began=began,
        timeout=_budget("timeout", timeout),
        max_nodes=_budget("max_nodes", max_nodes),
        memory=_budget("memory", memory),
        progress=progress,
    )
    library = native_library()
    circuit = _run_python(task) if library is None else _run_native(library, task)
    if len(used) == 0:
        return circuit
    original = np.sign(circuit.literal) * used[np.maximum(np.abs(circuit.literal), 1) - 1]
    return Ddnnf(circuit.kind, original.astype(np.int32), circuit.child_start, circuit.children)


@functools.lru_cache(maxsize=1)
def native_library() -> ctypes.CDLL | None:
    """The native module with the compiler's functions declared, or None where there is none that fits this code."""
    library = open_library()
    if library is None:
        return None
    try:
        _declare(library)
    except AttributeError:
        return None  # built before these functions existed
    return library


class Shared(ctypes.Structure):
    """Memory shared with a running native call; mirrors `struct Shared` of ddnnf_common.hpp."""

    _fields_ = (
        ("stop", ctypes.c_int32),
        ("phase", ctypes.c_int32),
        ("nodes", ctypes.c_int64),
        ("edges", ctypes.c_int64),
        ("decisions", ctypes.c_int64),
        ("conflicts", ctypes.c_int64),
        ("cache_entries", ctypes.c_int64),
        ("cache_hits", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("width", ctypes.c_int64),
    )


def call_interruptibly(function: Callable[..., int], shared: Shared, *args: Any, poll: Callable[[], None]) -> int:
    """Run a native function in a thread, polling from this one; any exception here, Ctrl-C too, stops it first."""
    result: list[int] = []
    worker = threading.Thread(target=lambda: result.append(function(*args)), daemon=True)
    worker.start()
    try:
        worker.join(_POLL_SECONDS)
        while worker.is_alive():
            poll()
            worker.join(_POLL_SECONDS)
    except BaseException:
        shared.stop = 1
        worker.join()
        raise
    return result[0]


@dataclass(frozen=True)
class _Task:
    num_vars: int
    start: npt.NDArray[np.int64]
    literals: npt.NDArray[np.int32]
    hidden: npt.NDArray[np.uint8]
    determined: bool
    began: float
    timeout: float | None
    max_nodes: float | None
    memory: float | None
    progress: Callable[[Progress], None] | None


_PHASES = ("simplify", "order", "search")


def _run_native(library: ctypes.CDLL, task: _Task) -> Ddnnf:
    shared, handle, sizes = Shared(), ctypes.c_void_p(), (ctypes.c_int64 * 2)()

    def report() -> None:
        if task.progress is not None:
            task.progress(
                Progress(
                    phase=_PHASES[shared.phase],
                    seconds=time.monotonic() - task.began,
                    nodes=shared.nodes,
                    edges=shared.edges,
                    decisions=shared.decisions,
                    cache_entries=shared.cache_entries,
                    memory=shared.bytes,
                    width=shared.width,
                )
            )

    status = call_interruptibly(
        library.semprola_ddnnf_compile,
        shared,
        task.num_vars,
        len(task.start) - 1,
        task.start.ctypes.data,
        task.literals.ctypes.data,
        task.hidden.ctypes.data,
        int(task.determined),
        -1.0 if task.timeout is None else max(0.0, task.began + task.timeout - time.monotonic()),
        -1 if task.max_nodes is None else int(task.max_nodes),
        int(_default_memory() if task.memory is None else task.memory),
        ctypes.byref(shared),
        ctypes.byref(handle),
        sizes,
        poll=report,
    )
    if status != 0:
        raise _error(status, task)
    try:
        circuit = Ddnnf(
            kind=np.empty(sizes[0], np.int8),
            literal=np.empty(sizes[0], np.int32),
            child_start=np.empty(sizes[0] + 1, np.int64),
            children=np.empty(sizes[1], np.int32),
        )
        arrays = (circuit.kind, circuit.literal, circuit.child_start, circuit.children)
        library.semprola_ddnnf_copy(handle, *(array.ctypes.data for array in arrays))
    finally:
        library.semprola_ddnnf_free(handle)
    return circuit


def _run_python(task: _Task) -> Ddnnf:
    flat = task.literals.tolist()
    clauses = [flat[a:b] for a, b in itertools.pairwise(task.start.tolist())]

    def report(seconds: float, nodes: int) -> None:
        if task.progress is not None:
            task.progress(Progress(phase="search", seconds=seconds, nodes=nodes))

    try:
        arrays = compile_arrays(
            clauses,
            {int(v) + 1 for v in np.flatnonzero(task.hidden)},
            task.determined,
            timeout=None if task.timeout is None else task.began + task.timeout - time.monotonic(),
            max_nodes=task.max_nodes,
            memory=_default_memory() if task.memory is None else task.memory,
            report=report,
        )
    except BudgetExceeded as exceeded:
        raise _error(_BUDGET_STATUS[str(exceeded)], task) from None
    except NotDetermined:
        raise _error(_NOT_DETERMINED, task) from None
    if arrays is None:
        raise _error(_UNSATISFIABLE, task)
    return Ddnnf(*arrays)


# Mirrors `enum Status` of ddnnf_common.hpp.
_UNSATISFIABLE, _TIMEOUT, _TOO_MANY_NODES, _OUT_OF_MEMORY, _NOT_DETERMINED = 1, 2, 3, 4, 6
_BUDGET_STATUS = {"time": _TIMEOUT, "nodes": _TOO_MANY_NODES, "memory": _OUT_OF_MEMORY}


def _error(status: int, task: _Task) -> SemprolaError:
    if status == _UNSATISFIABLE:
        return UnsatisfiableError("the clauses have no model; remove or weaken a rule")
    if status == _NOT_DETERMINED:
        return FormatError("projected_out: a variable there is not determined by the others; use determined=False")
    limit = {
        _TIMEOUT: f"time than timeout={task.timeout or 0:g} s",
        _TOO_MANY_NODES: f"nodes than max_nodes={int(task.max_nodes or 0)}",
        _OUT_OF_MEMORY: "memory than "
        + ("this machine has" if task.memory is None else f"memory={int(task.memory)} bytes"),
    }.get(status)
    if limit is None:
        return SemprolaError(f"the native compiler failed with status {status}; try another back end")
    advice = "raise the limit, simplify the constraint or try another back end"
    return CompilationBudgetError(f"compilation needs more {limit}; {advice}")


def _declare(library: ctypes.CDLL) -> None:
    pointer, i64, i32, f64 = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int32, ctypes.c_double
    compile_ = library.semprola_ddnnf_compile
    compile_.argtypes = [i64, i64, pointer, pointer, pointer, i32, f64, i64, i64, pointer, pointer, pointer]
    compile_.restype = i32
    library.semprola_ddnnf_copy.argtypes = [pointer] * 5
    library.semprola_ddnnf_copy.restype = None
    library.semprola_ddnnf_free.argtypes = [pointer]
    library.semprola_ddnnf_free.restype = None
    order = library.semprola_elimination_order
    order.argtypes = [i64, i64, pointer, pointer, i32, i64, f64, pointer, pointer]
    order.restype = i64


def _csr(num_vars: int, clauses: Clauses) -> Csr:
    """Check the clauses and return them as contiguous arrays."""
    if not 0 <= num_vars < 2**30:
        raise FormatError(f"num_vars: {num_vars} is not between 0 and {2**30 - 1}")
    if isinstance(clauses, tuple) and len(clauses) == 2 and all(isinstance(a, np.ndarray) for a in clauses):
        start, literals = np.asarray(clauses[0]), np.asarray(clauses[1])
        if start.dtype.kind not in "iu" or literals.dtype.kind not in "iu" or start.ndim != 1 or literals.ndim != 1:
            raise FormatError("clauses: start and literals must be one-dimensional integer arrays")
        if (
            len(start) == 0
            or start[0] != 0
            or start[-1] != len(literals)
            or (np.diff(start.astype(np.int64)) < 0).any()
        ):
            raise FormatError("clauses: start must rise from 0 to the number of literals")
    else:
        try:
            rows = [list(clause) for clause in clauses]
            start = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
            flat = [literal for row in rows for literal in row]
            literals = np.array(flat) if flat else np.zeros(0, np.int64)
        except (TypeError, ValueError) as error:
            raise FormatError(f"clauses: expected a sequence of sequences of integers ({error})") from None
        if literals.dtype.kind not in "iu" or literals.ndim != 1:
            raise FormatError("clauses: expected a sequence of sequences of integers")
    bad = np.flatnonzero((literals == 0) | (literals > num_vars) | (literals < -num_vars))
    if len(bad):
        clause = int(np.searchsorted(start, bad[0], side="right"))
        raise FormatError(f"clause {clause}: literal {literals[bad[0]]} is not between ±1 and ±{num_vars}")
    return np.ascontiguousarray(start, np.int64), np.ascontiguousarray(literals, np.int32)


def _variables(num_vars: int, variables: Sequence[int]) -> npt.NDArray[np.int64]:
    for v in variables:
        if not 1 <= v <= num_vars:
            raise FormatError(f"projected_out: {v} is not a variable between 1 and {num_vars}")
    return np.array(list(variables), dtype=np.int64)


def _budget(name: str, value: float | None) -> float | None:
    if value is None or value == math.inf:
        return None
    if not value >= 0:
        raise FormatError(f"{name}: {value} is not a number of at least 0; use None for no limit")
    return min(value, 2.0**62)


def _default_memory() -> int:
    """Three quarters of the machine's memory: running into its end would kill the process without a word."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, OSError, ValueError):
        return 4 << 30
