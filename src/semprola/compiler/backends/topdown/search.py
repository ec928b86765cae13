"""Top-down knowledge compilation: from a CNF to a decision-DNNF.

The compiler itself is native (`_native_src/ddnnf*.cpp`): an exhaustive DPLL with conflict learning, connected
components, a component cache, and branching guided by a tree decomposition. Without the native module, `plain` makes
equivalent circuits with another order of decisions; it is meant for small inputs.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from semprola.compiler.backends.topdown.native import Shared, call_interruptibly, native_library
from semprola.compiler.backends.topdown.plain import NotDetermined, compile_arrays
from semprola.compiler.budget import Budget, Resource
from semprola.errors import FormatError, SemprolaError, UnsatisfiableError

Csr = tuple[npt.NDArray[np.int64], npt.NDArray[np.int32]]
Clauses = Sequence[Sequence[int]] | Csr


@dataclass(frozen=True)
class Ddnnf:
    """A decision-DNNF as flat arrays: children before parents, the root last, no two nodes equal.

    A product without children is true; there is no false node. Every sum has two children, which disagree on a decision
    variable: each is a literal of that variable, or a product with that literal among its children. It is not smooth:
    variables that do not occur below a node are free there.

    Attributes:
        kind: [nodes] LITERAL, PRODUCT or SUM.
        literal: [nodes] the DIMACS literal of a LITERAL, otherwise 0.
        child_start: [nodes + 1] the children of node n are `children[child_start[n]:child_start[n + 1]]`.
        children: [edges] node numbers.
    """

    kind: npt.NDArray[np.int8]
    literal: npt.NDArray[np.int32]
    child_start: npt.NDArray[np.int64]
    children: npt.NDArray[np.int32]

    @property
    def num_nodes(self) -> int:
        """Number of nodes, including leaves."""
        return len(self.kind)

    @property
    def num_edges(self) -> int:
        """Number of edges."""
        return len(self.children)


def compile_cnf(
    num_vars: int,
    clauses: Clauses,
    budget: Budget | None = None,
    *,
    projected_out: Sequence[int] = (),
    determined: bool = True,
) -> Ddnnf:
    """Compile a CNF to a decision-DNNF with the same models.

    Args:
        clauses: a sequence of sequences of DIMACS literals, or a pair of arrays (start, literals) in which clause c
            is `literals[start[c]:start[c + 1]]`.
        determined: whether the other variables determine these in every model, as in a Tseitin encoding. If so, the
            search may branch on them; a sum that decides on one of them is still deterministic, because its sides have
            no model in common, but shows no conflicting literals. If not, they are existentially quantified: the search
            does not branch on them, so every sum shows its decision.

    Returns:
        The circuit, over the variables that are not projected out.
    """
    start, literals = _csr(num_vars, clauses)
    hidden = _variables(num_vars, projected_out)
    # The compiler sees only variables that occur, so declaring more variables costs nothing.
    used = np.unique(np.abs(literals))
    compact = np.searchsorted(used, np.abs(literals)) + 1
    task = _Task(
        num_vars=len(used),
        start=start,
        literals=np.where(literals < 0, -compact, compact).astype(np.int32),
        hidden=np.isin(used, hidden).astype(np.uint8),
        determined=determined,
        budget=budget or Budget(),
    )
    library = native_library()
    circuit = _run_python(task) if library is None else _run_native(library, task)
    if len(used) == 0:
        return circuit
    original = np.sign(circuit.literal) * used[np.maximum(np.abs(circuit.literal), 1) - 1]
    return Ddnnf(circuit.kind, original.astype(np.int32), circuit.child_start, circuit.children)


@dataclass(frozen=True)
class _Task:
    num_vars: int
    start: npt.NDArray[np.int64]
    literals: npt.NDArray[np.int32]
    hidden: npt.NDArray[np.uint8]
    determined: bool
    budget: Budget


_SHARE = 0.75
"""The share of a memory budget that the search fills before it forgets components. The whole process counts, too, and
must not exceed the budget first: it includes the clauses, and memory that was freed but not returned."""
_PHASES = ("simplify", "order", "search")
_DETAILS = ("edges", "decisions", "conflicts", "cache_entries", "cache_hits", "bytes", "width")


def _run_native(library: ctypes.CDLL, task: _Task) -> Ddnnf:
    shared, handle, sizes = Shared(), ctypes.c_void_p(), (ctypes.c_int64 * 2)()

    budget = task.budget

    def report() -> None:
        _check_decisions(shared, budget)
        details = {name: getattr(shared, name) for name in _DETAILS}
        budget.watch(f"compiling top-down ({_PHASES[shared.phase]})", shared.nodes, details)

    report()  # even an early error must say what was being done
    status = call_interruptibly(
        library.semprola_ddnnf_compile,
        shared,
        task.num_vars,
        len(task.start) - 1,
        task.start.ctypes.data,
        task.literals.ctypes.data,
        task.hidden.ctypes.data,
        int(task.determined),
        # the whole time, not the rest: the search for an order depends on it but must not depend on the machine's load
        -1.0 if budget.timeout is None else budget.timeout,
        -1 if budget.max_nodes is None else budget.max_nodes,
        _default_memory() if budget.memory is None else int(_SHARE * budget.memory),
        ctypes.byref(shared),
        ctypes.byref(handle),
        sizes,
        poll=report,
    )
    if status != 0:
        raise _error(status, budget, shared.nodes, shared.decisions)
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
    _check_decisions(shared, budget)
    return circuit


def _check_decisions(shared: Shared, budget: Budget) -> None:
    """Refuse a search with too many steps, no matter whether this is noticed on the way or at the end."""
    if budget.max_decisions is not None and shared.decisions > budget.max_decisions:
        raise budget.error("nodes", shared.nodes, shared.decisions)


def _run_python(task: _Task) -> Ddnnf:
    flat = task.literals.tolist()
    clauses = [flat[a:b] for a, b in itertools.pairwise(task.start.tolist())]

    hidden = {int(v) + 1 for v in np.flatnonzero(task.hidden)}
    memory = _default_memory() if task.budget.memory is None else task.budget.memory
    try:
        arrays = compile_arrays(clauses, hidden, task.determined, task.budget, memory)
    except NotDetermined:
        raise _error(_NOT_DETERMINED, task.budget) from None
    if arrays is None:
        raise _error(_UNSATISFIABLE, task.budget)
    return Ddnnf(*arrays)


# Mirrors `enum Status` of ddnnf_common.hpp.
_UNSATISFIABLE, _TIMEOUT, _TOO_MANY_NODES, _OUT_OF_MEMORY, _NOT_DETERMINED = 1, 2, 3, 4, 6
_RESOURCES: dict[int, Resource] = {_TIMEOUT: "time", _TOO_MANY_NODES: "nodes", _OUT_OF_MEMORY: "memory"}


def _error(status: int, budget: Budget, nodes: int | None = None, decisions: int = 0) -> SemprolaError:
    if status == _UNSATISFIABLE:
        return UnsatisfiableError("the clauses have no model: remove or weaken a rule")
    if status == _NOT_DETERMINED:
        return FormatError("projected_out: one of the variables is not determined by the others: use determined=False")
    resource = _RESOURCES.get(status)
    if resource is None:
        return SemprolaError(f"the native compiler failed with status {status}: try another back end")
    return budget.error(resource, nodes, decisions)


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


def _default_memory() -> int:
    """Three quarters of the machine's memory: a process that uses all of it would be killed without a message."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    except (AttributeError, OSError, ValueError):
        return 4 << 30
