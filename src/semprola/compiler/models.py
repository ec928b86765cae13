"""The number of models of a constraint; it need not compile a circuit over all variables."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from semprola.compiler.backends.topdown.backend import compile_to_count
from semprola.compiler.budget import Budget, Progress
from semprola.compiler.pipeline import compile
from semprola.compiler.sources import Source, as_constraint
from semprola.errors import UnsatisfiableError
from semprola.logic import Cnf


def model_count(
    constraint: Source,
    labels: Iterable[str] | None = None,
    *,
    backend: str = "auto",
    timeout: float | None = None,
    max_nodes: int | None = None,
    memory: int | str | None = None,
    progress: bool | Callable[[Progress], None] | None = None,
) -> int:
    """The exact number of label vectors that satisfy a constraint; 0 if there are none.

    Args:
        constraint: a formula, its text, a family, a circuit, or the path of a file (see :func:`semprola.rules.read`).
        labels: the labels of the vectors; by default every variable of the constraint. Each label that it does not
            mention doubles the count.
        backend: what compiles it; see :func:`semprola.compile`.
        timeout: the most seconds that it may take.
        max_nodes: the most nodes that the compiler may make.
        memory: the most bytes that the compiler may use, or a text such as "2GB".
        progress: see :func:`semprola.compile`.

    Raises:
        CompilationBudgetError: time, nodes or memory ran out.

    Example:
        >>> import semprola as sp
        >>> sp.rules.model_count("(cat -> animal) & (dog -> animal)"), sp.rules.model_count("a & ~a")
        (5, 0)
    """
    constraint = as_constraint(constraint)
    try:
        if isinstance(constraint, Cnf) and labels is None and backend == "auto":
            return compile_to_count(constraint, Budget(timeout, max_nodes, memory, progress)).model_count()
        limits: dict[str, Any] = {"timeout": timeout, "max_nodes": max_nodes, "memory": memory}
        circuit = compile(constraint, labels=labels, backend=backend, progress=progress, **limits)
    except UnsatisfiableError:
        return 0
    return circuit.model_count()
